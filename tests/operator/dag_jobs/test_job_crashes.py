"""The operator crashes at each of its requests, before or after the effect: no task is lost or runs twice."""

from collections import Counter

import pytest

from dag_jobs import dag_job, stage
from dag_operator_world import PODS, SETTINGS, DagWorld, task_of
from fake_api import Crash

SECONDS, STEP = 100.0, 2.0
FAILING = ("b", 1, 0)
STAGES = [
    stage("a", tasks=2),
    stage("b", "a", tasks=2, inputs=[{"stage": "a", "lostWithNode": True}]),
    stage("c", "a"),
]
KEEP_ONE = SETTINGS.__class__(**{**SETTINGS.__dict__, "dag_kept": 1})


class Watchdog:
    """The invariants of every write."""

    def __init__(self, world: DagWorld) -> None:
        self._world = world
        world.api.watchers.append(self._written)
        self.pods_ever: Counter[tuple[str, int, int]] = Counter()

    def _written(self, method: str, path: str, body: dict) -> None:
        if not path.startswith(PODS):
            return
        pods = [pod for pod in self._world.pods().values() if task_of(pod)[:2] == task_of(body)[:2]]
        if method == "POST":
            self.pods_ever[task_of(body)] += 1
            phases = [pod.get("status", {}).get("phase", "Pending") for pod in pods]
            assert not set(phases) & {"Pending", "Running", "Succeeded"}, "one pod of a task at a time"
        if method == "DELETE" and body.get("status", {}).get("phase") == "Succeeded":
            stages = {each["name"]: each for each in self._world.status()["stages"]}
            assert stages[task_of(body)[0]]["succeeded"] > 0, "a success is recorded before its pod goes"


def simulate(crash_at: tuple[int, bool] | None, suspends: bool = False) -> tuple[DagWorld, Watchdog]:
    """A job to its end; a new operator replaces a crashed one. `suspends`: it is suspended in between."""
    world = DagWorld(dag_job(stages=STAGES), settings=KEEP_ONE)
    world.ends = {FAILING: (1, "Error")}
    watchdog = Watchdog(world)
    world.api.crash_at = crash_at
    begin = world.api.now
    while world.api.now < begin + SECONDS:
        if suspends and world.api.now in (begin + 12.0, begin + 20.0):
            world.change(suspend=world.api.now == begin + 12.0)
        world.cluster_step()
        try:
            world.sync()
        except Crash:
            world.start()
        world.api.now += STEP
    return world, watchdog


def test_the_simulation_covers_every_kind_of_request():
    world, watchdog = simulate(None)
    methods = {(method, path.rpartition("/")[2][:8]) for method, path in world.api.calls}
    assert {("POST", "pods"), ("PATCH", "status"), ("POST", "events"), ("GET", "job")} <= methods
    assert any(method == "DELETE" for method, _ in world.api.calls)
    assert watchdog.pods_ever["b", 1, 1] == 1


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_whatever_request_it_crashes_at_each_task_succeeds_once(after):
    for call in range(len(simulate(None)[0].api.calls)):
        world, watchdog = simulate((call, after))
        assert world.condition("Succeeded").get("status") == "True", f"call {call}"
        assert world.status()["tasks"] == "5/5", f"call {call}"
        assert set(watchdog.pods_ever.values()) == {1}, f"call {call}: {watchdog.pods_ever}"
        assert len(watchdog.pods_ever) == 6, f"call {call}: five tasks and one retry"
        assert world.stage("b")["retried"] == 1, f"call {call}"


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_the_same_holds_when_it_is_suspended_in_between(after):
    for call in range(len(simulate(None, suspends=True)[0].api.calls)):
        world, watchdog = simulate((call, after), suspends=True)
        assert world.condition("Succeeded").get("status") == "True", f"call {call}"
        assert world.stage("b")["retried"] <= 1, f"call {call}: a deleted pod is no failure"
        assert watchdog.pods_ever["a", 0, 0] == watchdog.pods_ever["a", 1, 0] == 1, f"call {call}"


def test_the_same_holds_when_it_crashes_again_and_again():
    for first in range(0, 40, 3):
        world = DagWorld(dag_job(stages=STAGES), settings=KEEP_ONE)
        watchdog = Watchdog(world)
        world.api.crash_at = (first, True)
        for step in range(120):
            world.cluster_step()
            try:
                world.sync()
            except Crash:
                world.start()
                world.api.crash_at = (len(world.api.calls) + 5, bool(step % 2)) if step < 80 else None
            world.api.now += STEP
        assert world.condition("Succeeded").get("status") == "True"
        assert set(watchdog.pods_ever.values()) == {1}
