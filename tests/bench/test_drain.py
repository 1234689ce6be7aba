"""A backlog waits before the scheduler starts, or arrives while it runs and has come to rest."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from eclectus_bench.drain import Backlog, Drain, UntilSettled, drain
from eclectus_bench.load import Binds
from eclectus_bench.schedulers import SchedulerUnderTest

PODS: Sequence[Any] = [{"metadata": {"name": f"pod-{at}"}} for at in range(3)]


class FakeLoad:
    """Pods are bound as soon as both they and a running scheduler exist; `happened` is what was done."""

    def __init__(self, binds: Binds) -> None:
        self.happened: list[str] = []
        self._binds, self._runs, self._created = binds, False, False

    async def create_pods(self, namespace: str, pods: Sequence[Any]) -> None:
        self.happened.append(f"{len(pods)} pods in {namespace}")
        self._created = True
        self._bind()

    async def events(self, namespace: str) -> int:
        return len(PODS)

    @contextmanager
    def running(self) -> Iterator[int]:
        self.happened.append("starts")
        self._runs = True
        asyncio.get_running_loop().call_soon(self._bind)
        yield os.getpid()
        self.happened.append("stops")

    def _bind(self) -> None:
        if self._runs and self._created:
            for at, pod in enumerate(PODS):
                self._binds.seen_at.setdefault(pod["metadata"]["name"], time.monotonic() + at)
            self._binds.first.set()


def drained(until_settled: UntilSettled | None = None) -> tuple[Drain, FakeLoad]:
    async def run() -> tuple[Drain, FakeLoad]:
        binds = Binds()
        load: Any = FakeLoad(binds)
        scheduler = SchedulerUnderTest("ours", "ours", load.running)
        pids = dict.fromkeys(("kube-apiserver", "etcd"), os.getpid())
        backlog = Backlog("here", PODS, until_settled)
        found = await drain(load, scheduler, pids, binds, backlog, pair=1, say=lambda text: None)
        return found, load

    return asyncio.run(run())


def test_a_backlog_exists_before_the_scheduler_starts_and_counts_from_the_first_bind() -> None:
    found, load = drained()
    assert load.happened == ["3 pods in here", "starts", "stops"]
    assert found.pods_per_second == pytest.approx(2 / 2, rel=0.01)  # the other two, in two seconds
    assert (found.pair, found.pods, found.events) == (1, 3, 3)


def test_pods_that_arrive_are_created_when_the_scheduler_is_at_rest_and_all_count() -> None:
    settled_for = list[int]()

    async def until_settled(pid: int) -> None:
        settled_for.append(pid)

    found, load = drained(until_settled)
    assert load.happened == ["starts", "3 pods in here", "stops"]
    assert settled_for == [os.getpid()]
    assert found.pods_per_second == pytest.approx(3 / 2, rel=0.2)  # the last, two seconds after the first
