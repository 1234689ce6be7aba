"""Times by what pods demand of their node: nothing, a preference, or a hard constraint."""

import math

import pytest
from rich.console import Console

from demo_runs import EPOCH, NODES, arrival, entry, run
from eclectus_e2e.demo.stream.report import (
    CONSTRAINED,
    FREE,
    GROUPS,
    PREFERRING,
    LoadReport,
    Summary,
    make_result,
    ratio,
    summarise,
    times_by_group,
)
from eclectus_e2e.demo.stream.tables import groups_table
from eclectus_e2e.demo.workload.arrivals import NodeConstraint, poisson_arrivals

HERE = NodeConstraint("zone", ("here",), is_hard=True)
WISH = NodeConstraint("example.org/zone", ("here", "there"), is_hard=False)
ARRIVALS = [
    arrival(0),
    arrival(1, at=1.0),
    arrival(2, at=2.0, constraint=HERE),
    arrival(3, at=3.0, constraint=WISH),
]


def entries(wait, took):
    """Each pod waits for its number times `wait` and then runs for `took` seconds."""
    starts = [EPOCH + one.at_seconds + one.number * wait for one in ARRIVALS]
    return [entry(one, "slow", at, at + took) for one, at in zip(ARRIVALS, starts, strict=True)]


def test_every_pod_is_in_one_group_and_in_that_of_its_constraint():
    found = times_by_group(run(ARRIVALS, entries(0.5, 2.0)).timed())
    assert list(found) == [FREE, PREFERRING, CONSTRAINED, "prefers zone here or there", "zone here"]
    assert [one.pods for one in found.values()] == [2, 1, 1, 1, 1]
    assert found[FREE].wait_seconds.mean == pytest.approx(0.25)
    assert found[FREE].response_seconds.mean == pytest.approx(2.25)
    assert found["zone here"] == found[CONSTRAINED]
    assert found[CONSTRAINED].wait_seconds.p99 == pytest.approx(1.0)
    assert found[PREFERRING].response_seconds.p50 == pytest.approx(3.5)


def test_groups_without_pods_are_left_out():
    assert list(times_by_group(run(ARRIVALS, entries(0.5, 2.0)[:1]).timed())) == [FREE]


def test_the_groups_of_a_stream_have_all_its_timed_pods():
    arrivals = poisson_arrivals(1, 20.0, 30.0)
    ran = [entry(one, "slow", EPOCH + one.at_seconds, EPOCH + one.at_seconds + 1.0) for one in arrivals]
    found = make_result([run(arrivals, ran, warm_seconds=10.0)], NODES)
    assert sum(found.groups[name].pods for name in GROUPS) == found.timed < len(arrivals)


def test_constraints_are_named_by_the_end_of_their_label():
    assert NodeConstraint("kubernetes.io/arch", ("arm64",), is_hard=True).text == "arch arm64"
    assert WISH.text == "prefers zone here or there"


def test_the_table_has_shares_of_kube_schedulers_times():
    results = {
        name: make_result([run(ARRIVALS, entries(wait, 1.0), name)], NODES)
        for name, wait in (("eclectus", 0.5), ("kube-scheduler", 1.0))
    }
    console = Console(width=120, record=True)
    console.print(groups_table(LoadReport(0.8, 1.0, 4.0, results, {}, [])))
    rows = [" ".join(line.split()) for line in console.export_text().splitlines()]
    assert "zone here eclectus 1 2.00 (0.67) 2.00 (0.67) 1.00 (0.50) 1.00 (0.50)" in rows
    assert "zone here kube-scheduler 1 3.00 3.00 2.00 2.00" in rows


def test_a_share_of_nothing_is_not_a_number():
    shares = ratio(Summary(1.0, 1.0, 1.0, 1.0), summarise([0.0, 4.0]))
    assert (shares.mean, shares.p50) == (0.5, 0.5)
    assert math.isnan(ratio(summarise([1.0]), summarise([0.0])).mean)
    assert math.isnan(summarise([]).p99)
