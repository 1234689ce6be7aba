"""The runner of experiments, and the plans and pictures of the stream experiments."""

import json
from contextlib import contextmanager
from dataclasses import replace

import msgspec
import pytest
from rich.console import Console

from eclectus_bench.experiments.comparison import comparison_plan
from eclectus_e2e.demo.experiment import EndedEarlyError, Experiment, run_experiment
from eclectus_e2e.demo.experiments import experiments
from eclectus_e2e.demo.options import read_options
from eclectus_e2e.demo.speeds import LearnedRate
from eclectus_e2e.demo.stream.plan import stream_plan
from eclectus_e2e.demo.stream.report import Run
from eclectus_e2e.demo.workload.arrivals import poisson_arrivals
from eclectus_e2e.demo.workload.pods import pod_name
from eclectus_e2e.testbed.kubelet.pod_times import Counters, PodRecord

CLEAN = Counters(started=0, finished=0, killed=0, vanished=0, refused={}, overcommitted=0, violations=0)


class Answer(msgspec.Struct):
    sound: bool


def recorded(steps):
    """An experiment that records its steps in the order in which they are called."""

    @contextmanager
    def started(plan, directory):
        steps.append(f"start in {directory.name}")
        try:
            yield "cluster"
        finally:
            steps.append("stop")

    def run(environment, plan, shown):
        steps.append(f"run {plan} on {environment}")
        return [plan]

    def report(plan, observations):
        steps.append("report")
        return Answer(sound=False)

    def draw(plan, observations, report, file):
        file.write_text("picture")

    def tables(plan, observations, report):
        yield "the table"

    files = ("answer.json", "answer.png")
    return Experiment("the plan", *files, started, run, report, draw, tables, note="the note")


def test_an_experiment_prints_its_plan_runs_and_writes_report_and_picture(tmp_path):
    steps, console = [], Console(record=True, width=80)
    assert not run_experiment(recorded(steps), tmp_path / "new", console).sound
    assert steps == ["start in cluster", "run the plan on cluster", "stop", "report"]
    assert json.loads((tmp_path / "new" / "answer.json").read_text()) == {"sound": False}
    assert (tmp_path / "new" / "answer.png").read_text() == "picture"
    text = console.export_text()
    assert text.index("the plan") < text.index("the table") < text.index("the note")


def test_what_was_observed_before_an_early_end_is_written_and_printed(tmp_path):
    steps, console = [], Console(record=True, width=80)

    def interrupted(environment, plan, shown):
        raise EndedEarlyError([plan]) from KeyboardInterrupt()

    experiment = replace(recorded(steps), run=interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_experiment(experiment, tmp_path, console)
    assert steps == ["start in cluster", "stop", "report"]
    assert json.loads((tmp_path / "answer.json").read_text()) == {"sound": False}
    text = console.export_text()
    assert text.index("ended early") < text.index("the table")
    assert "the note" not in text  # of a cluster that was kept


def test_the_stream_plan_has_side_loads_for_eclectus_and_kube_scheduler_alone():
    plan = stream_plan([0.8, 0.5, 0.9], 90.0, 1)
    assert [level.load for level in plan.levels] == [0.8, 0.5, 0.9]
    assert list(plan.levels[0].schedulers) == ["eclectus", "kube-scheduler", "eclectus-uniform"]
    assert list(plan.levels[1].schedulers) == ["eclectus", "kube-scheduler"]
    assert plan.levels[1].stream_seconds == pytest.approx(15.0 + 0.45 * 90.0)
    text = str(plan)
    assert "30 nodes" in text
    assert "load 0.8, seed 1: 23.4 pods a second for 105 s, the same to eclectus and then to kube-sch" in text
    assert len(stream_plan([0.8, 0.5], 90.0, 1, ["eclectus-uniform"]).levels) == 1


def test_the_comparison_sends_as_many_pods_at_each_load():
    plan = comparison_plan(seconds=120.0, seed=1, schedulers=["eclectus"], loads=[0.5, 0.9])
    assert len(plan.nodes) == 60
    assert [level.load * level.stream_seconds for level in plan.levels] == pytest.approx([108.0, 108.0])


def observed(plan):
    """Every pod of every run starts at once on the first node and takes its work at that node's speed."""
    (level,) = plan.levels
    arrivals = poisson_arrivals(plan.seed, 2.0, level.stream_seconds, plan.mix)
    node = plan.nodes[0]
    for name in level.schedulers:
        sent = {pod_name(one): 1000.0 + one.at_seconds for one in arrivals}
        entries = [
            PodRecord(
                "default", pod, pod, node.name, one.kind.name, 1.0, at, at + one.work_seconds / node.speed,
                "succeeded",
            )
            for one, (pod, at) in zip(arrivals, sent.items(), strict=True)
        ]  # fmt: skip
        rates = [LearnedRate(node.name, "build", 0.1, 9)] if name == "eclectus" else []
        yield Run(name, level.load, 0, level.warm_seconds, arrivals, sent, [0.0], entries, CLEAN, rates, 0.0)


@pytest.mark.parametrize(
    "arguments",
    [
        "stream --quick",
        "stream --quick --seed 2 --keep",
        "compare --quick --seconds 12 --schedulers eclectus,kube-scheduler,eclectus-pot",
    ],
)
def test_stream_experiments_draw_and_print_what_they_observed(arguments, tmp_path):
    (experiment,) = experiments(read_options(arguments.split()))
    plan = experiment.plan
    runs = list(observed(plan))
    report = experiment.report(plan, runs)
    experiment.draw(plan, runs, report, tmp_path / "picture.png")
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    console = Console(width=120, record=True)
    for table in experiment.tables(plan, runs, report):
        console.print(table)
    text = console.export_text()
    assert "kube-scheduler" in text
    assert "lower is better" in text
    assert ("make down" in experiment.note) == ("--keep" in arguments)
