"""The experiment on data: where its pods have their data, and what is compared."""

from argparse import Namespace
from dataclasses import replace

import pytest

from demo_runs import EPOCH, arrival, entry, run
from eclectus_bench.experiments.data import (
    COPIES,
    NODES,
    TWICE,
    _aims,
    compared,
    data_plan,
    data_report,
    located,
)
from eclectus_e2e.demo.schedulers import DELAY, NO_DELAY
from eclectus_e2e.demo.workload.pods import pod_object
from eclectus_e2e.pairs import Interval
from eclectus_e2e.testbed.kubelet.objects import Metadata, Pod

OPTIONS = Namespace(loads=[0.5], pairs=2, seconds=10.0, seed=1)


def test_each_pod_has_its_data_on_nodes_of_its_own_and_pairs_differ():
    plan = data_plan(OPTIONS, TWICE)
    first, other = (plan.arrivals(plan.levels[0], pair) for pair in (0, 1))
    names = {node.name for node in plan.nodes}
    assert len(names) == NODES
    assert all(len(set(one.data)) == COPIES and set(one.data) <= names for one in first)
    assert len({one.data for one in first}) > len(first) / 2
    assert [one.data for one in first][:20] != [one.data for one in other][:20]
    assert first == plan.arrivals(plan.levels[0], 0)


def test_the_kubelet_reads_what_the_pod_says():
    one = replace(arrival(1), data=("near",), remote=3.0)
    body = pod_object(one, "eclectus")
    metadata = Metadata("p", annotations=body["metadata"]["annotations"])
    seconds = [Pod(metadata, body["spec"] | {"nodeName": node}).work_seconds() for node in ("near", "far")]
    assert seconds == pytest.approx([1.0, 3.0])


def _run(name, pair, nodes, seconds):
    arrivals = [replace(arrival(number), data=("near",), remote=2.0) for number in range(len(nodes))]
    entries = [
        entry(one, node, EPOCH + 1.0, EPOCH + seconds) for one, node in zip(arrivals, nodes, strict=True)
    ]
    return run(arrivals, entries, scheduler=name, load=0.5, pair=pair)


RUNS = [
    _run(DELAY, 0, ["near", "near"], 2.0),
    _run(NO_DELAY, 0, ["near", "far"], 4.0),
    _run(NO_DELAY, 1, ["far", "far"], 4.0),
    _run(DELAY, 1, ["near", "far"], 3.0),
]


def test_starts_at_the_data_are_counted_and_means_compared_within_pairs():
    assert [located(one) for one in RUNS] == [1.0, 0.5, 0.0, 0.5]
    found = compared(RUNS)
    assert (found.located[DELAY].mean, found.located[NO_DELAY].mean) == (0.75, 0.25)
    assert found.ratio.mean == pytest.approx((0.5 * 0.75) ** 0.5)
    assert found.ratio.pairs == 2
    assert found.wait[DELAY].mean == pytest.approx(1.0)
    plan = data_plan(OPTIONS, TWICE)
    report = data_report(plan, [replace(one, entries=[]) for one in RUNS])
    assert (report.remote, report.compared["0.5"].ratio.pairs, report.sound) == (TWICE, 0, False)


@pytest.mark.parametrize(
    ("remote", "share", "low", "high", "said"),
    [
        (2.0, 0.95, 0.5, 0.6, "met"),
        (2.0, 0.85, 0.5, 0.6, "missed"),
        (2.0, 0.95, 1.1, 1.3, "missed"),
        (1.0, 0.95, 0.98, 1.02, "met"),
        (1.0, 0.95, 1.01, 1.02, "missed"),
    ],
)
def test_aims_are_judged_of_five_pairs(remote, share, low, high, said):
    ratio = Interval((low + high) / 2, low, high, 5)
    found = _judged_by(compared(RUNS), share, ratio)
    assert said in _aims(remote, found)
    few = _judged_by(found, share, Interval(ratio.mean, low, high, 4))
    assert "no verdict from 4" in _aims(remote, few)


def _judged_by(found, share, ratio):
    return type(found)({DELAY: Interval(share, None, None, 5)}, found.mean, found.p99, found.wait, ratio)
