"""Pods of a stage that reads what lies on nodes say on which."""

import json

import pytest

from dag_jobs import dag_job, stage, stored, task_pod
from dag_operator_world import RUN_SECONDS, DagWorld, task_of
from eclectus.api.dag_job import StageStatus
from eclectus.api.names import INPUTS
from eclectus.cluster.locality import names_of
from eclectus.kube.data import MAX_BYTES, MAX_INPUTS, MAX_NODES, inputs
from eclectus_operator.dag_jobs.node_results import inputs_hint
from eclectus_operator.dag_jobs.tasks import assess


def ran(stage_name, index, node, phase="Succeeded", **fields):
    return task_pod(index, phase=phase, stage=stage_name, node=node, name=f"{stage_name}-{index}", **fields)


def reads(*parents, **fields):
    listed = [{"stage": name, "lostWithNode": is_lost} for name, is_lost in parents]
    return stage("z", *(name for name, _ in parents), inputs=listed, **fields)


def hint(stages, pods):
    """The inputs that pods of the last stage have, as a scheduler reads them."""
    job = stored(dag_job(stages=stages))
    tasks = {
        each.name: assess(each, StageStatus(each.name), [pod for pod in pods if pod.stage == each.name], 0.0)
        for each in job.spec.stages
    }
    found = inputs_hint(job, job.spec.stages[-1], tasks)
    return found, inputs(found.get(INPUTS, "[]"), "default")


def test_nodes_count_by_the_tasks_that_succeeded_there():
    pods = [ran("a", 0, "n1"), ran("a", 1, "n1"), ran("a", 2, "n1"), ran("a", 3, "n2"), ran("a", 4, "n3")]
    pods += [ran("a", 5, "n2", phase="Failed")]
    _, found = hint([stage("a", tasks=6), reads(("a", True))], pods)
    assert [(each.name, each.size, each.nodes) for each in found] == [
        ("job.a", 3, ("n1",)),
        ("job.a", 1, ("n2", "n3")),
    ]
    assert names_of(found) == ("n1",)


def test_several_parents_add_up_and_one_whose_results_lie_elsewhere_does_not_count():
    stages = [stage("a"), stage("b"), stage("c"), reads(("a", True), ("b", True), ("c", False))]
    _, found = hint(stages, [ran("a", 0, "n1"), ran("b", 0, "n2"), ran("c", 0, "n3")])
    assert set(names_of(found)) == {"n1", "n2"}


@pytest.mark.parametrize(
    "own", [{"annotations": {INPUTS: "[]"}}, {"annotations": None}, None, {"annotations": {"x": "y"}}]
)
def test_a_template_that_says_it_itself_is_left_alone(own):
    template = {"metadata": own, "spec": {"containers": [{"name": "main", "image": "i"}]}}
    found, _ = hint([stage("a"), reads(("a", True), template=template)], [ran("a", 0, "n1")])
    assert bool(found) == (not own or INPUTS not in (own["annotations"] or {}))


def test_nothing_is_said_where_nothing_lies_on_nodes():
    assert hint([stage("a"), stage("z", "a")], [ran("a", 0, "n1")]) == ({}, ())
    assert hint([stage("a"), reads(("a", True))], []) == ({}, ())


def test_what_is_said_is_as_bounded_as_what_a_scheduler_reads():
    parents = [f"p{number}" for number in range(20)]
    stages = [*(stage(name, tasks=40) for name in parents), reads(*((name, True) for name in parents))]
    long = "n" * 200
    pods = [ran(name, index, f"{long}{index}") for name in parents for index in range(40)]
    found, read = hint(stages, pods)
    assert len(found[INPUTS].encode()) <= MAX_BYTES
    assert 0 < len(read) <= MAX_INPUTS
    assert all(len(each.nodes) <= MAX_NODES for each in read)


def test_the_pods_of_the_stage_have_it():
    world = DagWorld(dag_job(stages=[stage("a", tasks=2), reads(("a", True), tasks=1)]))
    world.play(2 * RUN_SECONDS)
    said = {task_of(pod)[0]: pod["metadata"]["annotations"].get(INPUTS) for pod in world.pods().values()}
    assert said["a"] is None
    assert json.loads(said["z"]) == [{"name": "job.a", "bytes": 2, "nodes": ["n0"]}]
