"""The experiment on scarce nodes without a cluster: nodes, batches, plan, tables and picture."""

from collections import Counter
from dataclasses import replace
from itertools import groupby
from statistics import mean

import pytest
from rich.console import Console

from demo_runs import EPOCH, entry, run
from eclectus_bench.experiments.scarce import (
    MIX,
    SHARE,
    batch_arrivals,
    scarce_experiment,
    scarce_nodes,
    scarce_plan,
)
from eclectus_e2e.demo.schedulers import (
    ECLECTUS,
    ECLECTUS_PHOENIX,
    KUBE_SCHEDULER,
    SCHEDULERS,
    configure,
)
from eclectus_e2e.demo.stream.report import CONSTRAINED, FREE, PREFERRING, group
from eclectus_e2e.demo.stream.tables import busy_warning
from eclectus_e2e.demo.workload.arrivals import capacity
from eclectus_e2e.testbed.kubelet.quantities import amount

NODES = scarce_nodes()
PLAN = scarce_plan([0.8], 20.0)
MANY = batch_arrivals(7, 20.0, 4000.0, MIX)


def cores(nodes):
    return sum(amount("cpu", node.allocatable["cpu"]) for node in nodes) / 1000


def test_every_set_has_some_nodes_and_most_nodes_are_in_none():
    allowed = [{node.name for node in NODES if kind.constraint.met_by(node.labels)} for kind in MIX.scarce]
    assert [len(names) for names in allowed] == [3, 3, 3]
    assert len(set.union(*allowed)) == 8
    assert len(NODES) == 20
    assert len({node.name for node in NODES}) == 20


def test_gpu_nodes_have_as_many_gpus_as_cores():
    (gpu,) = (kind for kind in MIX.scarce if kind.gpus)
    for node in NODES:
        expected = node.allocatable["cpu"] if gpu.constraint.met_by(node.labels) else None
        assert node.allocatable.get("nvidia.com/gpu") == expected


def test_each_preference_is_met_by_some_scarce_and_some_other_nodes():
    for preference, _ in MIX.free.constraints:
        met = [any(kind.constraint.met_by(node.labels) for kind in MIX.scarce)
               for node in NODES if preference.met_by(node.labels)]  # fmt: skip
        assert True in met
        assert False in met


def test_at_the_usual_load_a_kind_of_batch_needs_half_of_its_nodes():
    work = mean(one.work_seconds for one in MANY)
    for kind in MIX.scarce:
        slots = cores([node for node in NODES if kind.constraint.met_by(node.labels)])
        assert 0.8 * capacity(NODES, MIX.free) * SHARE * work / slots == pytest.approx(0.48, abs=0.05)


def test_pods_come_at_the_rate_and_in_the_shares_that_are_asked_for():
    assert len(MANY) / 4000.0 == pytest.approx(20.0, rel=0.05)
    found = Counter(group(one) for one in MANY)
    assert found[CONSTRAINED] / len(MANY) == pytest.approx(3 * SHARE, rel=0.08)
    assert found[PREFERRING] / (found[PREFERRING] + found[FREE]) == pytest.approx(0.2, rel=0.05)
    sets = Counter(one.constraint for one in MANY if group(one) == CONSTRAINED)
    assert [sets[kind.constraint] / len(MANY) for kind in MIX.scarce] == pytest.approx([SHARE] * 3, rel=0.15)


def test_a_batch_comes_at_one_time_with_one_class_and_one_constraint():
    batches = [
        list(pods)
        for _, pods in groupby(
            (one for one in MANY if group(one) == CONSTRAINED), lambda one: (one.at_seconds, one.constraint)
        )
    ]
    assert {len(pods) for pods in batches} == {MIX.batch}
    assert all(len({one.kind for one in pods}) == 1 for pods in batches)
    assert all(len({one.work_seconds for one in pods}) == MIX.batch for pods in batches)
    gpus = {kind.constraint: kind.gpus for kind in MIX.scarce}
    assert all(one.kind.gpus == gpus[one.constraint] for pods in batches for one in pods)


def test_arrivals_are_numbered_in_order_and_depend_on_the_seed():
    assert [one.number for one in MANY] == list(range(len(MANY)))
    times = [one.at_seconds for one in MANY]
    assert times == sorted(times)
    assert batch_arrivals(7, 20.0, 100.0, MIX) == batch_arrivals(7, 20.0, 100.0, MIX)
    assert batch_arrivals(7, 20.0, 100.0, MIX) != batch_arrivals(8, 20.0, 100.0, MIX)


def test_the_plan_says_how_long_it_takes_and_what_it_sends():
    plan = scarce_plan([0.8], 80.0)
    assert plan.run_seconds <= 360.0
    text = str(plan)
    assert "Batches on scarce nodes: about" in text
    assert "20 equally fast nodes, few of each of: arch arm64, gpu-model h100, nic-gbps 100" in text
    assert "27% of the pods come in batches of 8" in text


def observed(waits):
    """The pods of the plan under each scheduler: waits of constrained and of other pods, then 1 s."""
    (level,) = PLAN.levels
    arrivals = PLAN.arrivals(level, 0)
    for name, (constrained, others) in waits.items():
        records = []
        for one in arrivals:
            is_hard = group(one) == CONSTRAINED
            where = next(
                node
                for node in NODES
                if not one.constraint or not is_hard or one.constraint.met_by(node.labels)
            )
            at = EPOCH + one.at_seconds + (constrained if is_hard else others)
            records.append(entry(one, where.name, at, at + 1.0))
        yield run(arrivals, records, name, level.load)


def test_the_tables_have_the_wait_of_each_group_as_a_share_of_kube_schedulers(tmp_path):
    experiment = scarce_experiment(PLAN)
    runs = list(observed({"eclectus": (1.0, 0.3), "kube-scheduler": (4.0, 0.2)}))
    report, console = experiment.report(PLAN, runs), Console(width=120, record=True)
    for table in experiment.tables(PLAN, runs, report):
        console.print(table)
    rows = [" ".join(line.split()) for line in console.export_text().splitlines()]
    assert "constrained pods: mean wait 1.00 (0.25) 4.00" in rows
    assert "free pods: mean wait 0.30 (1.50) 0.20" in rows
    assert "constrained pods: mean response time 2.00 (0.40) 5.00" in rows
    assert any(row.startswith("preferences met ") for row in rows)
    assert any(row.startswith("arch arm64 eclectus ") for row in rows)
    assert not any("mean little" in row for row in rows)
    experiment.draw(PLAN, runs, report, tmp_path / "scarce.png")
    assert (tmp_path / "scarce.png").read_bytes().startswith(b"\x89PNG")


def test_a_busy_machine_is_named():
    (one,) = observed({"eclectus": (1.0, 0.3)})
    report = scarce_experiment(PLAN).report(PLAN, [replace(one, late_seconds=[0.7])])
    (warning,) = busy_warning(report)
    assert "0.7 s late" in warning


def test_cores_of_others_are_named():
    (one,) = observed({"eclectus": (1.0, 0.3)})
    report = scarce_experiment(PLAN).report(PLAN, [replace(one, strangers_cores=0.7)])
    assert list(busy_warning(report)) == ["[yellow]Other processes used up to 0.7 cores, in 1 of 1 runs.[/]"]


def test_a_second_load_has_tables_of_its_own():
    experiment, console = scarce_experiment(PLAN), Console(width=120, record=True)
    runs = list(observed({"eclectus": (1.0, 0.3)}))
    runs += [replace(one, load=0.9) for one in runs]
    for table in experiment.tables(PLAN, runs, experiment.report(PLAN, runs)):
        console.print(table)
    text = console.export_text()
    assert text.index("Batches on scarce nodes, load 0.8") < text.index("Batches on scarce nodes, load 0.9")


def test_a_scheduler_alone_has_no_shares():
    experiment, console = scarce_experiment(PLAN), Console(width=120, record=True)
    runs = list(observed({"eclectus": (1.0, 0.3)}))
    for table in experiment.tables(PLAN, runs, experiment.report(PLAN, runs)):
        console.print(table)
    rows = [" ".join(line.split()) for line in console.export_text().splitlines()]
    assert "constrained pods: mean wait 1.00" in rows


def test_phoenix_has_prices_and_no_speeds():
    configuration = {
        "learn": {"policy": "rosella"},
        "profiles": [{"place": {"policy": "rosella"}, "order": {}}],
    }
    configure(SCHEDULERS[ECLECTUS_PHOENIX], configuration)
    assert configuration == {
        "learn": {"policy": "none"},
        "profiles": [{"place": {"policy": "phoenix"}, "order": {}}],
    }
    (level,) = scarce_plan([0.8], 80.0).levels
    assert list(level.schedulers) == [ECLECTUS, ECLECTUS_PHOENIX, KUBE_SCHEDULER]
