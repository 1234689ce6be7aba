"""The loop that writes what is wrong with Pools into their conditions."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from audited_api import AuditedApi, operator_rights
from eclectus.api.names import POOLS_PATH
from eclectus.kubeclient.api_errors import ConflictError, MissingError, NotDoneError
from eclectus_hack.permissions import superfluous
from eclectus_operator.cluster_nodes import NodePool
from eclectus_operator.metrics import Metrics
from eclectus_operator.operator_context import OperatorContext
from eclectus_operator.pools.pool_controller import MOST_WRITES, RETRY_SECONDS, PoolController
from eclectus_operator.program import SyncLoop, pools
from eclectus_operator.settings import Settings
from fake_api import FakeApi, fails_once
from pool_objects import pool
from probe_world import driven

SETTINGS = Settings(instance="blue", namespace="probes", look_seconds=30.0)


class PoolWorld:
    """A fake API server with these Pools, and a controller that may do what the chart grants."""

    def __init__(self, *bodies: Any) -> None:
        self.api = FakeApi()
        self.audited = AuditedApi(self.api)
        for each in bodies:
            self.api.put(POOLS_PATH, each)
        self.start()

    def start(self) -> None:
        """Start a new operator process, without memory of the one before."""
        nodes = NodePool(self.audited, lambda: self.api.now)
        context = OperatorContext(self.audited, nodes, SETTINGS, lambda: self.api.now, Random(1))
        self.controller = PoolController(context)

    def sync(self) -> float:
        return driven(self.controller.sync())

    def ready(self, name: str) -> tuple[str, str]:
        """Status and reason of its condition."""
        (condition,) = self.api.objects[f"{POOLS_PATH}/{name}"]["status"]["conditions"]
        return condition["status"], condition["reason"]

    def writes(self) -> int:
        return sum(method == "PATCH" for method, _ in self.api.calls)


def test_every_pool_gets_its_condition_once() -> None:
    world = PoolWorld(pool("a"), pool("b", parent="gone"), pool("c", weight="heavy"))
    assert world.sync() == SETTINGS.look_seconds
    assert world.ready("a") == ("True", "Accepted")
    assert world.ready("b") == ("False", "NoSuchParent")
    assert world.ready("c") == ("False", "InvalidSpec")
    world.api.now += 100
    world.start()
    world.sync()
    assert world.writes() == 3


def test_a_change_of_one_changes_what_is_said_of_others() -> None:
    world = PoolWorld(pool("a"), pool("b", parent="a"))
    world.sync()
    world.api.remove(f"{POOLS_PATH}/a")
    world.sync()
    assert world.ready("b") == ("False", "NoSuchParent")
    world.api.put(POOLS_PATH, pool("a"))
    world.sync()
    assert world.ready("b") == ("True", "Accepted")


def test_what_the_scheduler_has_written_stays() -> None:
    world = PoolWorld(pool("a", status={"held": {"cpu": "1"}, "waitingPods": 3}))
    world.sync()
    status = world.api.objects[f"{POOLS_PATH}/a"]["status"]
    assert (status["held"], status["waitingPods"]) == ({"cpu": "1"}, 3)
    assert world.ready("a") == ("True", "Accepted")


@pytest.mark.parametrize("error", [ConflictError("PATCH", 409), NotDoneError("PATCH", 503)])
def test_a_status_that_cannot_be_written_delays_no_other_and_is_written_soon(error: Exception) -> None:
    world = PoolWorld(pool("a"), pool("b"))
    world.api.before = fails_once("PATCH", "/a/", error)
    assert world.sync() == RETRY_SECONDS
    assert world.ready("b") == ("True", "Accepted")
    assert world.sync() == SETTINGS.look_seconds
    assert world.ready("a") == ("True", "Accepted")


def test_a_pool_that_is_gone_meanwhile_is_nothing_to_repeat() -> None:
    world = PoolWorld(pool("a"))
    world.api.before = fails_once("PATCH", "/a/", MissingError("PATCH", 404))
    assert world.sync() == SETTINGS.look_seconds


def test_null_in_a_spec_means_not_set() -> None:
    world = PoolWorld({**pool("a"), "spec": {"parent": None, "minShare": {"amounts": {"cpu": None}}}})
    world.sync()
    assert world.ready("a") == ("True", "Accepted")


def test_of_many_changes_some_are_left_to_the_next_sync() -> None:
    world = PoolWorld(*(pool(f"p{at}") for at in range(MOST_WRITES + 1)))
    assert world.sync() == RETRY_SECONDS
    assert world.writes() == MOST_WRITES
    assert world.sync() == SETTINGS.look_seconds
    assert world.writes() == MOST_WRITES + 1


def test_without_the_definition_there_are_none_and_the_operator_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = PoolWorld()

    def undefined(method: str, path: str) -> None:
        raise MissingError(f"{method} {path}", 404)

    world.api.before = undefined
    with caplog.at_level("INFO"):
        assert [world.sync(), world.sync()] == [SETTINGS.look_seconds] * 2
    assert caplog.text.count("Pool is not defined here") == 1


def test_every_right_to_pools_is_used_by_a_sync_or_the_watch() -> None:
    world = PoolWorld(pool("a"))
    world.sync()
    rights = {each for each in operator_rights(dag_jobs=False) if each.resource.startswith("pools")}
    assert {each.verb for each in superfluous(rights, world.audited.used)} == {"watch"}
    handlers = SyncLoop(pools(SETTINGS), SETTINGS, lambda: True, Metrics()).registry()._watching
    assert {each.selector.any_name for each in handlers.get_all_handlers()} == {"pools"}
