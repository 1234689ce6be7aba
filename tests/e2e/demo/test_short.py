"""The short demo without a cluster: plan, figures, sentence, table and picture."""

import json
from dataclasses import replace

import msgspec
import pytest
from rich.console import Console

from eclectus_e2e.demo.schedulers import ECLECTUS, KUBE_SCHEDULER
from eclectus_e2e.demo.screen import RunId, Snapshot
from eclectus_e2e.demo.speeds import LearnedRate, NodeSpeed
from eclectus_e2e.demo.stream.plan import short_plan
from eclectus_e2e.demo.stream.plots import draw_short
from eclectus_e2e.demo.stream.report import Figure, Run, make_short_report, sentence
from eclectus_e2e.demo.stream.tables import short_tables
from eclectus_e2e.demo.workload.arrivals import poisson_arrivals
from eclectus_e2e.demo.workload.mixed import SPEEDS
from eclectus_e2e.demo.workload.pods import pod_name
from eclectus_e2e.testbed.kubelet.pod_times import Counters, PodRecord

PLAN = short_plan(seconds=20.0)
CLEAN = Counters(started=0, finished=0, killed=0, vanished=0, refused={}, overcommitted=0, violations=0)


def run(scheduler, seconds, *, later=None, late=0.0):
    """Every pod takes so long on one of the nodes that it may use; from the change of speeds on, `later`."""
    arrivals = poisson_arrivals(PLAN.seed, 1.0, 20.0, PLAN.mix)
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
        Snapshot(
            RunId(scheduler, PLAN.main_load), float(second), len(arrivals), 9, 5, speeds, [1] * len(speeds)
        )
        for second in range(22)
    ]
    rates = [LearnedRate(node.name, "build", node.speed, 9) for node in PLAN.nodes_at_end] if learns else []
    return Run(scheduler, PLAN.main_load, 0.0, arrivals, sent, [late], entries, CLEAN, rates, snapshots)


def printed(runs):
    console = Console(width=120, record=True)
    for table in short_tables(make_short_report(PLAN, runs)):
        console.print(table)
    return console.export_text()


def test_the_plan_says_how_long_it_takes_and_what_it_shows():
    plan = short_plan()
    assert plan.run_seconds <= 240.0  # with the start of the control plane less than five minutes
    text = str(plan)
    assert "about 4 min" in text
    assert "12 nodes" in text
    assert "to eclectus and then to kube-scheduler: load 0.6, seed 1" in text
    assert "after 50 s: the fast nodes become four times slower" in text


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


@pytest.mark.parametrize(
    ("figure", "verdict"),
    [
        (Figure("mean", 0.9, 1.0), "better"),
        (Figure("mean", 1.1, 1.0), "worse"),
        (Figure("mean", 1.04, 1.0), "equal"),
        (Figure("met", 0.5, 1.0, lower_is_better=False), "worse"),
        (Figure("met", 0.5, 0.4, lower_is_better=False), "better"),
        (Figure("mean", float("nan"), 1.0), "not measured"),
        (Figure("mean", 1.0, 0.0), "not measured"),
    ],
)
def test_a_figure_is_better_or_worse_by_its_direction(figure, verdict):
    assert figure.verdict == verdict


def test_the_sentence_says_what_was_won_and_what_was_lost():
    mean, median = Figure("mean response time", 2.0, 4.0), Figure("median response time", 1.5, 1.0)
    assert sentence([mean, median, Figure("99th percentile", 3.0, 9.0)]) == (
        "Eclectus won: mean response time 2.00 s, 0.50 of kube-scheduler's 4.00 s (lower is better); "
        "better also in 99th percentile; worse in median response time."
    )
    lost = Figure("mean response time", 4.4, 4.0)
    assert sentence([lost, Figure("99th percentile", 3.0, 9.0), median]) == (
        "Eclectus lost: mean response time 4.40 s, 1.10 of kube-scheduler's 4.00 s (lower is better); "
        "worse also in median response time; better in 99th percentile."
    )
    assert sentence([Figure("mean response time", 4.0, 4.0)]).startswith("Neither won: mean response time")
    assert "no pod was timed" in sentence([Figure("mean response time", float("nan"), 4.0)])


def test_the_table_has_every_figure_and_the_sentence_is_below_it():
    text = printed([run(ECLECTUS, 1.0, later=1.2), run(KUBE_SCHEDULER, 4.0, later=1.0)])
    rows = {" ".join(line.split()) for line in text.splitlines()}
    assert "mean before the speeds change lower 1.00 s 4.00 s 0.25 better" in rows
    assert "mean after the speeds change lower 1.20 s 1.00 s 1.20 worse" in rows
    assert "mean wait before a pod runs lower 0.10 s 0.10 s 1.00 equal" in rows
    assert any(row.startswith("preferences met higher 100%") for row in rows)
    assert text.index("preferences met") < text.index("Eclectus won: mean response time")
    assert "0 lost, 0 ran twice, 0 over-committed, 0 violations" in text
    assert "mean little" not in text


def test_a_busy_machine_is_named():
    assert "mean little" in printed([run(ECLECTUS, 1.0, late=0.7), run(KUBE_SCHEDULER, 2.0)])


def test_the_report_has_the_figures_and_the_sentence():
    report = make_short_report(PLAN, [run(ECLECTUS, 1.0), run(KUBE_SCHEDULER, 2.0)])
    written = json.loads(msgspec.json.encode(report))
    assert written["sound"]
    assert written["sentence"].startswith("Eclectus won")
    assert written["figures"][0]["eclectus"] == pytest.approx(1.0)
    assert written["changed_seconds"] == 10.0
    assert written["learned_within_third"] == 1.0  # against the speeds after the change
    assert written["ratios"]["eclectus"]["mean"] == pytest.approx(0.5)


def test_a_lost_pod_makes_the_report_unsound():
    runs = [run(ECLECTUS, 1.0), run(KUBE_SCHEDULER, 2.0)]
    runs[0] = replace(runs[0], entries=runs[0].entries[1:])
    assert not make_short_report(PLAN, runs).sound
    assert "1 lost" in printed(runs)


def test_the_picture_is_drawn(tmp_path):
    runs = [run(ECLECTUS, 1.0, later=3.0), run(KUBE_SCHEDULER, 2.0)]
    draw_short(PLAN, runs, make_short_report(PLAN, runs), tmp_path / "demo.png")
    assert (tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG")
