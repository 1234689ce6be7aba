"""Tasks that straggle and their copies: what the operator makes of both, and that it is nobody's trouble."""

from __future__ import annotations

import pytest

from copy_world import COPYING, CopyWorld
from dag_jobs import NOW, dag_job, stage, stored, task_pod
from eclectus.api.dag_job import StageStatus
from eclectus.maths.copies import Step
from eclectus_operator.dag_jobs.tasks import CopyRules, assess, second_successes

(STAGE,) = stored(dag_job(stages=[stage("a", tasks=3, retries=0)])).spec.stages
NOTHING = StageStatus("a")


def tasks(*pods, may_start=True, recorded=NOTHING, now=NOW, **options):
    return assess(STAGE, recorded, pods, now, rules=CopyRules(may_start), **options)


def original(phase="Running", **fields):
    return task_pod(phase=phase, name="a", **{"node": "n0", **fields})


def copy(phase="Running", **fields):
    return task_pod(phase=phase, name="a-copy", **{"node": "n1", "copy_of": "a", "created": 1.0, **fields})


def step(*pods, **options):
    found = tasks(*pods, **options).copies
    return found[0].step if found else None


def test_a_task_that_straggles_gets_a_copy_where_that_is_allowed():
    assert step(original(is_straggling=True)) is Step.CREATE
    assert step(original(is_straggling=True), may_start=False) is None
    assert step(original()) is None


def test_a_copy_takes_no_pod_s_place():
    found = tasks(original(is_straggling=True), copy("Pending", node=""))
    assert found.active[0].name == "a"
    assert not found.obsolete, "it is not deleted as the later pod of its task"
    assert (found.running, found.not_started) == (1, 0)
    assert found.startable == [1, 2]
    assert found.status.waiting == 2


def test_the_original_that_has_lost_is_no_failure_and_no_retry():
    gone = tasks(copy("Succeeded", finished=NOW), original("Failed", is_disrupted=True, deletion=NOW))
    assert gone.succeeded == {0}
    assert not gone.failures
    assert gone.status.retried == 0


def test_the_original_that_has_lost_is_marked_and_not_deleted_as_obsolete():
    found = tasks(original(), copy("Succeeded", finished=NOW))
    assert found.copies[0].step is Step.WIN
    assert not found.obsolete


def test_of_two_that_succeed_at_once_one_counts():
    first, second = original("Succeeded", finished=5.0, run_seconds=9.0), copy("Succeeded", finished=4.0)
    found = tasks(first, second)
    assert (found.succeeded, found.status.succeeded) == ({0}, 1)
    assert found.copies[0].step is Step.WIN
    assert second_successes([first, second]) == [first]
    assert tasks(first, copy("Succeeded", finished=5.0)).copies[0].step is Step.LOSE
    assert second_successes([first]) == []


def test_only_the_run_time_of_the_winner_counts():
    found = tasks(
        original("Succeeded", finished=5.0, run_seconds=90.0),
        copy("Succeeded", finished=4.0, run_seconds=10.0),
    )
    assert found.run_seconds == 10.0


def test_while_its_copy_is_there_a_task_has_not_failed():
    failed = original("Failed", finished=NOW)
    found = tasks(failed, copy())
    assert not found.failures
    assert not found.failed, "without a retry left the job would fail"
    assert found.active[0].name == "a-copy"
    assert found.startable == [1, 2]
    assert tasks(failed).failed == (0,)


def test_that_its_copy_has_failed_is_no_failure_of_a_task():
    found = tasks(original(), copy("Failed"))
    assert not found.failures
    assert found.copies[0].step is Step.WAIT, "it keeps a second copy from being made"
    both = tasks(original("Failed"), copy("Failed"))
    assert both.failures == {0: 1}
    assert both.copies[0].step is Step.WITHDRAW


def test_where_the_original_is_gone_its_copy_is_the_pod_of_the_task():
    found = tasks(copy())
    assert found.active[0].name == "a-copy"
    assert not found.obsolete
    assert found.startable == [1, 2]
    assert found.running == 1


def test_where_the_winner_is_lost_with_its_node_the_task_runs_again_unless_it_is_recorded():
    assert 0 in tasks().startable
    assert 0 in tasks(recorded=StageStatus("a", completed_indexes="0")).succeeded


def test_a_copy_of_a_task_that_runs_again_already_is_withdrawn():
    newer = task_pod(attempt=1, phase="Running", created=2.0)
    assert step(newer, original("Failed"), copy()) is Step.WITHDRAW


def test_the_copy_of_a_task_that_is_recorded_as_succeeded_ends():
    assert step(copy(), recorded=StageStatus("a", completed_indexes="0")) is Step.LOSE


def test_a_copy_without_a_node_for_a_minute_is_withdrawn():
    late = copy("Pending", node="", stage_until=NOW, late="pod a-copy: still not on a node after 60 s")
    assert step(original(is_straggling=True), late) is Step.WITHDRAW
    assert step(original(is_straggling=True), late, now=NOW - 1.0) is Step.WAIT


# -- in a small cluster, with the operator's requests -----------------------------------------------


def test_the_copy_of_a_task_wins_and_its_original_is_marked_and_deleted():
    world = CopyWorld()
    world.play(30)
    assert world.condition("Succeeded")["status"] == "True"
    (made,) = world.copies_ever
    assert made["metadata"]["name"].endswith("-copy")
    assert world.stage("a")["retried"] == 0
    assert world.marked == [world.slow], "before it was deleted"
    assert world.left() == {("a", 0): "Succeeded", ("a", 1): "Succeeded"}
    assert {"CopyCreated", "CopyWon"} <= set(world.reasons())
    (note,) = world.notes("CopyWon")
    assert note.startswith("a[0]: ")
    assert " has ended first, after 6 s; " in note


def test_that_the_copy_of_a_task_has_lost_is_an_event_of_its_job():
    world = CopyWorld(slow_seconds=6.0)
    world.play(30)
    (note,) = world.notes("CopyLost")
    assert note.startswith("a[0]: ")
    assert note.endswith("-copy, its copy, is deleted, after 4 s")


def test_a_copy_is_made_as_its_original_and_elsewhere():
    world = CopyWorld()
    world.play(4)
    (made,) = world.copies_ever
    first = world.api.objects[world.slow]
    labels = dict(made["metadata"]["labels"])
    assert labels.pop("eclectus.dev/copy-of") == first["metadata"]["uid"]
    assert labels == first["metadata"]["labels"]
    assert labels["eclectus.dev/speculative"] == "true"
    assert made["metadata"]["annotations"]["eclectus.dev/original"] == first["metadata"]["name"]
    assert made["metadata"]["ownerReferences"] == first["metadata"]["ownerReferences"]
    (term,) = made["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]
    assert term == {"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n0"]}]}
    assert made["spec"]["containers"] == first["spec"]["containers"]


def test_copies_may_request_nothing():
    world = CopyWorld(settings={"copy_requests": "none"})
    world.play(4)
    requests = world.copies_ever[0]["spec"]["containers"][0]["resources"]["requests"]
    assert requests == {"cpu": "0", "memory": "0"}


@pytest.mark.parametrize(
    "change", [{"copies": ""}, {"copies": "other"}, {"copies": "team", "speculative": False}]
)
def test_without_the_admin_s_and_the_author_s_leave_there_is_no_copy(change):
    speculative = change.pop("speculative", True)
    world = CopyWorld(settings=change, speculative=speculative)
    world.play(20)
    assert not world.copies_ever
    assert "CopyRefused" not in world.reasons()


def test_a_stage_can_have_another_word_than_its_job():
    world = CopyWorld(speculative=False, stage={"speculative": True})
    world.play(4)
    assert world.copies_ever
    world = CopyWorld(speculative=True, stage={"speculative": False})
    world.play(20)
    assert not world.copies_ever


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"hostname": "one"}, "hostname"),
        ({"schedulingGroup": {"podGroupName": "g"}}, "pod group"),
        ({"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "rwo"}}]}, "ReadWriteOnce"),
        ({"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "none"}}]}, "does not exist"),
    ],
)
def test_what_two_pods_cannot_share_is_said_once_and_nothing_is_made(spec, why):
    world = CopyWorld(spec=spec)
    world.claim("rwo", "ReadWriteOnce")
    world.play(20)
    assert not world.copies_ever
    (note,) = world.notes("CopyRefused")
    assert why in note
    assert world.condition("Ready")["status"] == "True"


def test_a_claim_that_many_read_is_shared():
    world = CopyWorld(spec={"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "rox"}}]})
    world.claim("rox", "ReadOnlyMany")
    world.play(4)
    assert world.copies_ever


def test_a_full_quota_means_no_copy_and_no_trouble_of_the_job():
    world = CopyWorld()
    world.refuse_copies = True
    world.play(20)
    assert not world.copies_ever
    (note,) = world.notes("CopyRefused")
    assert "exceeded quota" in note
    assert world.condition("Ready")["status"] == "True"
    world.play(90)
    assert world.condition("Succeeded")["status"] == "True"
    assert len(world.notes("CopyRefused")) == 1


def test_a_copy_that_finds_no_node_is_withdrawn_and_not_made_again_at_once():
    world = CopyWorld(slow_seconds=400.0)
    world.copies_have_room = False
    world.play(100)
    (note,) = world.notes("CopyWithdrawn")
    assert "still not on a node after 60 s" in note
    assert len(world.copies_ever) == 1
    assert world.left() == {("a", 0): "Running", ("a", 1): "Succeeded"}


def test_a_copy_whose_node_is_silent_when_its_job_ends_is_deleted_at_once_after_two_minutes():
    world = CopyWorld(slow_seconds=6.0)
    world.play(6)
    (path,) = (
        path for path, each in world.pods().items() if "eclectus.dev/copy-of" in each["metadata"]["labels"]
    )
    step, pod = world.cluster_step, world.api.objects[path]

    def cluster_step():
        kept = path in world.api.objects
        step()
        if kept:  # its kubelet has said nothing
            world.api.objects[path] = pod

    world.cluster_step = cluster_step
    world.play(100)
    assert world.condition("Succeeded")["status"] == "True"
    assert path in world.pods()
    world.play(100)
    assert path not in world.pods()
    (note,) = world.notes("PodsForced")
    assert "still being deleted after 120 s (node n1)" in note


def test_a_copy_is_dropped_with_its_job_suspended():
    world = CopyWorld()
    world.play(6)
    assert len(world.copies_ever) == 1
    world.change(suspend=True)
    world.play(6)
    assert world.left() == {}


def test_a_copy_is_adopted_by_an_operator_that_starts():
    world = CopyWorld()
    world.play(6)
    world.start()
    world.play(30)
    assert len(world.copies_ever) == 1
    assert world.condition("Succeeded")["status"] == "True"


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("both", [False, True], ids=["one", "both"])
def test_whatever_request_it_crashes_at_each_task_succeeds_once_and_no_pod_is_left(after, both):
    whole = CopyWorld(both_succeed=both)
    whole.play(20)
    for call in range(len(whole.api.calls)):
        world = CopyWorld(both_succeed=both)
        world.api.crash_at = (call, after)
        world.survive(44)
        assert world.condition("Succeeded").get("status") == "True", f"call {call}"
        assert world.left() == {("a", 0): "Succeeded", ("a", 1): "Succeeded"}, f"call {call}"
        assert world.stage("a")["retried"] == 0, f"call {call}"
        assert len(world.copies_ever) == 1, f"call {call}"


def test_every_step_is_counted():
    world = CopyWorld()
    world.play(30)
    page = world.metrics.expose().decode()
    assert 'eclectus_copy_steps_total{step="created"} 1.0' in page
    assert 'eclectus_copy_steps_total{step="won"} 1.0' in page
    assert COPYING.copy_namespaces == ("team",)
