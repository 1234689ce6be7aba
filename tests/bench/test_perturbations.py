"""The perturbation experiment without a cluster: truth, learning, predictions, report and picture."""

import json
from dataclasses import replace

import msgspec
import pytest

from eclectus.api.names import PROBED_LABEL
from eclectus_bench.experiments.perturbations.experiment import draw
from eclectus_bench.experiments.perturbations.observations import (
    Observations,
    RatesAt,
    SpeedChange,
    Truth,
    first_learned,
    judged_pairs,
    samples_needed,
    share_within_third,
    speed_change,
)
from eclectus_bench.experiments.perturbations.plan import (
    BENCHMARK,
    IDLE,
    RESERVED,
    Plan,
    Prediction,
    Settings,
    make_layout,
    make_plan,
    predict,
)
from eclectus_bench.experiments.perturbations.report import make_report
from eclectus_e2e.demo.speeds import LearnedRate
from eclectus_e2e.demo.workload.arrivals import Arrival
from eclectus_e2e.demo.workload.load import SentPods
from eclectus_e2e.demo.workload.mixed import CLASSES, SCAN, SPEEDS, scan_factor
from eclectus_e2e.demo.workload.pods import pod_name
from eclectus_e2e.testbed.kubelet.pod_times import PodRecord

BUILD = CLASSES[1]
SETTINGS = Settings(nodes_per_group=1)
LAYOUT = make_layout(SETTINGS)
(FROZEN,) = LAYOUT.freezing
PLAN = Plan(SETTINGS, LAYOUT, Prediction(learning=5.0, recovery=10.0, cut_off=20.0))


def entry(name, node, started, finished, *, klass="build", outcome="succeeded"):
    return PodRecord("default", name, name, node, klass, 1.0, started, finished, outcome)


def builds(rates, state="live"):
    return [LearnedRate(node, "build", rate, 9, state) for node, rate in rates.items()]


# -- truth and learning ----------------------------------------------------------------------------


def test_a_node_has_the_speeds_of_its_newest_change():
    truth = Truth([speed_change(10.0, "a", 8.0), speed_change(0.0, "a", 1.0)])
    assert truth.speed(("a", "build"), 9.9) == 1.0
    assert truth.speed(("a", "build"), 10.0) == 8.0
    assert truth.speed(("a", SCAN), 10.0) == 8.0 * scan_factor(8.0) == 1.0


def test_a_class_with_wider_times_needs_more_samples():
    assert [samples_needed(replace(BUILD, shape=shape)) for shape in (1.0, 4.0, 9.0)] == [60, 15, 8]


def test_only_what_ran_since_the_change_counts_as_samples():
    truth = Truth([speed_change(0.0, "a", 1.0), speed_change(100.0, "a", 8.0)])
    before = [entry(f"b{i}", "a", 10.0 + i, 90.0 + i) for i in range(8)]
    after = [entry(f"c{i}", "a", 101.0 + i, 110.0) for i in range(7)]
    assert judged_pairs(before, truth, CLASSES, until=99.0).keys() == {("a", "build")}
    assert judged_pairs([*before, *after], truth, CLASSES, until=200.0) == {}
    enough_of_them = [*after, entry("last", "a", 120.0, 121.0)]
    assert judged_pairs(enough_of_them, truth, CLASSES, until=200.0) == {("a", "build"): 8}
    killed = [entry(f"k{i}", "a", 101.0, 102.0, outcome="killed") for i in range(9)]
    assert judged_pairs(killed, truth, CLASSES, until=200.0) == {}


def test_a_common_scale_is_no_error_and_a_missing_rate_is_one():
    truth = Truth([speed_change(0.0, node, speed) for node, speed in zip("abcd", SPEEDS, strict=True)])
    weights = {(node, "build"): 1 for node in "abcd"}

    def share(**rates):
        return share_within_third(RatesAt(1.0, builds(rates)), weights, truth)

    assert share(a=0.1, b=0.2, c=0.4, d=0.8) == 1.0
    assert share(a=0.1, b=0.2, c=0.8, d=0.8) == 0.75
    assert share(a=0.1, b=0.2, c=0.4) == 0.75
    weights["d", "build"] = 7
    assert share(a=0.1, b=0.2, c=0.4) == 0.3


def test_learned_is_when_95_percent_are_within_a_third():
    truth = Truth([SpeedChange(0.0, node, {"build": 1.0}) for node in "ab"])
    readings = [RatesAt(1.0, builds({"a": 1.0})), RatesAt(2.0, builds({"a": 1.0, "b": 1.1}))]
    both = {("a", "build"): 1, ("b", "build"): 1}
    assert first_learned(readings, both, truth) == 2.0
    assert first_learned(readings[:1], both, truth) is None
    assert first_learned(readings[:1], {("a", "build"): 30, ("b", "build"): 1}, truth) == 1.0


# -- plan and predictions ---------------------------------------------------------------------------


def test_with_two_nodes_a_speed_either_may_freeze_and_both_are_probed():
    layout = make_layout(Settings(nodes_per_group=2))
    probed = {node.name: node.speed for node in layout.nodes if PROBED_LABEL in node.labels}
    assert [probed[name] for name in layout.freezing] == [2.0, 2.0]
    assert len(probed) == 4


def test_the_layout_has_an_idle_node_one_that_freezes_and_one_to_compare_them_with():
    probed = {node.name: node.speed for node in LAYOUT.nodes if PROBED_LABEL in node.labels}
    assert len(probed) == 3
    assert probed[FROZEN] == 2.0
    assert LAYOUT.swapped[FROZEN] == 8.0
    assert IDLE in probed
    assert [node.taints for node in LAYOUT.nodes if node.taints] == [[RESERVED]]


def test_recovery_is_learning_over_the_capacity_that_the_load_leaves():
    """Build takes 6.4 s on a node of speed 1, which has five slots; five samples raise an alarm."""
    found = predict(Settings(load=0.5, work_scale=0.4), LAYOUT)
    assert found.learning == pytest.approx(6.4 * (1 + 5 / 5), rel=0.01)
    assert found.recovery == pytest.approx(2 * found.learning)


def test_a_larger_spare_share_declares_a_node_dead_sooner():
    usual, bold = predict(SETTINGS, LAYOUT), predict(replace(SETTINGS, learn={"spare_share": 0.4}), LAYOUT)
    assert bold.cut_off == pytest.approx(usual.cut_off / 2)
    assert bold.recovery == usual.recovery


def test_the_plan_names_events_and_predictions():
    text = str(make_plan(Settings()))
    assert "pods a second on 8 nodes" in text
    assert "90 s: fast nodes become four times slower" in text
    assert "180 s: the containers of node-" in text
    assert "predicted recovery 26.7 s" in text
    assert "predicted cut-off 79.5 s" in text


# -- the whole report ------------------------------------------------------------------------------


def observations():
    """Ten builds on each of four workers before the swap at 100, and ten after; a freeze from 200 to 240."""
    arrivals, entries, sent = [], [], SentPods(0, 0.0)
    for node in LAYOUT.workers:
        for begin in (*range(5, 95, 9), *range(105, 195, 9)):
            one = Arrival(len(arrivals), float(begin), BUILD, 1.0, None)
            arrivals.append(one)
            sent.at[pod_name(one)] = float(begin)
            entries.append(entry(pod_name(one), node.name, begin + 0.1, begin + 4.0))
    entries += [
        entry(f"probe-{at}", IDLE, at, at + 1.0, klass=BENCHMARK) for at in (30.0, 60.0, 130.0, 160.0)
    ]
    entries.append(entry("probe-back", FROZEN, 241.0, 242.0, klass=BENCHMARK))
    speeds = {node.name: node.speed for node in LAYOUT.nodes}
    changes = [speed_change(0.0, name, speed) for name, speed in speeds.items()]
    changes += [speed_change(100.1, name, speed) for name, speed in LAYOUT.swapped.items()]
    changes += [speed_change(200.1, FROZEN, 0.0), speed_change(240.1, FROZEN, 8.0)]
    readings = [
        RatesAt(10.0, learned(speeds, "live")),
        RatesAt(104.0, learned(speeds, "live")),
        RatesAt(108.0, learned(LAYOUT.swapped, "live")),
        RatesAt(199.0, learned(LAYOUT.swapped, "live")),
        RatesAt(215.0, learned(LAYOUT.swapped, "dead")),
        RatesAt(250.0, learned(LAYOUT.swapped, "live")),
    ]
    events = {"swap": 100.0, "freeze": 200.0, "resend": 220.0, "thaw": 240.0, "end": 260.0}
    return Observations(sent, arrivals, changes, readings, events, FROZEN, set(), entries)


def learned(speeds, frozen_state):
    """Rates of every node: of builds on the workers, and of the benchmark on all nodes."""
    return [
        LearnedRate(node, kind, 0.1 * speed, 9, frozen_state if node == FROZEN else "live")
        for node, speed in speeds.items()
        for kind in (("build", BENCHMARK) if node != IDLE else (BENCHMARK,))
    ]


def test_every_target_is_met_when_all_goes_well():
    found = make_report(PLAN, observations())
    assert [one.what for one in found.wanted if not one.met] == []
    assert (found.learnt.pairs, found.learnt.seconds) == (4, 10.0)
    assert (found.recovered.pairs, found.recovered.seconds) == (4, 8.0)
    assert (found.frozen.dead_seconds, found.frozen.back_seconds, found.frozen.probes) == (15.0, 10.0, 1)
    assert (found.idle.probes, found.idle.pods) == (4, 0)
    assert found.probes.capacity_share == pytest.approx(5 / (5 * 4 * 260))
    assert found.sound
    assert json.loads(msgspec.json.encode(found))["wanted"][0]["met"]


def test_lost_doubled_and_misplaced_pods_are_counted():
    seen = observations()
    lost = Arrival(len(seen.arrivals), 50.0, BUILD, 1.0, None)
    seen.arrivals.append(lost)
    seen.sent.at[pod_name(lost)] = 50.0
    seen.entries = [*seen.entries, entry(pod_name(seen.arrivals[0]), IDLE, 70.0, 71.0)]
    found = make_report(PLAN, seen)
    assert (found.lost, found.doubled, found.violations, found.sound) == (1, 1, 1, False)


def test_a_real_pod_on_the_frozen_node_before_its_first_probe_is_no_return_by_probes():
    seen = observations()
    early = Arrival(len(seen.arrivals), 230.0, BUILD, 1.0, None)
    seen.arrivals.append(early)
    seen.sent.at[pod_name(early)] = 230.0
    seen.entries = [*seen.entries, entry(pod_name(early), FROZEN, 230.5, 240.5)]
    found = make_report(PLAN, seen)
    assert found.frozen.starts_while_out == 1
    assert found.frozen.last_start_seconds == pytest.approx(30.5)
    missed = [one.what for one in found.wanted if not one.met]
    assert missed == ["last real pod started on the frozen node", "returns after the thaw by probes"]


def test_the_picture_is_drawn(tmp_path):
    seen = observations()
    draw(PLAN, seen, make_report(PLAN, seen), tmp_path / "perturbations.png")
    assert (tmp_path / "perturbations.png").read_bytes().startswith(b"\x89PNG")
