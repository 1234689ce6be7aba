"""DagJobs from their creation to their end, on a simulated cluster."""

import pytest

from dag_jobs import dag_job, stage
from dag_operator_world import JOBS, PODS, RUN_SECONDS, SETTINGS, DagWorld, task_of
from eclectus.api.common import time_text
from eclectus.api.names import JOB_WORK_SECONDS, MEMORY_FACTORS
from eclectus.kubeclient.api_errors import RejectedError, UnsureError
from eclectus_operator.dag_jobs.dag_controller import DagController
from fake_api import NODES, fails_once
from probe_world import driven

FAILS = (1, "Error")


def test_a_diamond_runs_stage_by_stage_and_succeeds():
    world, begun = DagWorld(dag_job()), []
    world.play(60, each=lambda: begun.extend(t for t in world.tasks() if t not in begun))
    assert [name for name, _, _ in begun] == ["a", "a", "b", "b", "c", "d"]
    status = world.status()
    assert world.condition("Succeeded")["status"] == "True"
    assert world.condition("Ready")["reason"] == "Finished"
    assert (status["tasks"], world.stage("a")["completedIndexes"]) == ("6/6", "0-1")
    assert status["startTime"] < status["completionTime"]
    assert world.stage("b")["runSeconds"] == RUN_SECONDS
    assert world.tasks("Succeeded") == sorted(begun), "the pods stay, for their logs"
    assert world.reasons() == ["AllTasksSucceeded"]
    assert not world.job()["metadata"].keys() & {"finalizers", "annotations"}


def test_a_task_that_fails_runs_again_with_a_back_off():
    world = DagWorld(dag_job(stages=[stage("a", tasks=2)]))
    world.ends = {("a", 1, 0): FAILS, ("a", 1, 1): FAILS}
    world.play(80)
    assert world.tasks("Failed") == [("a", 1, 0), ("a", 1, 1)]
    assert world.tasks("Succeeded") == [("a", 0, 0), ("a", 1, 2)]
    assert (world.stage("a")["retried"], world.condition("Succeeded")["status"]) == (2, "True")
    assert world.reasons().count("TasksRetried") == 2


def test_a_task_that_fails_too_often_fails_the_job_and_ends_its_other_pods():
    world = DagWorld(dag_job(stages=[stage("a", retries=1), stage("b", tasks=3)]))
    world.ends = {("a", 0, 0): FAILS, ("a", 0, 1): FAILS}
    world.api.put(NODES, {**world.api.objects[f"{NODES}/n0"], "metadata": {"name": "n1"}})

    def b_never_ends():
        for pod in world.pods().values():
            if task_of(pod)[0] == "b" and pod.get("status", {}).get("containerStatuses"):
                running = pod["status"]["containerStatuses"][0]["state"].get("running")
                if running:
                    running["startedAt"] = time_text(world.api.now)

    world.play(60, each=b_never_ends)
    failed = world.condition("Failed")
    assert (failed["status"], failed["reason"]) == ("True", "RetriesExceeded")
    assert failed["message"] == "stage a: tasks 0 failed 2 times; task 0: container main: Error, exit code 1"
    assert world.tasks("Running") == world.tasks("Pending") == []
    assert world.stage("a")["failed"] == 1
    assert "RetriesExceeded" in world.reasons()


def test_more_memory_after_an_out_of_memory_kill():
    world = DagWorld(dag_job(stages=[stage("a", memory="64Mi")]))
    world.ends = {("a", 0, 0): (137, "OOMKilled")}
    world.play(40)
    (again,) = [pod for pod in world.pods().values() if task_of(pod) == ("a", 0, 1)]
    assert again["metadata"]["annotations"][MEMORY_FACTORS] == "main=2"
    assert again["spec"]["containers"][0]["resources"]["requests"]["memory"] == str(128 * 2**20)
    assert world.reasons() == ["MemoryRaised", "AllTasksSucceeded"]


def test_a_preempted_task_runs_again_without_a_retry():
    world = DagWorld(dag_job(stages=[stage("a", retries=0)]))
    world.play(4)
    (path,) = world.pods()
    target = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    world.end(path, 137, "Error", conditions=[target])
    world.play(30)
    assert world.condition("Succeeded")["status"] == "True"
    assert world.stage("a")["retried"] == 0


def test_suspension_deletes_what_has_not_finished_and_resumption_makes_it_again():
    world = DagWorld(dag_job())
    world.play(6 + RUN_SECONDS)
    assert {name for name, _, _ in world.tasks("Running") + world.tasks("Pending")} == {"b", "c"}
    world.change(suspend=True)
    world.play(10)
    assert {name for name, _, _ in world.tasks()} == {"a"}
    assert world.condition("Suspended")["status"] == "True"
    assert world.status()["tasks"] == "2/6"
    world.change(suspend=False)
    world.play(60)
    assert world.condition("Suspended")["status"] == "False"
    assert world.condition("Succeeded")["status"] == "True"
    assert world.api.created.total() > 0
    assert [t for t in world.tasks() if t[2]] == [], "a deleted pod is no failure"


def test_a_job_that_is_suspended_from_the_start_has_no_pods_and_no_start_time():
    world = DagWorld(dag_job(suspend=True, deadlineSeconds=5))
    world.play(20)
    assert world.pods() == {}
    assert "startTime" not in world.status()


def test_a_job_fails_at_its_deadline():
    world = DagWorld(dag_job(deadlineSeconds=10))
    world.play(30)
    assert world.condition("Failed")["reason"] == "DeadlineExceeded"
    assert world.tasks("Running") == world.tasks("Pending") == []


def test_a_job_that_has_finished_is_deleted_after_its_time_to_live():
    world = DagWorld(dag_job(stages=[stage("a")], ttlSecondsAfterFinished=40))
    world.play(30)
    assert world.condition("Succeeded")["status"] == "True"
    world.play(80)
    assert f"{JOBS}/job" not in world.api.objects
    assert world.pods() == {}


def test_the_pods_of_a_deleted_job_go_and_no_new_one_comes():
    world = DagWorld(dag_job())
    world.play(4)
    world.api.touch(f"{JOBS}/job")["metadata"]["deletionTimestamp"] = time_text(world.api.now)
    before = world.api.created.total()
    world.play(20)
    assert world.api.created.total() == before, "in a foreground deletion nothing is created"
    world.api.remove(f"{JOBS}/job")
    world.play(10)
    assert world.pods() == {}


def test_a_task_runs_again_when_its_pod_is_gone_and_its_result_is_needed():
    reads = stage("b", "a", inputs=[{"stage": "a", "lostWithNode": True}])
    world = DagWorld(dag_job(stages=[stage("a", tasks=2), reads]))
    world.play(2 + RUN_SECONDS)
    world.play(2)
    assert world.stage("a")["succeeded"] == 2
    lost = next(path for path, pod in world.pods().items() if task_of(pod) == ("a", 1, 0))
    world.api.remove(lost)
    world.play(2)
    assert world.stage("a")["succeeded"] == 1
    world.play(40)
    assert world.condition("Succeeded")["status"] == "True"
    assert world.api.created[lost] == 2


def test_what_has_succeeded_does_not_run_again_when_its_pod_is_collected():
    world = DagWorld(dag_job())
    world.play(4 + RUN_SECONDS)
    for path, pod in world.pods().items():
        if task_of(pod)[0] == "a":
            world.api.remove(path)
    world.play(60)
    assert world.condition("Succeeded")["status"] == "True"
    assert set(world.api.created.values()) == {1}


@pytest.mark.parametrize(
    ("stages", "reason", "message"),
    [
        ([stage("a", "b"), stage("b", "a")], "InvalidSpec", "in a circle"),
        ([stage("a", template={"spec": {"containers": 1}})], "InvalidSpec", "stages[a].template: Expected"),
    ],
)
def test_a_spec_that_can_never_run_fails_at_once_and_stops_no_other(stages, reason, message):
    world = DagWorld(dag_job(stages=stages))
    world.api.put(JOBS, dag_job("other"))
    world.play(60)
    assert (world.condition("Ready")["status"], world.condition("Failed")["reason"]) == ("False", reason)
    assert message in world.condition("Ready")["message"]
    assert reason in world.reasons()
    assert world.condition("Succeeded", "other")["status"] == "True"


def test_a_template_that_the_api_server_refuses_fails_the_job_before_that_stage_starts():
    world = DagWorld(dag_job())
    send = world.api.send

    async def refusing(method, path, body=None, query=None, **options):
        if query and "dryRun" in query and body["metadata"]["labels"]["eclectus.dev/stage"] == "d":
            raise RejectedError(f"{method} {path}", 422, "spec.containers[0].image: Required value")
        return await send(method, path, body, query, **options)

    world.api.send = refusing
    world.play(10)
    failed = world.condition("Failed")
    assert failed["reason"] == "InvalidTemplate"
    assert failed["message"] == "stages[d].template: spec.containers[0].image: Required value"
    assert world.pods() == {}


def test_a_quota_makes_a_stage_wait_and_says_so():
    world = DagWorld(dag_job(stages=[stage("a", tasks=3)]))
    closed = [True]

    def quota(method, path):
        if closed and method == "POST" and path == PODS and world.status():
            raise RejectedError(f"{method} {path}", 403, 'pods "x" is forbidden: exceeded quota: q')

    world.api.before = quota
    world.play(40)
    ready = world.condition("Ready")
    assert (ready["status"], ready["reason"]) == ("False", "QuotaExceeded")
    assert "exceeded quota: q" in ready["message"]
    asked = world.api.calls.count(("POST", PODS))
    assert asked <= 5, "it backs off"
    closed.clear()
    world.play(120)
    assert world.condition("Ready")["status"] == "True"
    assert world.condition("Succeeded")["status"] == "True"
    assert world.reasons().count("QuotaExceeded") == 1


def test_a_refusal_is_over_when_the_stage_needs_no_more_pods():
    """The second request for the pod has succeeded, and its answer was lost."""
    world = DagWorld(dag_job(stages=[stage("a")]))
    send, sent = world.api.send, []

    async def flaky(method, path, body=None, query=None, **options):
        if method == "POST" and path == PODS and not query:
            sent.append(path)
            if len(sent) == 1:
                raise RejectedError(f"{method} {path}", 403, "exceeded quota")
            await send(method, path, body, query, **options)
            raise UnsureError(f"{method} {path}", 0, "timed out")
        return await send(method, path, body, query, **options)

    world.api.send = flaky
    world.sync()
    assert world.condition("Ready")["reason"] == "QuotaExceeded"
    world.play(18)
    assert len(sent) == 2
    assert world.condition("Ready")["status"] == "True"


def test_pods_that_fit_no_node_are_reported_at_once_and_created_all_the_same():
    world = DagWorld(dag_job(stages=[stage("a", memory="64Gi"), stage("b", memory="1Gi")]))
    world.sync()
    ready = world.condition("Ready")
    assert (ready["status"], ready["reason"]) == ("False", "FitsNoNode")
    assert ready["message"] == "stages[a]: no node of the cluster is large enough (memory)"
    assert world.tasks() == [("a", 0, 0), ("b", 0, 0)], "an autoscaler may add a larger node"
    assert world.reasons() == ["FitsNoNode"]


def test_a_name_that_is_taken_is_reported_and_that_pod_left_alone():
    world = DagWorld(dag_job(stages=[stage("a")]))
    other = DagWorld(dag_job(stages=[stage("a")]))
    other.job()["metadata"]["uid"] = world.job()["metadata"]["uid"]
    other.sync()
    (path,) = other.pods()
    foreign = {"metadata": {"name": path.rpartition("/")[2], "ownerReferences": [{"uid": "x", "name": "x"}]}}
    world.api.put(PODS, foreign)
    world.sync()
    assert world.condition("Ready")["reason"] == "NameTaken"
    assert path in world.api.objects


def test_a_lost_answer_costs_nothing_but_time():
    world = DagWorld(dag_job(stages=[stage("a")]))
    world.api.before = fails_once("POST", PODS, UnsureError("POST", 0, "timed out"))
    world.play(30)
    assert world.condition("Succeeded")["status"] == "True"
    assert len(world.pods()) == 1


def test_the_status_is_written_a_few_times_a_minute():
    world = DagWorld(dag_job(stages=[stage("a", tasks=300, estimate={"seconds": 6.0})]))
    world.play(60, step=1.0)
    patches = [path for method, path in world.api.calls if method == "PATCH"]
    assert world.stage("a")["succeeded"] > 50
    assert len(patches) <= 6


def test_pods_beyond_the_number_kept_are_deleted_once_they_are_recorded():
    kept = SETTINGS.__class__(**{**SETTINGS.__dict__, "dag_kept": 5})
    world = DagWorld(dag_job(stages=[stage("a", tasks=40)]), settings=kept)
    world.ends = {("a", 3, 0): FAILS}
    world.play(120)
    assert world.condition("Succeeded")["status"] == "True"
    assert world.stage("a")["completedIndexes"] == "0-39"
    assert len(world.pods()) < 40
    paths = [path for path in world.api.created if path.startswith(PODS)]
    assert len(paths) == 41, "one pod each, and one retry"
    assert all(world.api.created[path] == 1 for path in paths)


def test_the_next_run_of_a_job_is_estimated_by_the_last():
    world = DagWorld(dag_job("etl-1"))
    world.play(60)
    world.api.put(JOBS, dag_job("etl-2"))
    world.play(4)
    estimates = {each["name"]: each["estimateSeconds"] for each in world.status("etl-2")["stages"]}
    assert estimates == dict.fromkeys("abcd", RUN_SECONDS)
    first = next(
        each
        for each in world.pods().values()
        if each["metadata"]["labels"]["eclectus.dev/dag-job"] == "etl-2"
    )
    assert first["metadata"]["annotations"][JOB_WORK_SECONDS] == "36"


def test_the_plan_of_the_scheduler_is_not_touched():
    world = DagWorld(dag_job(stages=[stage("a")]))
    world.sync()
    world.api.touch(f"{JOBS}/job")["status"]["plan"] = {"slips": 2, "share": {"cpu": "1"}}
    world.play(40)
    assert world.condition("Succeeded")["status"] == "True"
    assert world.status()["plan"] == {"slips": 2, "share": {"cpu": "1"}}


def test_a_job_that_cannot_be_read_delays_no_other():
    world = DagWorld(dag_job())
    world.api.put(JOBS, {"metadata": {"name": "odd", "namespace": "team"}, "spec": {"stages": 3}})
    world.play(60)
    assert world.condition("Succeeded")["status"] == "True"


def test_without_events_everything_still_happens():
    world = DagWorld(dag_job())
    world.play(1)
    silent = DagController(world.controller._context)
    for _ in range(60):
        world.cluster_step()
        driven(silent.sync())
        world.api.now += 10.0
    assert world.condition("Succeeded")["status"] == "True"


def test_names_of_jobs_that_do_not_exist_delay_none_that_does():
    """Whoever may create pods may label them with any name of a job."""
    world, asked = DagWorld(dag_job()), []
    world.sync()
    world.api.now += 10.0
    world.api.before = lambda method, path: asked.append(path) if method == "GET" else None
    for number in range(200):
        world.controller.notice(("team", f"none-{number}"))
    world.sync()
    assert asked[0] == f"{JOBS}/job"
    assert len(world.controller._jobs) == 1
