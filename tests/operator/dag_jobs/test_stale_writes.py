"""A status that was computed long ago undoes nothing, and a plan that is written meanwhile delays little."""

import copy
from collections import Counter

import pytest

from dag_jobs import dag_job, stage
from dag_operator_world import JOBS, PODS, SETTINGS, DagWorld, task_of
from eclectus.kubeclient.api_errors import ConflictError
from probe_world import driven

KEEP_ONE = SETTINGS.__class__(**{**SETTINGS.__dict__, "dag_kept": 1})


class Frozen(BaseException):
    """The operator is stopped with a request on its way."""


def test_a_late_write_of_a_paused_leader_does_not_undo_a_job_that_has_succeeded():
    world = DagWorld(dag_job(stages=[stage("a", tasks=4), stage("b", "a", tasks=2)]), settings=KEEP_ONE)
    created, held, send = Counter(), [], world.api.send

    def written(method, path, body):
        if method == "POST" and path.startswith(PODS):
            created[task_of(body)] += 1

    async def freezing(method, path, body=None, query=None, **options):
        if method == "PATCH" and not held:
            held.append((path, copy.deepcopy(body)))
            raise Frozen
        return await send(method, path, body, query, **options)

    world.api.watchers.append(written)
    world.api.send = freezing
    with pytest.raises(Frozen):
        world.play(60)
    world.api.send = send
    world.start()
    world.play(60)
    assert world.status()["tasks"] == "6/6"
    with pytest.raises(ConflictError):
        driven(send("PATCH", *held[0]))
    world.play(80)
    assert (world.status()["tasks"], world.condition("Succeeded")["status"]) == ("6/6", "True")
    assert set(created.values()) == {1}, "no task has run twice"


def test_a_pod_that_succeeds_while_its_deletion_is_on_its_way_has_succeeded():
    """Found by chaos: its success was thrown away, and its task ran again."""
    world = DagWorld(dag_job(stages=[stage("a")]))
    created, ended = Counter(), []

    def ends_first(method, path):
        if method == "DELETE" and path.startswith(PODS) and not ended:
            world.end(path)
            ended.append(path)

    def count(method, path, body):
        if method == "POST" and path.startswith(PODS):
            created[task_of(body)] += 1

    world.play(4)
    world.api.before = ends_first
    world.api.watchers.append(count)
    world.api.touch(f"{JOBS}/job")["spec"]["suspend"] = True
    world.play(10)
    assert ended
    world.api.touch(f"{JOBS}/job")["spec"]["suspend"] = False
    world.play(30)
    assert world.condition("Succeeded")["status"] == "True"
    assert not created


def test_a_plan_that_is_written_during_each_sync_delays_the_job_little():
    world = DagWorld(dag_job())
    world.sync()
    begin, syncs = world.api.now, [0]

    def plan(method, path):
        if method == "GET" and path == PODS:
            syncs[0] += 1
            if syncs[0] % 2:
                world.api.touch(f"{JOBS}/job")["status"]["plan"] = {"slips": syncs[0]}

    world.api.before = plan
    world.play(70)
    assert world.condition("Succeeded")["status"] == "True"
    assert world.api.now - begin <= 70.0
