"""The short demo without a cluster: plan, pairs, figures, sentence, tables and picture."""

import json
from dataclasses import replace
from types import SimpleNamespace

import msgspec
import pytest
from rich.console import Console

from eclectus_e2e.demo.experiment import EndedEarlyError
from eclectus_e2e.demo.schedulers import ECLECTUS, KUBE_SCHEDULER
from eclectus_e2e.demo.screen import RunId, Snapshot
from eclectus_e2e.demo.speeds import LearnedRate, NodeSpeed
from eclectus_e2e.demo.stream import run as stream_run
from eclectus_e2e.demo.stream.plan import short_plan
from eclectus_e2e.demo.stream.plots import draw_short
from eclectus_e2e.demo.stream.report import Figure, Run, make_short_report, sentence
from eclectus_e2e.demo.stream.tables import short_tables
from eclectus_e2e.demo.workload.arrivals import poisson_arrivals
from eclectus_e2e.demo.workload.mixed import SPEEDS
from eclectus_e2e.demo.workload.pods import pod_name
from eclectus_e2e.errors import StartError
from eclectus_e2e.pairs import Interval, ratio_interval
from eclectus_e2e.testbed.kubelet.pod_times import Counters, PodRecord

PLAN = short_plan([0.6], 20.0, 1, 5)
CLEAN = Counters(started=0, finished=0, killed=0, vanished=0, refused={}, overcommitted=0, violations=0)


def run(scheduler, seconds, *, later=None, pair=0, load=0.6, **more):
    """Every pod takes so long on one of the nodes that it may use; from the change of speeds on, `later`.

    `more` replaces fields of the run.
    """
    arrivals = poisson_arrivals(PLAN.seed + pair, 1.0, 20.0, PLAN.mix)
    sent = {pod_name(one): 1000.0 + one.at_seconds for one in arrivals}
    entries = []
    for one in arrivals:
        took = seconds if later is None or one.at_seconds < 10.0 else later
        allowed = [
            node
            for node in PLAN.nodes
            if (one.constraint is None or one.constraint.met_by(node.labels))
            and (not one.kind.gpus or "nvidia.com/gpu" in node.allocatable)
        ]
        node = allowed[one.number % len(allowed)]
        at = sent[pod_name(one)]
        entries.append(
            PodRecord(
                "default", pod_name(one), str(one.number), node.name, one.kind.name, 1.0, at + 0.1, at + took,
                "succeeded",
            )
        )  # fmt: skip
    learns = scheduler == ECLECTUS
    speeds = [NodeSpeed(node.name, node.speed, node.speed if learns else None, 9) for node in PLAN.nodes]
    snapshots = [
        Snapshot(RunId(scheduler, load), float(second), len(arrivals), 9, 5, speeds, [1] * len(speeds))
        for second in range(22)
    ]
    rates = [LearnedRate(node.name, "build", node.speed, 9) for node in PLAN.nodes_at_end] if learns else []
    found = Run(scheduler, load, pair, 0.0, arrivals, sent, [0.0], entries, CLEAN, rates, 0.0, snapshots)
    return replace(found, **more)


def pairs(ours, theirs, count=5, **more):
    """So many pairs, in alternating order; each takes a hundredth longer than the one before."""
    for pair in range(count):
        both = [
            run(name, seconds + pair / 100, pair=pair, **more)
            for name, seconds in ((ECLECTUS, ours), (KUBE_SCHEDULER, theirs))
        ]
        yield from both if pair % 2 == 0 else both[::-1]


def printed(runs):
    console = Console(width=120, record=True)
    for table in short_tables(make_short_report(PLAN, runs)):
        console.print(table)
    return console.export_text()


def test_the_plan_says_how_long_it_takes_and_what_it_shows():
    one, text = short_plan([0.6], 100.0, 1, 1), str(short_plan([0.6, 0.8], 100.0, 1, 5))
    assert one.run_seconds <= 240.0  # with the start of the control plane less than five minutes
    assert "about 20 min" in str(short_plan([0.6], 100.0, 1, 5))
    assert "pairs" not in str(one)
    assert "about 39 min" in text
    assert "12 nodes" in text
    assert "load 0.8, seed 1: 19.5 pods a second for 100 s, the same to eclectus and then to kube-" in text
    assert "5 such pairs" in text
    assert "after 50 s: the fast nodes become four times slower" in text


def test_both_get_the_same_pods_in_each_pair_and_alternate_in_being_first():
    plan = short_plan([0.6, 0.9], 20.0, 7, 3)
    order = [(level.load, pair, names[0]) for level, pair, names in plan.in_order()]
    first, second = ECLECTUS, KUBE_SCHEDULER
    assert order == [
        *((0.6, 0, first), (0.6, 1, second), (0.6, 2, first)),
        *((0.9, 0, first), (0.9, 1, second), (0.9, 2, first)),
    ]
    level = plan.levels[0]
    assert plan.arrivals(level, 1) == short_plan([0.6], 20.0, 8, 1).arrivals(level, 0)
    assert plan.arrivals(level, 1) != plan.arrivals(level, 0)


@pytest.mark.parametrize("cause", [KeyboardInterrupt(), StartError("eclectus did not start")])
def test_what_ends_a_run_early_leaves_the_pairs_that_were_over(cause, monkeypatch):
    done = []

    def ended(stream):
        if len(done) == 5:
            raise cause
        done.append(run(stream.scheduler, 1.0, pair=stream.pair, strangers_cores=0.25))
        return done[-1]

    monkeypatch.setattr(stream_run, "_run", ended)
    said = []
    with pytest.raises(EndedEarlyError) as early:
        stream_run.run_all(None, PLAN, SimpleNamespace(say=said.append))
    assert early.value.observations == done[:4]
    assert early.value.__cause__ is cause
    assert [one.scheduler for one in done[:4]] == [ECLECTUS, KUBE_SCHEDULER, KUBE_SCHEDULER, ECLECTUS]
    assert said[0].startswith("eclectus at load 0.6, pair 1 of 5: ")
    assert said[0].endswith("; about 6 min left")
    assert said[1] == (
        "eclectus at load 0.6, pair 1 of 5: mean response time 1.00 s; other processes used 0.25 cores"
    )


def test_before_a_pair_was_over_nothing_is_left(monkeypatch):
    def ended(stream):
        raise KeyboardInterrupt

    monkeypatch.setattr(stream_run, "_run", ended)
    with pytest.raises(KeyboardInterrupt):
        stream_run.run_all(None, PLAN, SimpleNamespace(say=len))


def test_speeds_change_half_way_and_the_capacity_stays_the_same():
    first = {node.name: node.speed for node in PLAN.nodes}
    after = {node.name: node.speed for node in PLAN.nodes_at_end}
    assert PLAN.perturbation.at_seconds == 10.0
    assert {after[name] / speed for name, speed in first.items()} == {4.0, 0.25}
    assert sorted(after.values()) == sorted(first.values()) == sorted([*SPEEDS] * 3)


def test_some_node_meets_each_constraint():
    for arrival in poisson_arrivals(1, 20.0, 100.0, PLAN.mix):
        if arrival.constraint is not None:
            assert any(arrival.constraint.met_by(node.labels) for node in PLAN.nodes)


def figure(name, ours, theirs, low, high, *, count=5):
    return Figure(name, ours, theirs, Interval(ours / theirs, low, high, count))


@pytest.mark.parametrize(
    ("figure", "verdict"),
    [
        (figure("mean", 0.9, 1.0, 0.8, 0.99), "won"),
        (figure("mean", 1.1, 1.0, 1.01, 1.2), "lost"),
        (figure("mean", 0.9, 1.0, 0.8, 1.01), "equal"),
        (figure("preferences met", 0.5, 1.0, 0.4, 0.6), "lost"),
        (figure("preferences met", 0.5, 0.4, 1.2, 1.3), "won"),
        (figure("mean", 0.5, 1.0, 0.4, 0.6, count=4), "too few pairs"),
        (Figure("mean", 1.0, 0.0, ratio_interval([])), "too few pairs"),
    ],
)
def test_an_interval_within_pairs_decides(figure, verdict):
    assert figure.verdict == verdict


def test_the_sentence_says_what_was_won_and_what_was_lost():
    mean = figure("mean response time", 2.0, 4.0, 0.4, 0.6)
    median = figure("median response time", 1.5, 1.0, 1.2, 1.8)
    p99 = figure("99th percentile", 3.0, 9.0, 0.2, 0.5)
    assert sentence([mean, median, p99]) == (
        "Eclectus won: mean response time 2.00 s, 0.50 (0.40 to 0.60) of kube-scheduler's 4.00 s (lower is "
        "better); won also: 99th percentile; lost: median response time."
    )
    lost = figure("mean response time", 4.4, 4.0, 1.05, 1.15)
    assert sentence([lost, p99, median]) == (
        "Eclectus lost: mean response time 4.40 s, 1.10 (1.05 to 1.15) of kube-scheduler's 4.00 s (lower is "
        "better); lost also: median response time; won: 99th percentile."
    )
    equal = figure("mean response time", 4.0, 4.0, 0.9, 1.1)
    assert sentence([equal]).startswith("Neither won: mean response time")
    few = Figure("mean response time", 1.0, 2.0, ratio_interval([0.5]))
    assert sentence([few]).startswith(
        "No verdict from 1 of at least 5 pairs: mean response time 1.00 s, 0.50 of"
    )
    nothing = Figure("mean response time", float("nan"), 4.0, ratio_interval([]))
    assert "no pod was timed" in sentence([nothing])


def test_the_tables_have_every_figure_every_pair_and_the_sentence():
    text = printed([*pairs(1.0, 4.0, later=1.2)])
    rows = {" ".join(line.split()) for line in text.splitlines()}
    assert "mean before the speeds change lower 1.02 s 4.02 s 0.25 (0.25 to 0.26) won" in rows
    assert "mean after the speeds change lower 1.20 s 1.20 s 1.00 (1.00 to 1.00) equal" in rows
    assert "mean wait before a pod runs lower 0.10 s 0.10 s 1.00 (1.00 to 1.00) equal" in rows
    assert any(row.startswith("preferences met higher 100%") for row in rows)
    assert text.index("preferences met") < text.index("Eclectus won: mean response time")
    assert "0 lost, 0 ran twice, 0 over-committed, 0 violations" in text
    assert "mean little" not in text


def test_each_half_of_a_pair_has_the_cores_of_others():
    first, second, *others = pairs(1.0, 4.0, count=2)
    text = printed([replace(first, strangers_cores=0.1), replace(second, strangers_cores=0.7), *others])
    rows = {" ".join(line.split()) for line in text.splitlines()}
    assert "1 eclectus 1.00 s 4.00 s 0.25 0.10 0.70" in rows
    assert "2 kube-scheduler 1.01 s 4.01 s 0.25 0.00 0.00" in rows
    assert "mean 1.00 s 4.00 s 0.25 0.05 0.35" in rows
    assert "Other processes used up to 0.7 cores, in 1 of 4 runs." in text
    assert "No verdict from 2 of at least 5 pairs" in text


def test_a_busy_machine_is_named():
    late, other = run(ECLECTUS, 1.0, late_seconds=[0.7]), run(KUBE_SCHEDULER, 2.0)
    assert "mean little" in printed([late, other])


def test_every_load_has_figures_and_a_sentence():
    runs = [*pairs(1.0, 2.0), *pairs(2.0, 1.0, load=0.9)]
    written = json.loads(msgspec.json.encode(make_short_report(PLAN, runs)))
    assert written["sound"]
    assert written["compared"]["0.6"]["sentence"].startswith("Eclectus won")
    assert written["compared"]["0.9"]["sentence"].startswith("Eclectus lost")
    mean = written["compared"]["0.6"]["figures"][0]
    assert (mean["eclectus"], mean["ratio"]["pairs"]) == (pytest.approx(1.02), 5)
    assert mean["ratio"]["low"] < 1.02 / 2.02 < mean["ratio"]["high"]
    assert written["changed_seconds"] == 10.0
    assert written["learned_within_third"] == 1.0  # against the speeds after the change
    assert written["ratios"]["eclectus"]["mean"] == pytest.approx(mean["ratio"]["mean"])
    text = printed(runs)
    assert text.index("Eclectus won") < text.index("load 0.9") < text.index("Eclectus lost")


def test_a_lost_pod_makes_the_report_unsound():
    runs = [*pairs(1.0, 2.0)]
    runs[4] = replace(runs[4], entries=runs[4].entries[1:])
    assert not make_short_report(PLAN, runs).sound
    assert "1 lost" in printed(runs)


@pytest.mark.parametrize("count", [1, 5])
def test_the_picture_is_drawn(tmp_path, count):
    runs = [*pairs(1.0, 2.0, count=count, later=3.0)]
    draw_short(PLAN, runs, make_short_report(PLAN, runs), tmp_path / "demo.png")
    assert (tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG")
