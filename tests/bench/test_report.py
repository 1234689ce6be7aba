"""Ratios within pairs, targets on their median, and the content of the file."""

import json
from dataclasses import asdict

import pytest

from drains import drained
from eclectus_bench import report as reports
from eclectus_bench.decisions import DecisionCost
from eclectus_bench.engine import EngineCost
from eclectus_bench.match import Result, Sizes, half_load
from eclectus_bench.stream import Stream


def served(scheduler: str, pair: int, p99: float) -> Stream:
    return Stream(scheduler, pair, 100, 50.0, p99 / 4, p99, 0.0)


def result(theirs: list[float], ours: list[float]) -> Result:
    drains = [drained("kube-scheduler", pair, pace) for pair, pace in enumerate(theirs)]
    # In reverse: the order of the runs within the list must not matter.
    drains += [drained("eclectus", pair, pace) for pair, pace in reversed(list(enumerate(ours)))]
    drains += [drained("ceiling", pair, 1000) for pair in range(len(ours))]
    streams = [served(name, 0, p99) for name, p99 in (("kube-scheduler", 0.4), ("eclectus", 0.1))]
    return Result(drains, streams)


def line(lines: list[reports.Comparison], title: str) -> reports.Comparison:
    (found,) = (each for each in lines if each.measure == title)
    return found


def test_a_ratio_is_taken_within_its_pair_and_the_median_has_least_and_most():
    found = line(reports.compare(result([100, 200, 400], [300, 400, 400])), "bound, pods/s")
    assert (found.ratio, found.ratio_least, found.ratio_most) == (2.0, 1.0, 3.0)
    assert (found.kube_scheduler, found.eclectus) == (200, 400)


@pytest.mark.parametrize(
    ("configured", "build"),
    [
        ("'--prefix=/usr' '--enable-optimizations' '--with-lto'", "optimised by profile and at link time"),
        ("--enable-optimizations --with-lto=thin", "optimised by profile and at link time"),
        ("'--enable-optimizations'", "optimised by profile"),
        ("", "not optimised by profile nor at link time"),
    ],
)
def test_the_head_says_how_the_interpreter_was_built(configured, build):
    assert reports.interpreter_build(configured) == build
    assert reports.machine()["python_build"] in reports.head()


@pytest.mark.parametrize(("ours", "met"), [(179, False), (180, True)])
def test_a_throughput_has_to_reach_its_target(ours, met):
    assert line(reports.compare(result([100], [ours])), "bound, pods/s").met is met


def test_a_wait_has_to_stay_below_its_target_and_a_measure_without_one_is_not_judged():
    lines = reports.compare(result([100], [100]))
    assert line(lines, "half load, p99, s").met is True
    assert line(lines, "half load, p99, s").ratio == 0.25
    assert line(lines, "etcd CPU, ms/pod").met is None


def test_each_scheduler_reaches_a_share_of_what_decides_nothing():
    found = reports.shares_of_ceiling(result([100, 200], [400, 900]).drains)["bound, pods/s"]
    assert {name: round(share.mean, 3) for name, share in found.items()} == {
        "kube-scheduler": 0.141,
        "eclectus": 0.6,
    }
    (bound, _) = reports.ceiling_lines(result([100, 100], [500, 500]).drains)
    assert bound.endswith("kube-scheduler 0.10 (0.10 to 0.10), eclectus 0.50 (0.50 to 0.50)")


def test_flatness_is_the_largest_cluster_over_the_smallest_in_any_order():
    costs = [DecisionCost("rosella", "burst", nodes, cost, 1.0, 90.0) for nodes, cost in ((900, 33), (5, 30))]
    assert reports.flatness(costs) == {"rosella, burst": 1.1}


def test_half_load_is_half_the_throughput_of_the_slower_scheduler():
    assert half_load(result([100, 300, 200], [900, 1000, 1100]).drains) == 100


def test_the_file_can_be_written_with_all_parts_and_with_some_alone():
    sizes = Sizes(nodes=5, pods=100, pairs=1, stream_seconds=1.0)
    costs = [DecisionCost("rosella", "burst", nodes, 30.0, 1.0, 90.0) for nodes in (5, 50)]
    steps = [EngineCost("a case", 0.2, 0.1, 0.3, 0.5), EngineCost("another", 9.0, 8.0, 9.5, None)]
    runs = result([100], [200])
    whole = json.loads(json.dumps(reports.report(sizes, costs, steps, runs)))
    assert whole["drains"] == [asdict(run) for run in runs.drains]
    assert whole["course"] == asdict(sizes)
    assert whole["decisions"]["flatness"] == {"rosella, burst": 1.0}
    assert [case["met"] for case in whole["engine"]] == [True, None]
    assert reports.report(sizes, [], [], runs)["decisions"]["costs"] == []
    assert reports.report(sizes, costs, steps, None)["comparisons"] == []


def test_the_tables_name_every_measure_and_every_missed_target():
    text = "\n".join(reports.comparison_table(reports.compare(result([100], [120]))))
    assert all(measure.title in text for measure in (*reports.DRAIN_MEASURES, *reports.STREAM_MEASURES))
    assert ">= 1.8 MISSED" in text
    assert "<= 1 met" in text
    costs = [DecisionCost("pot", "mixed", nodes, 40.0, 1.0, 90.0) for nodes in (500, 5000)]
    assert "5,000 nodes" in reports.decisions_head([500, 5000])
    assert next(reports.decisions_lines(costs)).split() == ["pot,", "mixed", "40.0", "40.0", "1.00"]
