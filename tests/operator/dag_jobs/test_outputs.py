"""What tasks hand on to the stages after them: recorded once, and safe against crashes of the operator."""

import json

import pytest

from dag_jobs import dag_job, stage, stored, task_pod
from dag_operator_world import DagWorld, task_of
from eclectus.api.dag_job import MAX_OUTPUTS, StageStatus, TaskOutput
from eclectus.api.names import OUTPUT
from eclectus_operator.dag_jobs import outputs, task_pods
from eclectus_operator.dag_jobs.outputs import JOB_BYTES, POD_BYTES, STAGE_BYTES, TASK_BYTES
from eclectus_operator.dag_jobs.task_pods import NewPod
from eclectus_operator.dag_jobs.tasks import assess
from fake_api import Crash

ASKED = [{"stage": "a", "output": True}]
STAGES = [stage("a", tasks=2), stage("b", "a", tasks=2, inputs=ASKED)]


class OutputWorld(DagWorld):
    """Pods of some stages have termination messages. `says`: by stage and number."""

    def __init__(self, stages, says):
        self.says = says
        super().__init__(dag_job(stages=stages))

    def end(self, path, code=0, reason="Completed", **status):
        super().end(path, code, reason, **status)
        pod = self.api.touch(path)
        for container in pod["status"]["containerStatuses"]:
            container["state"]["terminated"]["message"] = self.says.get(task_of(pod)[:2], "")

    def given(self, name):
        """What each pod of stage b has been given by a stage."""
        pods = [pod for pod in self.pods().values() if task_of(pod)[0] == "b"]
        return [pod["metadata"]["annotations"][f"{OUTPUT}.{name}"] for pod in pods]


def recorded(tasks, messages, before=()):
    of = stored(dag_job(stages=[stage("a", tasks=tasks)])).spec.stages[0]
    return outputs.outputs(of, StageStatus("a", outputs=before), frozenset(range(tasks)), messages)


def test_the_stage_that_asks_gets_what_its_parent_has_said():
    world = OutputWorld(STAGES, {("a", 0): "s3://x/0\n", ("a", 1): 'say "1"'})
    world.play(60)
    assert world.condition("Succeeded")["status"] == "True"
    assert [json.loads(each) for each in world.given("a")] == [["s3://x/0", 'say "1"']] * 2
    assert world.stage("a")["outputs"] == [{"task": 0, "text": "s3://x/0"}, {"task": 1, "text": 'say "1"'}]


def test_of_one_task_it_is_its_text_and_of_nothing_said_empty():
    stages = [stage("a"), stage("c"), stage("b", "a", "c", inputs=[*ASKED, {"stage": "c", "output": True}])]
    world = OutputWorld(stages, {("a", 0): "42"})
    world.play(60)
    assert (world.given("a"), world.given("c")) == (["42"], [""])


def test_nothing_is_recorded_where_no_stage_asks():
    world = OutputWorld([stage("a"), stage("b", "a", inputs=[{"stage": "a"}])], {("a", 0): "42"})
    world.play(60)
    assert world.stage("a")["outputs"] == []


def test_an_output_that_is_refused_fails_nothing_and_is_reported_once():
    world = OutputWorld(STAGES, {("a", 0): "x" * 1025, ("a", 1): "fine"})
    world.play(60)
    assert world.condition("Succeeded")["status"] == "True"
    assert json.loads(world.given("a")[0]) == [None, "fine"]
    problem = "it has 1,025 bytes as JSON, at most 1,024 are handed on"
    assert world.stage("a")["outputs"][0] == {"task": 0, "problem": problem}
    assert world.reasons().count("OutputRefused") == 1


@pytest.mark.parametrize(
    ("tasks", "said", "is_taken"),
    [
        (1, "x" * TASK_BYTES, True),
        (1, "\n" * 600, True),
        (1, '"' * 513, False),
        (1, "ä" * 513, False),
        (64, "x" * (STAGE_BYTES // 64), True),
        (64, "x" * (STAGE_BYTES // 64 + 1), False),
        (1, "a\0b", False),
    ],
)
def test_the_tasks_of_a_stage_share_its_bytes(tasks, said, is_taken):
    found = recorded(tasks, {0: said})
    assert all(each.text and not each.problem for each in found) == is_taken


def test_what_is_recorded_stays_whatever_the_pod_says_then():
    (first,) = recorded(2, {1: "one"})
    assert recorded(2, {1: "other", 0: "zero"}, (first,)) == (TaskOutput(0, "zero"), first)
    assert recorded(1, {}, (first,)) == (), "it has not succeeded any more"


def test_of_a_task_with_a_copy_the_winner_counts():
    of = stored(dag_job(stages=STAGES)).spec.stages[0]
    slow = task_pod(phase="Succeeded", name="a", finished=9.0, output="slow")
    fast = task_pod(phase="Succeeded", name="a-copy", copy_of="a", finished=5.0, output="fast")
    assert assess(of, StageStatus("a"), [slow, fast], 10.0).outputs == (TaskOutput(0, "fast"),)


def test_only_the_first_container_of_a_pod_that_has_succeeded_speaks():
    containers = [{"name": "main"}, {"name": "also"}]
    job = stored(dag_job(stages=[stage("a", template={"spec": {"containers": containers}})]))

    def said(phase="Succeeded", asked=("a",)):
        ends = [
            {"name": name, "state": {"terminated": {"exitCode": 0, "message": name}}}
            for name in ("also", "main")
        ]
        body = NewPod(job, job.spec.stages[0]).body({})
        pod = {**body, "status": {"phase": phase, "containerStatuses": ends}}
        return task_pods.read(pod, job, asked).output

    assert said() == "main"
    assert said("Failed") == said(asked=()) == ""


def test_containers_have_it_in_a_variable_and_no_text_is_taken_for_a_reference():
    job = stored(
        dag_job(stages=[stage("in-1"), stage("b", "in-1", inputs=[{"stage": "in-1", "output": True}])])
    )
    env = NewPod(job, job.spec.stages[1]).body({})["spec"]["containers"][0]["env"]
    field = {"fieldRef": {"fieldPath": "metadata.annotations['eclectus.dev/output.in-1']"}}
    assert env[-1] == {"name": "OUTPUT_IN_1", "valueFrom": field}


@pytest.mark.parametrize(
    ("stages", "problem"),
    [
        (
            [stage("a", tasks=MAX_OUTPUTS + 1)],
            "stage a has 257 tasks, and one with more than 256 has no output",
        ),
        ([stage(f"s{i}", tasks=8) for i in range(9)], "stages[z].inputs: the 9 stages whose output is read"),
    ],
)
def test_what_would_not_fit_is_refused_from_the_start(stages, problem):
    names = [each["name"] for each in stages]
    reader = stage("z", *names, inputs=[{"stage": name, "output": True} for name in names])
    found = list(outputs.problems(stored(dag_job(stages=[*stages, reader])).spec))
    assert problem in found[0]


def test_a_stage_reads_a_bounded_amount():
    names = [f"s{i}" for i in range(POD_BYTES // STAGE_BYTES)]
    reader = stage("z", *names, inputs=[{"stage": name, "output": True} for name in names])
    full = [stage(name, tasks=STAGE_BYTES // TASK_BYTES) for name in names]
    assert not list(outputs.problems(stored(dag_job(stages=[*full, reader])).spec))


def test_a_job_hands_on_a_bounded_amount():
    most = JOB_BYTES // TASK_BYTES
    links = [
        stage(
            f"s{i}",
            *([f"s{i - 1}"] if i else []),
            inputs=[{"stage": f"s{i - 1}", "output": True}] if i else [],
        )
        for i in range(most + 2)
    ]
    (found,) = outputs.problems(stored(dag_job(stages=links)).spec)
    assert found == "stages: the 129 stages whose output is read may have 132,096 bytes, above 131,072"
    assert not list(outputs.problems(stored(dag_job(stages=links[: most + 1])).spec))


@pytest.mark.parametrize("crash_at", [(at, is_done) for at in range(8, 26) for is_done in (False, True)])
def test_a_crash_loses_no_output_and_all_pods_are_given_the_same(crash_at):
    world = OutputWorld(STAGES, {("a", 0): "zero", ("a", 1): "one"})
    world.api.crash_at = crash_at
    for _ in range(45):
        world.cluster_step()
        try:
            world.sync()
        except Crash:
            world.start()
        for path, pod in list(world.pods().items()):  # somebody collects what the status has
            status = world.status().get("stages", [{}, {}])
            done = {each["name"]: each.get("completedIndexes") for each in status if each}
            if task_of(pod)[0] == "a" and done.get("a") == "0-1":
                world.api.remove(path)
        world.api.now += 2
    assert world.condition("Succeeded")["status"] == "True"
    assert [json.loads(each) for each in world.given("a")] == [["zero", "one"]] * 2
