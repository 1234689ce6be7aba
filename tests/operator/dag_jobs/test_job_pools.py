"""A DagJob that asks for a Pool which does not take its pods says so in a condition, while it is so."""

import pytest

from dag_jobs import dag_job, stage
from dag_operator_world import SETTINGS, DagWorld
from eclectus.api.names import POOL_LABEL, POOLS_PATH
from eclectus.kubeclient.api_errors import RejectedError, UnsureError
from fake_api import fails_once
from pool_objects import new_pool, pool

NAMESPACES = "/api/v1/namespaces"
READY = {"type": "Ready", "lastTransitionTime": "2026-03-01T12:00:00Z"}


def world_of(*pools, labels=None, **spec):
    world = DagWorld(dag_job(**{"stages": [stage("a")], "pool": "research", **spec}))
    world.api.put(NAMESPACES, {"metadata": {"name": "team", "labels": labels or {}}})
    for each in pools:
        world.api.put(POOLS_PATH, each)
    world.sync()
    return world


def refused(world):
    """The message of the condition; empty if there is none."""
    found = world.condition("PoolRefused")
    assert found.get("status", "True") == "True", "it goes away, and is not kept as False"
    return found.get("message", "")


def admitting(name="research", **spec):
    return new_pool(name, namespaces={"names": ["team"]}, **spec)


def test_a_pool_that_does_not_exist_is_named_with_the_reason_and_what_to_do():
    message = refused(world_of(new_pool("teaching")))
    assert message == (
        "no Pool research admits pods of namespace team, so its pods are in the pool of their namespace: set "
        "spec.pool to a Pool that does, or let the Pool research list the namespace in its spec.namespaces"
    )


def test_of_a_pool_that_admits_others_is_not_said_whether_it_exists():
    other = new_pool("research", namespaces={"names": ["vision"]})
    assert refused(world_of(other)) == refused(world_of(new_pool("teaching")))


def test_its_pods_run_all_the_same_and_an_event_says_it_once():
    world = world_of(new_pool("teaching"))
    assert world.condition("Ready")["status"] == "True"
    world.play(60)
    assert world.condition("Succeeded")
    assert world.reasons().count("PoolRefused") == 1
    event = next(each for each in world.api.objects.values() if each.get("reason") == "PoolRefused")
    assert event["type"] == "Warning"


@pytest.mark.parametrize(
    ("pools", "labels"),
    [
        ([], {}),  # a name that Carbyne shares by
        ([admitting()], {}),
        ([new_pool(namespaces={"selector": {"matchLabels": {"tier": "gold"}}})], {"tier": "gold"}),
        ([new_pool()], {POOL_LABEL: "research"}),
    ],
)
def test_a_pool_that_takes_its_pods_causes_no_condition(pools, labels):
    assert not refused(world_of(*pools, labels=labels))


def test_a_job_that_asks_for_none_causes_no_condition_and_no_request():
    world = world_of(new_pool("teaching"), pool="")
    assert not refused(world)
    assert ("GET", f"{NAMESPACES}/team") not in world.api.calls


def test_a_selector_that_does_not_select_the_namespace_refuses_it():
    pools = [new_pool(namespaces={"selector": {"matchLabels": {"tier": "gold"}}})]
    assert "no Pool research admits" in refused(world_of(*pools, labels={"tier": "silver"}))


def test_a_pool_with_others_below_it_takes_no_pods():
    message = refused(world_of(admitting(), new_pool("vision", parent="research")))
    assert message.startswith(
        "Pool research has pools below it, and pods are in those alone, so its pods are"
    )
    assert "set spec.pool to a pool below it" in message


def test_a_pool_that_does_not_count_takes_no_pods():
    ready = {**READY, "status": "False", "reason": "NoSuchParent"}
    idle = pool(status={"conditions": [ready]}, parent="gone", namespaces={"names": ["team"]})
    message = refused(world_of(idle))
    assert message.startswith("Pool research is not valid, as its condition Ready says, so its pods are")


def test_a_pool_whose_minima_exceed_its_parents_counts():
    ready = {**READY, "status": "False", "reason": "MinimaExceedParent"}
    assert not refused(world_of(pool(status={"conditions": [ready]}, namespaces={"names": ["team"]})))


def test_no_pod_is_in_the_pool_of_all_namespaces_by_its_label():
    assert "no Pool default admits" in refused(world_of(admitting("default"), pool="default"))


def test_the_label_of_a_template_counts_and_not_the_jobs():
    template = {"metadata": {"labels": {POOL_LABEL: "teaching"}}, "spec": {"containers": []}}
    stages = [stage("a", template=template)]
    assert not refused(world_of(admitting("teaching"), stages=stages))
    message = refused(world_of(admitting("research"), stages=stages))
    assert message.startswith("no Pool teaching admits"), "which no field spec.pool names"
    assert "set the label eclectus.dev/pool of the template" in message


def test_it_goes_away_when_the_pool_admits_the_namespace_and_comes_back_when_it_does_not():
    world = world_of(new_pool("research"), stages=[stage("a", tasks=1)])
    world.quota = 0  # the job waits
    assert refused(world)
    world.api.touch(f"{POOLS_PATH}/research")["spec"]["namespaces"] = {"names": ["team"]}
    world.play(SETTINGS.look_seconds + 4)
    assert not refused(world)
    world.api.remove(f"{POOLS_PATH}/research")
    world.api.put(POOLS_PATH, new_pool("teaching"))
    world.play(SETTINGS.look_seconds + 4)
    assert refused(world)
    assert world.reasons().count("PoolRefused") == 2


def test_it_goes_away_with_the_last_pool_and_when_the_job_asks_for_another():
    world = world_of(new_pool("teaching", namespaces={"names": ["team"]}))
    world.quota = 0
    world.change(pool="teaching")
    world.play(4)
    assert not refused(world)
    world.change(pool="research")
    world.play(4)
    assert refused(world)
    world.api.remove(f"{POOLS_PATH}/teaching")
    world.play(SETTINGS.look_seconds + 4)
    assert not refused(world)


def test_a_message_follows_what_is_wrong_now():
    world = world_of(admitting(), new_pool("vision", parent="research"))
    world.quota = 0
    world.api.touch(f"{POOLS_PATH}/research")["spec"]["namespaces"] = {}
    world.play(SETTINGS.look_seconds + 4)
    assert "no Pool research admits" in refused(world)
    assert world.reasons().count("PoolRefused") == 1


def test_a_job_that_comes_a_moment_after_its_pool_is_not_said_to_be_refused():
    world = world_of(new_pool("teaching"), pool="")
    world.api.put(POOLS_PATH, admitting("late"))
    world.api.now += 2.0
    world.change(pool="late")
    world.sync()
    assert not refused(world)
    assert "PoolRefused" not in world.reasons()


def test_many_jobs_that_are_refused_cost_no_list_of_pools_each():
    world = world_of(new_pool("teaching"))
    for number in range(20):
        world.api.put("/apis/eclectus.dev/v1alpha1/namespaces/team/dagjobs", dag_job(f"j{number}", pool="no"))
    before = len(world.api.calls)
    world.sync()
    asked = [path for method, path in world.api.calls[before:] if method == "GET"]
    assert asked.count(POOLS_PATH) <= 1
    assert asked.count(f"{NAMESPACES}/team") <= 1


@pytest.mark.parametrize("error", [RejectedError("GET", 403, "forbidden"), UnsureError("GET", 500, "broken")])
def test_where_the_namespace_cannot_be_read_nothing_is_said_and_the_job_runs(error):
    world = DagWorld(dag_job(stages=[stage("a")], pool="research"))
    world.api.put(POOLS_PATH, new_pool("teaching"))
    world.api.before = fails_once("GET", f"{NAMESPACES}/team", error)

    def before(method, path, fail=world.api.before):
        if path == f"{NAMESPACES}/team":
            fail(method, path)

    world.api.before = before
    world.sync()
    assert not refused(world)
    assert world.pods()


def test_a_pool_that_cannot_be_read_is_none_as_for_the_scheduler():
    broken = new_pool("research", weight="heavy")
    assert "no Pool research admits" in refused(world_of(broken, new_pool("teaching")))
    assert not refused(world_of(broken))
