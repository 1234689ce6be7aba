"""From the kubelet's records to the report: response times, losses, violations."""

import json

import msgspec
import pytest

from demo_runs import BUILD, CLEAN, EPOCH, INFER, NODES, TRAIN, arrival, entry, run
from eclectus_e2e.demo.speeds import LearnedRate
from eclectus_e2e.demo.stream.report import make_report, make_result
from eclectus_e2e.demo.workload.arrivals import NodeConstraint


def test_times_run_from_creation_to_start_and_end():
    arrivals = [arrival(0), arrival(1, at=1.0)]
    entries = [
        entry(arrivals[0], "fast", EPOCH + 0.5, EPOCH + 2.0),
        entry(arrivals[1], "fast", EPOCH + 1.5, EPOCH + 5.0),
    ]
    found = make_result([run(arrivals, entries)], NODES)
    assert found.response_seconds.mean == pytest.approx((2.0 + 4.0) / 2)
    assert found.response_seconds.p50 == pytest.approx(3.0)
    assert found.start_seconds.mean == pytest.approx(0.5)
    assert found.sound


def test_the_warm_up_is_not_timed_but_is_counted():
    arrivals = [arrival(0), arrival(1, at=1.0), arrival(2, at=12.0)]
    entries = [
        entry(arrivals[0], "fast", EPOCH, EPOCH + 9.0),
        entry(arrivals[2], "fast", EPOCH + 12, EPOCH + 13),
    ]
    found = make_result([run(arrivals, entries, warm_seconds=10.0)], NODES)
    assert (found.pods, found.timed, found.lost) == (3, 1, 1)
    assert found.response_seconds.mean == pytest.approx(1.0)


@pytest.mark.parametrize("outcome", ["killed", "vanished", "OutOfcpu", "NodeAffinity"])
def test_a_pod_that_does_not_succeed_is_lost(outcome):
    arrivals = [arrival(0)]
    found = make_result([run(arrivals, [entry(arrivals[0], "fast", 0.0, EPOCH, outcome)])], NODES)
    assert found.lost == 1
    assert not found.sound


def test_a_pod_without_a_record_is_lost():
    assert make_result([run([arrival(0)], [])], NODES).lost == 1


def test_a_pod_that_ran_on_two_nodes_is_doubled():
    arrivals = [arrival(0)]
    twice = [entry(arrivals[0], node, EPOCH, EPOCH + 1) for node in ("slow", "fast")]
    found = make_result([run(arrivals, twice)], NODES)
    assert (found.doubled, found.lost, found.sound) == (1, 0, False)


def test_what_kubelets_refuse_is_counted():
    arrivals = [arrival(0)]
    counters = msgspec.structs.replace(CLEAN, overcommitted=2, violations=1)
    found = make_result(
        [run(arrivals, [entry(arrivals[0], "fast", EPOCH, EPOCH + 1)], counters=counters)], NODES
    )
    assert (found.overcommitted, found.violations, found.sound) == (2, 1, False)


@pytest.mark.parametrize(
    ("second_start", "beyond"),
    [(EPOCH + 0.99, 1), (EPOCH + 1.0, 0)],
    ids=["begins before the other has ended", "begins as the other ends"],
)
def test_the_audit_finds_a_start_on_a_full_node(second_start, beyond):
    arrivals = [arrival(0, kind=TRAIN), arrival(1, kind=BUILD)]  # two cores, then one more, of two
    entries = [
        entry(arrivals[0], "fast", EPOCH, EPOCH + 1.0),
        entry(arrivals[1], "fast", second_start, EPOCH + 3.0),
    ]
    assert make_result([run(arrivals, entries)], NODES).overcommitted == beyond


def test_the_audit_finds_a_missing_gpu():
    arrivals = [arrival(0, kind=INFER)]
    assert (
        make_result([run(arrivals, [entry(arrivals[0], "fast", EPOCH, EPOCH + 1)])], NODES).overcommitted == 1
    )


@pytest.mark.parametrize(("node", "violations"), [("slow", 0), ("fast", 1)])
def test_an_unmet_hard_constraint_is_a_violation(node, violations):
    arrivals = [arrival(0, constraint=NodeConstraint("zone", ("here",), is_hard=True))]
    found = make_result([run(arrivals, [entry(arrivals[0], node, EPOCH, EPOCH + 1)])], NODES)
    assert found.violations == violations
    assert found.preferences_met is None


def test_an_unmet_preference_is_no_violation():
    constraint = NodeConstraint("zone", ("here",), is_hard=False)
    arrivals = [arrival(0, constraint=constraint), arrival(1, constraint=constraint)]
    entries = [entry(one, node.name, EPOCH, EPOCH + 1) for one, node in zip(arrivals, NODES, strict=True)]
    found = make_result([run(arrivals, entries)], NODES)
    assert (found.violations, found.preferences_met) == (0, 0.5)


def test_the_report_has_ratios_to_kube_scheduler_at_every_load():
    arrivals = [arrival(0)]
    cells = [LearnedRate("slow", "build", 1.0, 9), LearnedRate("fast", "build", 8.0, 9)]

    def took(scheduler, load, seconds, **more):
        return run(arrivals, [entry(arrivals[0], "fast", EPOCH, EPOCH + seconds)], scheduler, load, **more)

    runs = [
        took("eclectus", 0.8, 1.0, rates=cells),
        took("kube-scheduler", 0.8, 2.0),
        took("eclectus", 0.5, 3.0),
        took("kube-scheduler", 0.5, 4.0),
    ]
    found = make_report(runs, NODES, seed=1, main_load=0.8, capacity=20.0)
    written = json.loads(msgspec.json.encode(found))
    assert written["ratios"]["eclectus"]["mean"] == pytest.approx(0.5)
    assert written["loads"]["0.5"]["ratios"]["eclectus"]["p99"] == pytest.approx(0.75)
    assert written["loads"]["0.8"]["pods_per_second"] == pytest.approx(16.0)
    assert written["schedulers"]["eclectus"]["response_seconds"]["p95"] == pytest.approx(1.0)
    assert (written["learned_within_third"], written["pods"], written["sound"]) == (1.0, 4, True)


def test_all_pairs_are_reckoned_together_and_ratios_within_each():
    """Within pairs Eclectus takes a half and an eighth: a quarter in the geometric mean."""
    arrivals = [arrival(0)]

    def took(scheduler, pair, seconds, **more):
        ended = [entry(arrivals[0], "fast", EPOCH, EPOCH + seconds)]
        return run(arrivals, ended, scheduler, pair=pair, **more)

    runs = [
        took("eclectus", 0, 1.0, strangers_cores=0.1),
        took("kube-scheduler", 0, 2.0),
        took("kube-scheduler", 1, 24.0, strangers_cores=0.7),
        took("eclectus", 1, 3.0),
    ]
    found = make_report(runs, NODES, seed=1, main_load=0.8, capacity=20.0)
    assert found.schedulers["eclectus"].response_seconds.mean == pytest.approx(2.0)
    assert (found.schedulers["eclectus"].pods, found.pods) == (2, 4)
    assert found.ratios["eclectus"].mean == pytest.approx(0.25)
    level = found.loads["0.8"]
    assert [(one.scheduler, one.pair) for one in level.runs] == [(one.scheduler, one.pair) for one in runs]
    assert [one.strangers_cores for one in level.runs] == [0.1, 0.0, 0.7, 0.0]


def test_nodes_of_every_run_count_as_learned_or_not():
    arrivals = [arrival(0)]
    good = [LearnedRate("slow", "build", 1.0, 9), LearnedRate("fast", "build", 8.0, 9)]
    bad = [LearnedRate("slow", "build", 1.0, 9), LearnedRate("fast", "build", 1.0, 9)]
    runs = [run(arrivals, [], rates=rates, pair=pair) for pair, rates in enumerate((good, bad))]
    learning = make_result(runs, NODES).learning
    assert [node.within_third for node in learning.nodes][:2] == [True, True]
    assert 0.5 <= learning.within_third < 1.0


def test_one_bad_run_makes_the_whole_report_unsound():
    arrivals = [arrival(0)]
    good = run(arrivals, [entry(arrivals[0], "fast", EPOCH, EPOCH + 1)])
    bad = run(arrivals, [], "kube-scheduler")
    found = make_report([good, bad], NODES, seed=1, main_load=0.8, capacity=20.0)
    assert not found.sound
    assert (
        json.loads(msgspec.json.encode(found))["schedulers"]["kube-scheduler"]["response_seconds"]["p50"]
        is None
    )
