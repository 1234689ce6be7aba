"""Pools as the scheduler watches them: which count, and what is reported of the others."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from eclectus.api.pool import PoolStatus
from eclectus.framework.traits import NEEDS
from eclectus.kube.objects import decode_list
from eclectus.live.inbox import Inbox
from eclectus.live.watch.reflector import ObjectStore, Reflector
from eclectus.live.watch.watched_kinds import (
    ClaimStates,
    PoolState,
    WatchedDagJobs,
    WatchedPods,
    WatchedPools,
    pools_kind,
    watched_kinds,
)
from eclectus.model.errors import MalformedError
from eclectus.model.events import PoolGone, PoolSeen
from eclectus.model.pool import Pool
from pool_objects import pool

LIST = "GET /apis/eclectus.dev/v1alpha1/pools"


@pytest.fixture
def skipped() -> list[MalformedError]:
    return []


@pytest.fixture
def pools() -> WatchedPools:
    return WatchedPools()


@pytest.fixture
def store(pools: WatchedPools, skipped: list[MalformedError]) -> ObjectStore:
    return ObjectStore(pools_kind(pools), skipped.append)


def observed(store: ObjectStore, body: Any, kind: str = "MODIFIED") -> Any:
    return store.apply(json.dumps({"type": kind, "object": body}).encode(), 0.0)


def test_a_pool_is_seen_with_the_version_and_the_status_for_its_patch(
    store: ObjectStore, pools: WatchedPools
) -> None:
    body = pool(weight=2, status={"held": {"cpu": "1"}}, version="7")
    assert observed(store, body) == PoolSeen(Pool("research", weight=2.0))
    assert pools.pool_states == {"research": PoolState("7", PoolStatus(held={"cpu": "1"}))}
    assert observed(store, body, "DELETED") == PoolGone("research")
    assert pools.pool_states == {}


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"weight": "heavy"}, "spec.weight"),
        ({"minShare": {"amounts": {"cpu": "x"}}}, "spec.minShare.amounts.cpu"),
        (
            {"minShare": {"amounts": {"cpu": 2}}, "maxShare": {"amounts": {"cpu": 1}}},
            "spec.minShare: it has a minimum of 2 cpu",
        ),
    ],
)
def test_a_pool_that_cannot_be_valid_is_reported_and_counts_as_gone(
    store: ObjectStore, pools: WatchedPools, skipped: list[MalformedError], spec: Any, field: str
) -> None:
    observed(store, pool())
    assert observed(store, pool(**spec)) == PoolGone("research")
    assert pools.pool_states == {}, "nothing is written of it"
    assert f"Pool research: {field}" in str(skipped[0])
    assert observed(store, pool("other")) == PoolSeen(Pool("other"))
    assert observed(store, pool()) == PoolSeen(Pool("research")), "it has been mended"
    assert len(skipped) == 1


def test_pools_that_are_on_no_list_are_gone(store: ObjectStore, skipped: list[MalformedError]) -> None:
    observed(store, pool(weight="heavy"))
    observed(store, pool("other"))
    store.start_list()
    store.page(decode_list(json.dumps({"metadata": {}, "items": []}).encode()), 0.0)
    assert set(store.end_list()) == {PoolGone("research"), PoolGone("other")}


@pytest.mark.parametrize("needs", [(), NEEDS])
def test_pools_are_watched_whatever_policies_need(pools: WatchedPools, needs: Any) -> None:
    ours = frozenset({"eclectus"}).__contains__
    kinds = watched_kinds(needs, WatchedPods(ours), WatchedDagJobs(ours), pools, ClaimStates())
    assert {"pools", "namespaces"} <= {each.name for each in kinds}


def test_a_cluster_that_does_not_define_pools_has_none_and_nobody_is_warned(
    server: Any, pools: WatchedPools, until: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async def work() -> int:
        async with server.context() as context:
            inbox = Inbox()
            reflector = Reflector(pools_kind(pools), context, inbox, lambda: 0.0)
            watching = asyncio.create_task(reflector.run())
            async with asyncio.timeout(10):
                await reflector.synced.wait()
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
            return len(inbox)

    assert asyncio.run(work()) == 0
    assert server.count(LIST) == 1
    assert not [each for each in caplog.records if each.levelname in ("WARNING", "ERROR")]
