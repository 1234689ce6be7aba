"""`maxParallel`: at most so many pods of a job, and of a stage, exist that have not ended."""

import pytest

from copy_world import CopyWorld
from dag_jobs import NOW, dag_job, stage, stored, task_pod
from dag_operator_world import RUN_SECONDS, DagWorld, task_of
from eclectus.api.dag_job import StageStatus
from eclectus_operator.dag_jobs.parallel import Asked, Rooms
from eclectus_operator.dag_jobs.tasks import OVERDUE_SECONDS, assess, next_steps
from fake_api import Crash

GANG = {
    "metadata": {"labels": {"scheduling.x-k8s.io/pod-group": "g"}},
    "spec": {"containers": [{"name": "main"}]},
}


def wanted(job, pods=(), now=NOW + 1000, most=100):
    tasks = {
        each.name: assess(each, StageStatus(each.name), [pod for pod in pods if pod.stage == each.name], now)
        for each in job.spec.stages
    }
    return [(new.stage.name, new.index) for new in next_steps(job, tasks, most, 100).create]


def pods(count, phase="Running", **fields):
    return [task_pod(index, phase=phase, **fields) for index in range(count)]


def test_a_stage_has_at_most_so_many_pods_that_have_not_ended():
    wide = stored(dag_job(stages=[stage("a", tasks=9, maxParallel=3)]))
    assert wanted(wide) == [("a", 0), ("a", 1), ("a", 2)]
    assert wanted(wide, pods(2)) == [("a", 2)]
    assert wanted(wide, pods(2, "Pending")) == [("a", 2)], "one that waits for a node counts too"
    assert wanted(wide, pods(2, "Succeeded")) == [("a", 2), ("a", 3), ("a", 4)]
    assert wanted(wide, pods(5)) == [], "it was lowered: what runs goes on"


def test_one_that_is_being_deleted_counts_until_its_node_is_given_up():
    job = stored(dag_job(stages=[stage("a", tasks=2, maxParallel=1)]))
    leaving = task_pod(phase="Running", deletion=NOW)
    assert wanted(job, [leaving], NOW) == []
    assert wanted(job, [leaving], NOW + OVERDUE_SECONDS) == [("a", 0)]


def test_the_places_of_the_job_go_to_the_stage_with_the_fewest_pods():
    both = stored(dag_job(stages=[stage("a", tasks=9), stage("b", tasks=9)], maxParallel=4))
    assert wanted(both) == [("a", 0), ("a", 1), ("b", 0), ("b", 1)]
    assert wanted(both, pods(3)) == [("b", 0)]
    few = stored(dag_job(stages=[stage("a", tasks=1), stage("b", tasks=9)], maxParallel=4))
    assert wanted(few) == [("a", 0), ("b", 0), ("b", 1), ("b", 2)]


def test_of_both_limits_the_lower_one_holds():
    both = stored(dag_job(stages=[stage("a", tasks=9, maxParallel=1), stage("b", tasks=9)], maxParallel=3))
    assert wanted(both) == [("a", 0), ("b", 0), ("b", 1)]


class TestPodGroups:
    """A part of one would hold places and never start."""

    JOB = stored(dag_job(stages=[stage("a", tasks=9), stage("g", tasks=3, template=GANG)], maxParallel=4))

    def test_one_comes_first_and_as_a_whole(self):
        assert wanted(self.JOB) == [("a", 0), ("g", 0), ("g", 1), ("g", 2)]

    def test_none_of_it_is_created_while_it_lacks_a_place_nor_anything_that_would_take_that(self):
        assert wanted(self.JOB, pods(2)) == []
        assert wanted(self.JOB, pods(1)) == [("g", 0), ("g", 1), ("g", 2)]

    def test_what_it_lacks_is_kept_for_it(self):
        begun = [task_pod(index, stage="g", name=f"g{index}") for index in range(2)]
        assert wanted(self.JOB, [*begun, *pods(1)]) == [("g", 2)]

    def test_a_smaller_one_that_fits_does_not_wait(self):
        asked = [Asked("large", 0, 5, is_gang=True), Asked("small", 0, 2, is_gang=True), Asked("plain", 0, 9)]
        assert Rooms(3, {}).share(asked) == {"large": 0, "small": 2, "plain": 0}


def test_without_a_limit_all_get_what_they_ask_for():
    assert Rooms(float("inf"), {"a": 2.0}).share([Asked("a", 0, 9), Asked("b", 5, 9)]) == {"a": 2, "b": 9}


@pytest.mark.parametrize("crash_at", [None, 9, 14, 19])
def test_no_crash_and_no_failure_exceeds_the_limit(crash_at):
    job = dag_job(stages=[stage("a", tasks=5, maxParallel=2), stage("b", tasks=4)], maxParallel=3)
    world = DagWorld(job)
    world.ends = {("a", 0, 0): (1, "Error"), ("b", 1, 0): (1, "Error")}
    most = []

    def count():
        alive = [pod for pod in world.pods().values() if not _has_ended(pod)]
        stages = [task_of(pod)[0] for pod in alive]
        most.append((len(alive), stages.count("a")))

    world.api.crash_at = None if crash_at is None else (crash_at, True)
    for _ in range(60):
        try:
            world.play(2, each=count)
        except Crash:
            world.start()
    assert world.condition("Succeeded")["status"] == "True"
    assert max(alive for alive, _ in most) == 3
    assert max(of_a for _, of_a in most) == 2


def _has_ended(pod):
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


def test_a_copy_counts_and_is_made_only_where_a_place_is_left():
    full = CopyWorld(stage={"maxParallel": 1})
    full.play(RUN_SECONDS + 90)
    assert not full.copies_ever
    assert full.notes("CopyRefused") == [], "it is no trouble"
    free = CopyWorld(stage={"maxParallel": 2})
    free.play(RUN_SECONDS + 90)
    assert len(free.copies_ever) == 1
