"""The soak: its objects, what it reads, its verdict, and a short one on a control plane."""

from __future__ import annotations

import json
from dataclasses import replace
from math import inf
from pathlib import Path

import pytest
import yaml

from eclectus.live.metrics_page import registry_of, text
from eclectus.live.metrics_table import FAMILIES
from eclectus.live.process_metrics import Metrics
from eclectus_bench.soak import __main__ as command
from eclectus_bench.soak import attack, objects, scrape
from eclectus_bench.soak.renewals import Renewals
from eclectus_bench.soak.run import ERROR_LINE
from eclectus_bench.soak.sizes import QUICK, Sizes
from eclectus_bench.soak.verdict import (
    LEASE_SECONDS,
    MEMORY_MIB,
    OPERATOR,
    RENEW_DEADLINE_SECONDS,
    SCHEDULER,
    Reading,
    Soak,
    Waits,
    rows,
    verdict,
)
from eclectus_e2e.errors import UsageError
from eclectus_e2e.paths import CHART
from eclectus_e2e.testbed import clusters
from eclectus_operator.settings import LeaseSettings

LEASE, OPERATORS = RENEW_DEADLINE_SECONDS  # names
SIZES = Sizes(
    minutes=4, nodes=3, pods=7, pending=20, shapes=10, rate=1.0, life_seconds=1.0, probed=1
)  # of which no node has as many pods as another has


def cpu(body):
    return int(body["spec"]["containers"][0]["resources"]["requests"]["cpu"].removesuffix("m"))


def test_standing_pods_leave_each_node_too_little_for_any_pending_pod():
    used = dict.fromkeys(("bench-00000", "bench-00001", "bench-00002"), 0)
    for index in range(SIZES.pods):
        body = objects.standing(index, SIZES)
        used[body["spec"]["nodeName"]] += cpu(body)
    least = min(cpu(objects.pending(index, SIZES)) for index in range(SIZES.pending))
    assert all(1500 <= 4000 - each < least for each in used.values())
    assert objects.standing_on(0, SIZES) == ["standing-000000", "standing-000003", "standing-000006"]


def test_pending_pods_have_as_many_specs_as_there_are_shapes():
    sizes = replace(SIZES, pending=9_000, shapes=4_000)
    specs = {json.dumps(objects.pending(index, sizes)["spec"]) for index in range(sizes.pending)}
    assert len(specs) == 4_000


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"pods": 2}, "there must be 1 to 50 a node"),
        ({"pods": 151}, "there must be 1 to 50 a node"),
        ({"shapes": 21}, "21 shapes of 20 pods"),
        ({"probed": 4}, "4 probed nodes of 3"),
        ({"minutes": 0}, "must be above 0"),
        ({"pairs": 0, "attackers": 1}, "must be above 0"),
        ({"pairs": 2}, "2 pairs of attacks without attackers"),
        ({"attackers": 470}, "would not be removed before the next one"),
    ],
)
def test_sizes_that_do_not_go_together_are_refused(change, problem):
    with pytest.raises(UsageError, match=problem):
        replace(SIZES, **change)


def test_options_replace_the_sizes_of_the_course():
    assert command._sizes(["--quick", "--nodes", "20", "--rate", "3"]) == replace(QUICK, nodes=20, rate=3.0)


def test_steps_between_two_scrapes_are_counted_and_defects_named():
    metrics = Metrics()
    for _ in range(1000):
        metrics.steps.observe(0.5)
    before = scrape.parse(text(registry_of(metrics)).decode())
    assert scrape.step_percentile(before.steps, before.steps, 0.99) == 0.0
    for _ in range(99):
        metrics.steps.observe(0.0003)
    metrics.steps.observe(5.0)
    metrics.faults.labels("jiq").inc(2)
    metrics.faults.labels("eagle").inc()
    after = scrape.parse(text(registry_of(metrics)).decode())
    assert scrape.step_percentile(before.steps, after.steps, 0.99) == pytest.approx(0.0004)
    assert scrape.step_percentile(before.steps, after.steps, 0.5) == pytest.approx(0.0002 * (1 + 50 / 99))
    assert scrape.step_percentile(before.steps, after.steps, 1.0) == inf
    assert after.values[scrape.LONGEST_STEP] == 5.0
    assert (before.defects(), after.defects()) == ({}, {"eclectus_policy_faults_total": 3})


def test_every_metric_that_is_read_exists():
    names = {family.full_name for family in FAMILIES.values()}
    read_names = {*scrape.DEFECTS, scrape.LONGEST_STEP, scrape.STEPS.removesuffix("_bucket")}
    read_names |= {scrape.UNTIL_BOUND, scrape.BIND}
    assert read_names <= names


def test_the_longest_gap_includes_the_time_since_the_last_renewal():
    renewals = Renewals()
    for at in (100.0, 102.0, 102.0, 107.0):
        renewals.record("a", at)
    renewals.record("b", 100.0)
    assert renewals.counts() == {"a": 2, "b": 0}
    assert renewals.longest_gaps(109.0) == {"a": 5.0, "b": 9.0}


def steps(fast, slow=0):
    """So many steps of at most 50 ms, and of 100 to 200 ms."""
    return {0.05: fast, 0.1: fast, 0.2: fast + slow, inf: fast + slow}


def soak(**changes):
    """A soak within all bounds, of a reading every ten seconds."""
    readings = [
        Reading(at, {SCHEDULER: 300.0, OPERATOR: 90.0}, 0.02, steps(fast=at), 1, 1)
        for at in range(0, 241, 10)
    ]
    found = Soak(
        sizes=SIZES,
        readings=readings,
        peaks={SCHEDULER: 400.0, OPERATOR: 100.0},
        renewals={"eclectus": 100},
        longest_gaps={"eclectus": 2.1},
        waits=[0.1, 0.2],
        unbound=[0.1],
        probes={"succeeded": 1, "failed": 0},
    )
    return replace(found, **changes)


def exceeded(**changes):
    return [row.what for row in rows(soak(**changes)) if not row.kept]


def read(**values):
    """The readings, from the given second on with other values."""
    at = values.pop("at")
    return [replace(each, **values) if each.seconds >= at else each for each in soak().readings]


def test_a_soak_within_all_bounds_exceeds_none():
    assert exceeded() == []
    assert all(line.endswith("kept") for line in verdict(soak()))


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"peaks": {SCHEDULER: 1025.0, OPERATOR: 100.0}}, "peak memory of the scheduler"),
        (
            {"readings": read(at=180, memory={SCHEDULER: 350.0, OPERATOR: 90.0})},
            "growth of the scheduler in the last quarter",
        ),
        (
            {"readings": read(at=180, memory={SCHEDULER: 300.0, OPERATOR: 120.0})},
            "growth of the operator in the last quarter",
        ),
        ({"readings": read(at=140, steps=steps(fast=100, slow=5))}, "99th percentile of steps"),
        ({"readings": read(at=200, longest_step=1.1)}, "longest step after start-up"),
        ({"readings": read(at=230, longest_step=None)}, "scrapes without an answer within 2 s"),
        (
            {"longest_gaps": {LEASE: 2.0, OPERATORS: 10.5}},
            f"longest time without a renewal of Lease {OPERATORS}",
        ),
        ({"longest_gaps": {LEASE: 3.6, OPERATORS: 3.6}}, f"longest time without a renewal of Lease {LEASE}"),
        ({"waits": [0.1, 61.0]}, "arriving pods that waited for more than 60 s"),
        ({"unbound": [61.0]}, "arriving pods that waited for more than 60 s"),
        ({"errors": ["log of scheduler: x"]}, "errors"),
    ],
)
def test_each_bound_can_be_exceeded(changes, what):
    assert exceeded(**changes) == [what]


BESIDE = "times as long, 99th percentile of waits beside an attack"


@pytest.mark.parametrize(
    ("waits", "gap", "what"),
    [
        ([9.0, 1.0, 1.5, 1.0, 0.9], 2.4, []),
        ([9.0, 1.0, 1.6, 1.0, 0.9], 2.4, [BESIDE]),
        ([9.0, 1.0, 2.9, 1.0, 2.0], 2.4, []),  # twice as long beside what nobody serves
        ([9.0, 1.0, 3.1, 1.0, 2.0], 2.4, [BESIDE]),
        ([9.0, 1.0, 1.5, 1.0, 0.9], 2.6, [f"the same of Lease {LEASE}, half of its length"]),
    ],
)
def test_an_attack_may_cost_other_tenants_little(waits, gap, what):
    """Of 240 seconds the first attack has those from 120.7 to 156; it is compared with as many before.

    The second, which nobody serves, begins at 204.7.
    """
    sizes = replace(SIZES, attackers=1)
    sent = [80.0, 90.0, 125.0, 180.0, 210.0]
    assert exceeded(sizes=sizes, waits=waits, sent=sent, longest_gaps={LEASE: gap, OPERATORS: 7.4}) == what


def test_attacks_alternate_and_those_that_nobody_serves_have_no_bound():
    """The ratio of several is their geometric mean: 3 and .75 are 1.5 times."""
    sizes = replace(SIZES, attackers=1, pairs=2)
    attacks = sizes.attacks
    assert [each.served for each in attacks] == [True, False, False, True]
    assert [each.pair for each in attacks] == [0, 0, 1, 1]
    assert attacks[0].calm == pytest.approx((78.72, 96.36))
    assert attacks[-1].attack == pytest.approx((222.36, 240.0))
    sent = [each.calm[0] for each in attacks] + [each.attack[0] for each in attacks]
    found = soak(sizes=sizes, waits=[1.0] * 4 + [3.0, 50.0, 50.0, 0.75], sent=sent)
    assert [each.ratio for each in found.attacked(served=True)] == [3.0, 0.75]
    assert [row.what for row in rows(found) if not row.kept] == []
    text = "\n".join(command._attack(found))
    assert "beside an attack, and before it: 3.00 (1.00), 0.75 (1.00) s" in text
    assert "the first over the second, in pairs: 0.03" in text


def test_steps_beside_an_attack_are_no_part_of_the_others():
    sizes, slow = replace(SIZES, attackers=1), steps(fast=140, slow=140)
    found = soak(sizes=sizes, readings=read(at=150, steps=slow), waits=[], unbound=[])
    assert "99th percentile of steps" not in [row.what for row in rows(found) if not row.kept]
    assert found.step_p99(150.0, 240.0) == 0.0
    assert found.step_p99(140.0, 240.0) == pytest.approx(0.199, abs=1e-3)


def test_waits_are_parted_into_the_decision_the_bind_and_the_rest():
    """Two pods are sent between the readings at 150 and 200 s, beside an attack."""

    def times(until_bound, bind, count):
        parts = {f"{scrape.UNTIL_BOUND}_sum": until_bound, f"{scrape.BIND}_sum": bind}
        return parts | {f"{name}_count": count for name in (scrape.UNTIL_BOUND, scrape.BIND)}

    readings = [
        replace(each, times=times(1.0, 0.5, 3) if each.seconds <= 150 else times(3.0, 1.0, 5))
        for each in soak().readings
    ]
    found = soak(readings=readings, waits=[9.0, 1.5, 2.5], sent=[100.0, 160.0, 170.0])
    assert found.mean_waits([(150.0, 200.0)]) == Waits(whole=2.0, undecided=0.75, bind=0.25)
    assert found.mean_waits([(90.0, 110.0), (150.0, 200.0)]).whole == pytest.approx(13 / 3)
    assert found.mean_waits([(200.0, 240.0)]) == Waits(0.0, 0.0, 0.0)


def test_cores_are_cpu_over_time_in_some_parts_of_a_soak():
    readings = [
        replace(each, cpu={SCHEDULER: each.seconds * (0.5 if each.seconds <= 100 else 0.75), "etcd": 3.0})
        for each in soak().readings
    ]
    found = soak(readings=readings)
    assert found.cores([(0.0, 100.0)]) == {SCHEDULER: 0.5, "etcd": 0.0}
    assert found.cores([(0.0, 100.0), (110.0, 210.0)])[SCHEDULER] == pytest.approx(0.625)
    assert found.cores([(5.0, 9.0)]) == {}
    assert soak().cores([(0.0, 100.0)]) == {}


def test_attacks_create_the_same_whoever_serves_them():
    sizes = replace(SIZES, attackers=25)
    served, unserved = (attack.requests(sizes, each) for each in sizes.attacks)
    names = [[body.get("metadata", {}).get("name") for *_, body in each] for each in (served, unserved)]
    assert names[0] == names[1]
    for found, scheduler in ((served, "eclectus"), (unserved, attack.NOBODY)):
        created = [(at, body) for at, method, _, body in found if method == "POST"]
        assert len(created) == 50 + 25 + 12 + 2
        assert 30.8 < created[-1][0] < 31.8  # of 35.3 seconds
        pods = [body for _, body in created if body["kind"] == "Pod"]
        assert {each["spec"]["schedulerName"] for each in pods} == {scheduler}


def test_a_service_changes_throughout_an_attack_from_its_creation_on():
    sizes = replace(SIZES, attackers=25)
    found = attack.requests(sizes, sizes.attacks[0])
    assert (found[0][:3], found[0][3]["metadata"]["name"]) == ((0.0, "POST", attack.SERVICES), "s0")
    changed = [(at, body["spec"]["selector"]["l01"]) for at, method, _, body in found if method == "PATCH"]
    assert [at for at, _ in changed] == [3.0 * number for number in range(1, 11)]
    assert {value for _, value in changed} == {"v", None}


def test_the_longest_step_of_start_up_does_not_count():
    readings = [replace(each, longest_step=3.0) if each.seconds <= 120 else each for each in soak().readings]
    assert exceeded(readings=readings) == []


def test_the_verdict_shows_errors_and_what_is_exceeded():
    lines = list(verdict(soak(unbound=[61.0], errors=["log of scheduler: x"])))
    assert sum(line.endswith("EXCEEDED") for line in lines) == 2
    assert lines[-1] == "  log of scheduler: x"


def test_bounds_are_those_of_the_chart():
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    limits = {name: values[name]["resources"]["limits"]["memory"] for name in (SCHEDULER, OPERATOR)}
    assert limits == {SCHEDULER: "1Gi", OPERATOR: "256Mi"}
    assert MEMORY_MIB == {SCHEDULER: 1024, OPERATOR: 256}
    of_scheduler = values["config"]["leaderElection"]
    assert of_scheduler["renewDeadline"] == f"{RENEW_DEADLINE_SECONDS[LEASE] * 1000:g}ms"
    assert of_scheduler["leaseDuration"] == f"{LEASE_SECONDS[LEASE]:g}s"
    of_operator = LeaseSettings("default")  # of which the chart changes no time
    assert of_operator.lease_name == OPERATORS
    assert of_operator.renew_deadline == RENEW_DEADLINE_SECONDS[OPERATORS]
    assert of_operator.lease_duration == LEASE_SECONDS[OPERATORS]


@pytest.mark.parametrize(
    ("line", "is_error"),
    [
        ("2026-01-01T00:00:00.000+00:00 ERROR   lost the lease", True),
        ("2026-01-01T00:00:00.000+00:00 WARNING a line about an ERROR ", False),
        ("[2026-01-01 00:00:00,000] eclectus.kubeclient. [ERROR   ] lost the lease", True),
        ("[2026-01-01 00:00:00,000] eclectus_operator.ha [WARNING ] sync failed: [ERROR ]", False),
        ("Traceback (most recent call last):", True),
    ],
)
def test_error_lines_of_both_logs_are_found(line, is_error):
    assert bool(ERROR_LINE.match(line)) == is_error


@pytest.mark.live
@pytest.mark.alone
def test_a_short_soak_on_a_control_plane(output: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if clusters.choice():
        pytest.skip("the bench builds its control plane itself")
    command.main(["--quick"])  # whatever the verdict on times and memory of a busy machine
    report = json.loads((output / "soak.json").read_text())
    assert report["errors"] == []
    assert len(report["waits"]) > 10
    assert report["probes"]["succeeded"] > 0
    assert {name for name, count in report["renewals"].items() if count} == {"eclectus", "eclectus-operator"}
    assert all(min(each["memory"].values()) > 10 for each in report["readings"])
    assert {row["what"]: row["found"] for row in report["verdict"]}["errors"] == 0
    assert "longest time without a renewal of Lease eclectus-operator" in capsys.readouterr().out
