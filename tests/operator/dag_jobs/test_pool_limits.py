"""A DagJob whose pool is at a limit creates few pods that wait, and goes on at once when there is room."""

from random import Random

import pytest

from dag_jobs import dag_job, stage
from dag_operator_world import DagWorld
from eclectus.api.names import POOLS_PATH
from eclectus_operator.dag_jobs.quotas import FIRST_PODS
from fake_api import ALL_DAG_JOBS
from pool_objects import new_pool

JOBS = ALL_DAG_JOBS.replace("/dagjobs", "/namespaces/team/dagjobs")


def world_of(tasks, quota, *, has_pools=True, **job):
    world = DagWorld(dag_job(stages=[stage("a", tasks=tasks)], **job))
    if has_pools:
        world.api.put(POOLS_PATH, new_pool("research", maxShare={"amounts": {"pods": quota}}))
        world.start()
    world.quota = quota
    return world


def most_waiting(world, seconds):
    """The most pods that have waited at a time."""
    found = [0]
    world.play(seconds, each=lambda: found.append(world.waiting()))
    return max(found)


@pytest.mark.parametrize("quota", [0, 1, 5, 40])
def test_no_more_pods_wait_than_the_job_holds_or_a_few(quota):
    assert most_waiting(world_of(1000, quota), 60) <= max(FIRST_PODS, quota)


def test_every_task_of_a_job_at_the_limit_ends_and_the_pool_stays_full():
    world = world_of(60, 5)
    world.play(16 + 60 / 5 * 8)  # each of twelve rounds: a step to start, three to run
    assert world.stage("a")["succeeded"] == 60
    assert world.condition("Succeeded")


def test_room_that_becomes_free_is_used_at_once():
    world = world_of(1000, 0)
    world.play(30)
    assert 1 <= world.waiting() <= FIRST_PODS
    world.quota = 200
    world.play(20)
    assert world.status()["stages"][0]["running"] + world.status()["stages"][0]["succeeded"] >= 100


def test_while_nothing_changes_nothing_is_written():
    world = world_of(1000, 0)
    world.play(30)
    before = len([call for call in world.api.calls if call[0] != "GET"])
    world.play(120)
    assert len([call for call in world.api.calls if call[0] != "GET"]) == before


def test_of_many_jobs_in_a_full_pool_each_has_one_pod_that_waits():
    world = world_of(1000, 0, pool="research")
    world.play(4)
    for number in range(20):
        world.api.put(JOBS, dag_job(f"more-{number}", stages=[stage("a", tasks=1000)], pool="research"))
    world.play(30)
    assert world.waiting() <= FIRST_PODS + 20
    assert len({path.partition("-a-")[0] for path in world.pods()}) == 21, "but none has none"


def test_a_job_of_another_pool_is_not_held_back():
    world = world_of(1000, 0, pool="research")
    world.play(4)
    world.api.put(JOBS, dag_job("other", stages=[stage("a", tasks=1000)], pool="teaching"))
    world.play(4)
    assert sum("/other-" in path for path in world.pods()) == FIRST_PODS


def test_a_later_stage_begins_with_as_many_as_the_job_has_held_already():
    """Else each stage of a job in a pool with room would start more slowly than without Pools."""
    world = world_of(40, 10**9)
    world.change(stages=[stage("a", tasks=40), stage("b", "a", tasks=40)])
    created = []
    for _ in range(40):
        before = sum(name == "b" for name, _, _ in world.tasks())
        world.play(1, step=1.0)
        created.append(sum(name == "b" for name, _, _ in world.tasks()) - before)
    assert next(number for number in created if number) == 40


def test_without_pools_the_setting_alone_counts():
    world = world_of(1000, 10**9, has_pools=False)
    world.sync()
    world.api.now += 1.0
    world.sync()
    assert world.waiting() == world.settings.dag_waiting


def test_a_pool_that_came_meanwhile_is_known_by_the_pods_that_it_holds_back():
    world = world_of(1000, 0, has_pools=False)
    world.sync()
    created = world.waiting()
    world.cluster_step()
    world.play(20)
    assert world.waiting() == created


def test_a_pool_shows_what_it_needs_where_the_nodes_are_full():
    """By the pods that wait its demand is known, and with it what it may take back from others."""
    world = world_of(1000, 0)
    world.reason = "Unschedulable"
    world.play(12)
    assert world.waiting() == world.settings.dag_waiting


def test_pods_of_a_gang_are_all_created():
    world = world_of(1, 0)
    template = {"metadata": {"labels": {"scheduling.x-k8s.io/pod-group": "g"}}, "spec": {"containers": []}}
    world.api.put(JOBS, dag_job("gang", stages=[stage("a", tasks=30, template=template)]))
    world.play(10)
    assert sum("/gang-" in path for path in world.pods()) == 30


def test_a_job_that_has_ended_holds_no_other_back():
    world = world_of(3, 0, pool="research")
    world.play(6)
    world.quota = 3
    world.play(20)
    assert world.condition("Succeeded")
    world.quota = 0
    world.api.put(JOBS, dag_job("next", stages=[stage("a", tasks=1000)], pool="research"))
    world.sync()
    assert world.waiting() == FIRST_PODS


@pytest.mark.parametrize("seed", range(5))
def test_whatever_the_limit_does_meanwhile_all_tasks_end_and_few_wait(seed):
    rng, world = Random(seed), world_of(80, 1)
    for _ in range(30):
        world.quota = rng.choice([0, 0, 1, 3, 20])
        world.play(rng.choice([2, 6, 14]))
        if rng.random() < 0.2:
            world.start()  # the operator is killed, and forgets all
        assert world.waiting() <= 2 * 20 + FIRST_PODS
    world.quota = 20
    world.play(60)
    assert world.condition("Succeeded")
