"""The second act's arithmetic: what is true, what is learned of it, what was predicted, who waited."""

import json
from dataclasses import replace

import msgspec
import pytest

from eclectus.api.names import PROBED_LABEL
from eclectus_e2e.demo.load import Sent
from eclectus_e2e.demo.mixed import CLASSES, SCAN, SPEEDS, scan_factor
from eclectus_e2e.demo.objects import pod_name
from eclectus_e2e.demo.perturbations.plan import BENCH, IDLE, RESERVED, Plan, cast
from eclectus_e2e.demo.perturbations.plots import draw
from eclectus_e2e.demo.perturbations.prediction import Prediction, predict
from eclectus_e2e.demo.perturbations.report import report
from eclectus_e2e.demo.perturbations.run import Noted
from eclectus_e2e.demo.perturbations.truth import (
    Change,
    Instant,
    Truth,
    change,
    enough,
    first_learned,
    judged,
    share_within_third,
)
from eclectus_e2e.demo.pod_waits import Starts, Stay, Waiting, starts, taken
from eclectus_e2e.demo.speeds import Cell
from eclectus_e2e.demo.stream import Arrival
from eclectus_e2e.testbed.kubelet.journal import Entry

BUILD = CLASSES[1]
PLAN = Plan(each=1)
CAST = cast(PLAN)
EXPECTED = Prediction(learning=5.0, recovery=10.0, cut_off=20.0)


def entry(name, node, started, finished, *, klass="build", outcome="succeeded"):
    return Entry("default", name, name, node, klass, 1.0, started, finished, outcome)


def cells(rates, state="live"):
    return [Cell(node, "build", rate, 9, state) for node, rate in rates.items()]


# -- truth and learning ----------------------------------------------------------------------------


def test_a_node_is_what_its_newest_change_made_it():
    truth = Truth([change(10.0, "a", 8.0), change(0.0, "a", 1.0)])
    assert truth.speed(("a", "build"), 9.9) == 1.0
    assert truth.speed(("a", "build"), 10.0) == 8.0
    assert truth.speed(("a", SCAN), 10.0) == 8.0 * scan_factor(8.0) == 1.0


def test_the_wider_its_times_the_more_samples_a_kind_of_work_needs():
    assert [enough(replace(BUILD, shape=shape)) for shape in (1.0, 4.0, 9.0)] == [60, 15, 8]


def test_only_what_ran_since_the_change_counts_as_samples():
    truth = Truth([change(0.0, "a", 1.0), change(100.0, "a", 8.0)])
    before = [entry(f"b{i}", "a", 10.0 + i, 90.0 + i) for i in range(8)]
    after = [entry(f"c{i}", "a", 101.0 + i, 110.0) for i in range(7)]
    assert judged(before, truth, CLASSES, until=99.0).keys() == {("a", "build")}
    assert judged([*before, *after], truth, CLASSES, until=200.0) == {}
    enough_of_them = [*after, entry("last", "a", 120.0, 121.0)]
    assert judged(enough_of_them, truth, CLASSES, until=200.0) == {("a", "build"): 8}
    killed = [entry(f"k{i}", "a", 101.0, 102.0, outcome="killed") for i in range(9)]
    assert judged(killed, truth, CLASSES, until=200.0) == {}


def test_a_scale_common_to_all_is_no_error_and_silence_is_one():
    truth = Truth([change(0.0, node, speed) for node, speed in zip("abcd", SPEEDS, strict=True)])
    weights = {(node, "build"): 1 for node in "abcd"}

    def share(**rates):
        return share_within_third(Instant(1.0, cells(rates)), weights, truth)

    assert share(a=0.1, b=0.2, c=0.4, d=0.8) == 1.0
    assert share(a=0.1, b=0.2, c=0.8, d=0.8) == 0.75
    assert share(a=0.1, b=0.2, c=0.4) == 0.75
    weights["d", "build"] = 7
    assert share(a=0.1, b=0.2, c=0.4) == 0.3


def test_learned_is_when_nearly_all_are_right():
    truth = Truth([Change(0.0, node, {"build": 1.0}) for node in "ab"])
    instants = [Instant(1.0, cells({"a": 1.0})), Instant(2.0, cells({"a": 1.0, "b": 1.1}))]
    both = {("a", "build"): 1, ("b", "build"): 1}
    assert first_learned(instants, both, truth) == 2.0
    assert first_learned(instants[:1], both, truth) is None
    assert first_learned(instants[:1], {("a", "build"): 30, ("b", "build"): 1}, truth) == 1.0


# -- the plan and what it promises -----------------------------------------------------------------


def test_the_cast_has_an_idle_node_one_that_freezes_and_one_to_compare_them_with():
    probed = {node.name: node.speed for node in CAST.nodes if PROBED_LABEL in node.labels}
    assert len(probed) == 3
    assert probed[CAST.frozen] == 2.0
    assert CAST.swapped[CAST.frozen] == 8.0
    assert IDLE in probed
    assert [node.taints for node in CAST.nodes if node.taints] == [[RESERVED]]


def test_recovery_is_learning_and_the_backlog_over_what_the_load_leaves():
    """Build takes 6.4 s on a node of speed 1, which has five slots; five samples are an alarm."""
    found = predict(Plan(load=0.5, size=0.4), CAST)
    assert found.learning == pytest.approx(6.4 * (1 + 5 / 5), rel=0.01)
    assert found.recovery == pytest.approx(2 * found.learning)


def test_a_larger_share_for_silence_makes_the_verdict_quicker():
    usual, bold = predict(PLAN, CAST), predict(replace(PLAN, learn={"spare_share": 0.4}), CAST)
    assert bold.cut_off == pytest.approx(usual.cut_off / 2)
    assert bold.recovery == usual.recovery


# -- who waited ------------------------------------------------------------------------------------


def test_waiting_is_sent_and_not_started():
    waiting = Waiting(sent=[1.0, 2.0, 3.0], started=[2.5, 9.0])
    assert [waiting.at(at) for at in (0.5, 2.2, 2.6, 10.0)] == [0, 2, 1, 1]


def stay(sent, started, ended, millicores=1000):
    return Stay("a", sent, started, ended, millicores)


PROBE = stay(2.0, 2.0, 5.0)


@pytest.mark.parametrize(
    ("pod", "others", "room", "met", "unmet"),
    [
        (stay(3.0, 3.5, 7.0), [], 1000, [0.5], []),  # alone with the probe on a node of one core
        (stay(0.0, 6.0, 7.0), [], 1000, [6.0], []),  # held up by it, one might think
        (stay(1.0, 2.5, 7.0), [], 1000, [1.5], []),  # the probe came while it started
        (stay(3.0, 3.5, 7.0), [], 2000, [], [0.5]),  # there is room for both
        (stay(5.5, 6.0, 7.0), [], 1000, [], [0.5]),  # it came when the probe had gone
        (stay(3.0, 4.5, 7.0), [stay(0.0, 0.0, 4.0)], 1000, [], []),  # another was in its way
        (stay(3.0, 3.5, 7.0), [stay(0.0, 0.0, 4.0)], 2000, [0.5], []),  # three, and room for two
    ],
)
def test_who_meets_a_probe_is_who_comes_while_one_runs_in_its_room(pod, others, room, met, unmet):
    found = starts([pod, *others], [PROBE], {"a": room})
    alone = [one.started - one.sent for one in others if one.started <= 0.0 and one.ended <= 4.0]
    assert found == (Starts.of(met), Starts.of([*unmet, *alone]))


def test_nobody_is_delayed_if_none_who_met_a_probe_started_later_than_others():
    pods = [stay(0.0, 0.9, 1.0), stay(3.0, 3.5, 7.0)]
    assert taken(pods, [PROBE], {"a": 1000}, 10.0).delay_nobody
    assert not taken(pods[1:], [PROBE], {"a": 1000}, 10.0).delay_nobody, "with whom should it be compared?"
    assert not taken([pods[0], stay(3.0, 5.0, 7.0)], [PROBE], {"a": 1000}, 10.0).delay_nobody
    assert taken(pods, [], {"a": 1000}, 10.0).delay_nobody


# -- the whole report ------------------------------------------------------------------------------


def noted():
    """Four workers, ten builds on each before the swap at 100 and after it; then the frost, 200 to 240."""
    arrivals, entries, sent = [], [], Sent(0, 0.0)
    for node in CAST.workers:
        for begin in (*range(5, 95, 9), *range(105, 195, 9)):
            one = Arrival(len(arrivals), float(begin), BUILD, 1.0, None)
            arrivals.append(one)
            sent.at[pod_name(one)] = float(begin)
            entries.append(entry(pod_name(one), node.name, begin + 0.1, begin + 4.0))
    entries += [entry(f"probe-{at}", IDLE, at, at + 1.0, klass=BENCH) for at in (30.0, 60.0, 130.0, 160.0)]
    entries.append(entry("probe-back", CAST.frozen, 241.0, 242.0, klass=BENCH))
    speeds = {node.name: node.speed for node in CAST.nodes}
    changes = [change(0.0, name, speed) for name, speed in speeds.items()]
    changes += [change(100.1, name, speed) for name, speed in CAST.swapped.items()]
    changes += [change(200.1, CAST.frozen, 0.0), change(240.1, CAST.frozen, 8.0)]
    instants = [
        Instant(10.0, believed(speeds, "live")),
        Instant(104.0, believed(speeds, "live")),
        Instant(108.0, believed(CAST.swapped, "live")),
        Instant(199.0, believed(CAST.swapped, "live")),
        Instant(215.0, believed(CAST.swapped, "dead")),
        Instant(250.0, believed(CAST.swapped, "live")),
    ]
    marks = {"swap": 100.0, "freeze": 200.0, "ended": 220.0, "thaw": 240.0, "over": 260.0}
    return Noted(sent, arrivals, changes, instants, marks, set(), entries)


def believed(speeds, frozen_state):
    """What is said of every node: builds of the workers, the benchmark of the idle one and of them."""
    return [
        Cell(node, kind, 0.1 * speed, 9, frozen_state if node == CAST.frozen else "live")
        for node, speed in speeds.items()
        for kind in (("build", BENCH) if node != IDLE else (BENCH,))
    ]


def test_the_report_of_an_act_in_which_all_goes_well():
    found = report(noted(), PLAN, CAST, EXPECTED)
    assert [one.what for one in found.wanted if not one.met] == []
    assert (found.learnt.cells, found.learnt.seconds) == (4, 10.0)
    assert (found.recovered.cells, found.recovered.seconds) == (4, 8.0)
    assert (found.frozen.dead_seconds, found.frozen.back_seconds, found.frozen.probes) == (15.0, 10.0, 1)
    assert (found.idle.probes, found.idle.pods) == (4, 0)
    assert found.probes.capacity_share == pytest.approx(5 / (5 * 4 * 260))
    assert found.sound
    assert json.loads(msgspec.json.encode(found))["wanted"][0]["met"]


def test_what_is_lost_or_runs_where_it_must_not_is_told():
    story = noted()
    lost = Arrival(len(story.arrivals), 50.0, BUILD, 1.0, None)
    story.arrivals.append(lost)
    story.sent.at[pod_name(lost)] = 50.0
    story.entries = [*story.entries, entry(pod_name(story.arrivals[0]), IDLE, 70.0, 71.0)]
    found = report(story, PLAN, CAST, EXPECTED)
    assert (found.lost, found.doubled, found.violations, found.sound) == (1, 1, 1, False)


def test_real_work_on_the_frozen_node_before_its_first_probe_is_no_return_by_probes():
    story = noted()
    early = Arrival(len(story.arrivals), 230.0, BUILD, 1.0, None)
    story.arrivals.append(early)
    story.sent.at[pod_name(early)] = 230.0
    story.entries = [*story.entries, entry(pod_name(early), CAST.frozen, 230.5, 240.5)]
    found = report(story, PLAN, CAST, EXPECTED)
    assert found.frozen.starts_while_out == 1
    assert found.frozen.last_start_seconds == pytest.approx(30.5)
    missed = [one.what for one in found.wanted if not one.met]
    assert missed == ["last real pod started on the frozen node", "returns after the thaw by probes"]


def test_the_picture_is_drawn(tmp_path):
    story = noted()
    draw(report(story, PLAN, CAST, EXPECTED), story, PLAN, CAST, tmp_path / "act-two.png")
    assert (tmp_path / "act-two.png").read_bytes().startswith(b"\x89PNG")
