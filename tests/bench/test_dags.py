"""DagJobs beside Argo Workflows: the same graphs, what Argo's executor sends, and how runs are shown."""

from __future__ import annotations

import dataclasses
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from msgspec.structs import replace

from eclectus_bench import __main__ as bench
from eclectus_bench.api_writes import writes
from eclectus_bench.dags import argo, contestants, report
from eclectus_bench.dags import run as graph_runs
from eclectus_bench.dags.executor import NODE_ID, REPORTED_LABEL, WORKFLOW_LABEL, Pod, reports
from eclectus_bench.dags.plan import FULL, QUICK, WIDTH, dag_job, diamonds, workflow
from eclectus_bench.dags.reckoning import Run
from eclectus_bench.dags.run import Status, measure
from eclectus_bench.dags.writes import of_engine_and_scheduler, of_executor
from eclectus_bench.schedulers import ECLECTUS
from eclectus_e2e.pairs import EQUAL, FEW_PAIRS, LOST, WON
from eclectus_e2e.paths import ARGO_MODULE
from eclectus_e2e.testbed import clusters

STEPS = tuple(diamonds(2))
RUN = Run(
    contestant=ECLECTUS,
    pair=0,
    steps=90,
    seconds=9.0,
    graph_seconds=5.0,
    writes={"POST pods": 90, "POST pods/binding": 180},
    executor_writes=0,
    engine_cpu_seconds=0.9,
    scheduler_cpu_seconds=0.45,
    plane_cpu_seconds=1.8,
    strangers_cores=0.0,
)
METRICS = """
apiserver_request_total{code="201",dry_run="",resource="pods",subresource="",verb="POST"} 5
apiserver_request_total{code="409",dry_run="",resource="pods",subresource="",verb="POST"} 1
apiserver_request_total{code="201",dry_run="All",resource="pods",subresource="",verb="POST"} 3
apiserver_request_total{code="200",dry_run="",resource="pods",subresource="status",verb="PATCH"} 10
apiserver_request_total{code="201",dry_run="",resource="workflows",subresource="",verb="POST"} 2
apiserver_request_total{code="200",dry_run="",resource="workflows",subresource="",verb="PUT"} 7
apiserver_request_total{code="201",dry_run="",resource="workflowtaskresults",subresource="",verb="POST"} 5
apiserver_request_total{code="200",dry_run="",resource="workflowtaskresults",subresource="",verb="PATCH"} 10
apiserver_request_total{code="200",resource="workflowtaskresults",subresource="",verb="DELETECOLLECTION"} 2
apiserver_request_total{code="200",dry_run="",resource="leases",subresource="",verb="PUT"} 90
apiserver_request_total{code="200",dry_run="",resource="pods",subresource="",verb="LIST"} 80
"""


def test_diamonds_follow_each_other() -> None:
    after = {each.name: each.after for each in STEPS}
    assert len(STEPS) == 1 + 2 * (WIDTH + 1)
    assert after["begin"] == ()
    assert after["side-1-2"] == ("begin",)
    assert after["side-2-3"] == ("join-1",)
    assert after["join-2"] == ("side-2-1", "side-2-2", "side-2-3")


def test_both_forms_have_the_same_graph_and_containers() -> None:
    job, flow = dag_job("g", STEPS), workflow("g", STEPS)
    graph, leaf = flow["spec"]["templates"]
    stages, tasks = job["spec"]["stages"], graph["dag"]["tasks"]
    assert [(each["name"], each["dependsOn"]) for each in stages] == [
        (each["name"], each["dependencies"]) for each in tasks
    ]
    (template,) = {msgspec.json.encode(each["template"]) for each in stages}
    made: dict[str, Any] = msgspec.json.decode(template)
    assert made["spec"]["containers"] == [leaf["container"]]
    assert made["metadata"] == leaf["metadata"]
    assert {each["template"] for each in tasks} == {leaf["name"]}


@pytest.mark.parametrize("sizes", [FULL, QUICK])
def test_all_steps_that_can_run_at_a_time_have_room(sizes: Any) -> None:
    cores = sum(float(each.allocatable["cpu"]) for each in sizes.node_specs())
    # An executor requests nothing unless its configuration says so; the steps, 50m each.
    assert sizes.graphs * WIDTH * 0.05 <= cores / 2


def test_the_executor_reports_as_argos_does() -> None:
    owner = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "name": "g",
        "uid": "u",
        "controller": True,
    }
    metadata = {
        "name": "g-step-1",
        "labels": {WORKFLOW_LABEL: "g"},
        "annotations": {NODE_ID: "g-1"},
        "ownerReferences": [owner],
    }
    created, outputs, done = reports(msgspec.convert({"metadata": metadata}, Pod))
    assert created["metadata"]["name"] == "g-1"
    assert created["metadata"]["labels"] == {WORKFLOW_LABEL: "g", REPORTED_LABEL: "false"}
    assert created["metadata"]["ownerReferences"][0]["uid"] == "u"
    assert outputs["outputs"] == {}
    assert done["metadata"]["labels"] == {REPORTED_LABEL: "true"}


def test_writes_are_counted_by_whom_they_are_of() -> None:
    found = writes(METRICS)
    assert of_engine_and_scheduler(found) == {
        "POST pods": 6,
        "POST pods (dry run)": 3,
        "PUT workflows": 7,
        "DELETECOLLECTION workflowtaskresults": 2,
    }
    assert of_executor(found) == 15
    assert of_engine_and_scheduler(found - found) == {}
    assert of_executor(Counter[str]()) == 0


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        ({}, ""),
        ({"phase": "Running", "conditions": [{"type": "PodRunning", "status": "True"}]}, ""),
        ({"phase": "Succeeded"}, "Succeeded"),
        ({"phase": "Error"}, "Error"),
        ({"conditions": [{"type": "Ready", "status": "True"}, {"type": "Succeeded", "status": "False"}]}, ""),
        ({"conditions": [{"type": "Succeeded", "status": "True"}]}, "Succeeded"),
        ({"conditions": [{"type": "Failed", "status": "True"}]}, "Failed"),
    ],
)
def test_a_graph_has_ended_by_its_phase_or_by_its_conditions(status: dict[str, Any], outcome: str) -> None:
    assert msgspec.convert(status, Status).outcome == outcome


def test_what_argo_installs_is_put_into_its_namespace(tmp_path: Path) -> None:
    (tmp_path / "kustomization.yaml").write_text(
        "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"
    )
    binding = {
        "apiVersion": "v1",
        "kind": "RoleBinding",
        "metadata": {"name": "b"},
        "subjects": [{"name": "argo"}],
    }
    role = {"apiVersion": "v1", "kind": "ClusterRole", "metadata": {"name": "r"}}
    (tmp_path / "b.yaml").write_text(yaml.safe_dump_all([binding, role]))
    first, second = map(argo.in_namespace, argo.objects(tmp_path))
    assert first["metadata"] == {"name": "b", "namespace": "argo"}
    assert first["subjects"] == [{"name": "argo", "namespace": "argo"}]
    assert second == role
    assert {each["kind"] for each in argo.surroundings()} == {"Namespace", "ServiceAccount", "ConfigMap"}


def test_the_image_that_pods_name_is_of_the_pinned_version() -> None:
    assert f"{argo.MODULE} {argo.IMAGE.rpartition(':')[2]}" in (ARGO_MODULE / "go.mod").read_text()


def test_contestants_are_created_where_their_api_is() -> None:
    paths = [each.path("n") for each in contestants.CONTESTANTS]
    assert paths[0] == "/apis/eclectus.dev/v1alpha1/namespaces/n/dagjobs"
    assert set(paths[1:]) == {"/apis/argoproj.io/v1alpha1/namespaces/n/workflows"}


def runs(pairs: int, **of_argo: Any) -> list[Run]:
    theirs = {"contestant": contestants.ARGO, "executor_writes": 270, **of_argo}
    return [
        each for pair in range(pairs) for each in (replace(RUN, pair=pair, **theirs), replace(RUN, pair=pair))
    ]


def test_the_table_has_a_column_for_each_and_ratios_within_pairs() -> None:
    found = "\n".join(report.table(runs(5, seconds=18.0, engine_cpu_seconds=0.45)))
    head, *rows = found.splitlines()
    assert head.split() == [ECLECTUS, contestants.ARGO]
    assert rows[0].split()[-2:] == ["10.00", "5.00"]
    assert rows[3].split()[-2:] == ["3.00", "6.00"]
    ratios = {row.title: line for row, line in zip(report.ROWS, rows[-len(report.ROWS) :], strict=True)}
    assert ratios["steps a second"].endswith(f"2.00 (2.00 to 2.00): {WON}")
    assert ratios["CPU of the engine a step, ms"].endswith(f"2.00 (2.00 to 2.00): {LOST}")
    assert ratios["mean time of a graph, s"].endswith(f": {EQUAL}")


def test_four_pairs_decide_nothing() -> None:
    rows = list(report.table(runs(4)))[-len(report.ROWS) :]
    assert all(row.endswith(FEW_PAIRS) for row in rows)


def test_what_a_run_has_written_comes_by_its_frequency() -> None:
    assert report.of_writes(RUN) == "POST pods/binding 2.00, POST pods 1.00"
    assert report.content([RUN])[0]["contestant"] == ECLECTUS


@pytest.mark.live
def test_on_a_control_plane_dag_jobs_run_to_their_end(output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if clusters.choice():
        pytest.skip("the bench builds its control plane itself")
    monkeypatch.setattr(graph_runs, "SETTLED_SECONDS", 3.0)  # Argo alone needs longer
    (ours, *_) = contestants.CONTESTANTS
    few = dataclasses.replace(QUICK, graphs=4)
    (run,) = measure(few, [ours])
    assert run.steps == few.graphs * len(few.steps)
    assert min(run.writes["POST pods"], run.writes["POST pods/binding"]) >= run.steps
    assert run.executor_writes == 0
    assert 0 < run.graph_seconds <= run.seconds
    assert not (output / "cluster").exists()


@pytest.mark.live
@pytest.mark.alone
@pytest.mark.slow  # compiles Argo Workflows: three minutes on two idle cores
@pytest.mark.timeout(3600)
def test_on_a_control_plane_dag_jobs_are_compared_with_workflows(
    output: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if clusters.choice():
        pytest.skip("the bench builds its control plane itself")
    assert bench.main(["--quick", "--only", "dags"]) == 0
    found = msgspec.json.decode((output / "report.json").read_bytes())["dags"]
    steps = QUICK.graphs * len(QUICK.steps)
    assert [each["contestant"] for each in found] == [each.name for each in contestants.CONTESTANTS]
    assert [each["executor_writes"] for each in found] == [0, 3 * steps, 3 * steps]
    for each in found:  # some are sent twice and refused
        assert min(each["writes"]["POST pods"], each["writes"]["POST pods/binding"]) >= steps
    assert "steps a second" in capsys.readouterr().out
