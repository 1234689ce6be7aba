"""The flow solver is killed, or hangs, while pods wait for its answer: all are placed in time, each once."""

from __future__ import annotations

import itertools
import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import requests

from live_cluster import Admin, Scheduler, pod, wait

pytestmark = [pytest.mark.live, pytest.mark.slow, pytest.mark.alone]  # a minute and a half

KILLS, HANGS = 18, 2
WAVE = 20  # pods that wait for an answer which does not come
TIMEOUT_SECONDS = 2.0
BEYOND_SECONDS = 1.0  # that no pod may wait beyond the time limit, its bind and its start included


@pytest.fixture
def flow(scheduler: Callable[..., Scheduler]) -> Scheduler:
    place = {"policy": "quincy", "costs": "load-spreading", "solveTimeout": TIMEOUT_SECONDS}
    profile = {"schedulerName": "eclectus", "place": place}
    return scheduler(profiles=[profile]).wait_deciding()


def test_pods_are_placed_whenever_the_solver_dies_or_hangs(
    admin: Admin, kubelet: Any, flow: Scheduler
) -> None:
    names = (f"pod-{number:03}" for number in itertools.count())
    created = 0
    for number in range(KILLS + HANGS):
        # 1. It is started by the next pod, once the pause after its last failure is over.
        created += _until_it_runs(admin, flow, names)
        admin.wait_succeeded(created)
        (solver,) = flow.solver_pids()
        # 2. Pods come while it is stopped, so that they wait for its answer.
        os.kill(solver, signal.SIGSTOP)
        wave, began = [next(names) for _ in range(WAVE)], time.time()
        admin.create(pod(each) for each in wave)
        created += WAVE
        # 3. It dies; or it hangs, and is killed when its time is over.
        if number < KILLS:
            wait("they wait for its answer", lambda: _pending(flow) == WAVE)
            os.kill(solver, signal.SIGKILL)
        admin.wait_succeeded(created)
        longest = max(each.started for each in kubelet.pod_times() if each.name in wave) - began
        assert longest <= TIMEOUT_SECONDS + BEYOND_SECONDS, f"a pod has waited for {longest:.2f} s"
    counters = kubelet.counters()
    assert (counters.started, counters.overcommitted, counters.refused) == (created, 0, {})


def _pending(flow: Scheduler) -> float:
    """How many pods the scheduler knows of that are not bound."""
    text = requests.get(f"http://{flow.address}/metrics", timeout=60).text
    return sum(float(each) for each in re.findall(r"^eclectus_pending_pods\{.*\} (\S+)$", text, re.MULTILINE))


def _until_it_runs(admin: Admin, flow: Scheduler, names: Iterator[str]) -> int:
    """Create a pod from time to time until a solver runs; how many."""
    created = 0

    def runs() -> object:
        nonlocal created
        admin.create([pod(next(names))])
        created += 1
        return flow.solver_pids()

    wait("a solver runs", runs, every=0.5)
    return created
