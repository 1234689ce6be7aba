"""The operator crashes at each of its requests, before or after the effect: nothing is lost or doubled."""

from collections import Counter

import pytest

from fake_api import NODES, PODS, PROBES, PROFILES, Crash
from probe_world import REAL, ProbeWorld, node_probe, real

LIMIT = 2
PROBING_SECONDS, QUIET_SECONDS = 45.0, 90.0  # the latter: for the last run to end
CROWDED_SECONDS = 15.0, 30.0  # from the first moment on
NODE_NAMES = ("n0", "n1", "n2")


class Watchdog:
    """The invariants of every write."""

    def __init__(self, world: ProbeWorld) -> None:
        self._api = world.api
        world.api.watchers.append(self._written)
        self.pods_ever: Counter[str] = Counter()

    def _written(self, method: str, path: str, _: object) -> None:
        if not path.startswith(PODS):
            return
        name = path.rpartition("/")[2]
        run = self._run(int(name.rpartition("-")[2]))
        if method == "POST":
            self.pods_ever[name] += 1
            assert "outcome" not in run, "a pod is created only for a recorded run that has not ended"
            pods = self._api.pods().values()
            nodes = [each["metadata"]["annotations"]["eclectus.dev/node"] for each in pods]
            assert run["node"] not in nodes
            assert len(pods) < LIMIT
        if method == "DELETE":
            assert "outcome" in run, "a pod is deleted only when its outcome is recorded"

    def _run(self, number: int) -> dict:
        (run,) = [each for each in self._api.probe("batch")["status"]["runs"] if each["number"] == number]
        return run


def simulate(crash_at: tuple[int, bool] | None, crowded: str = "") -> tuple[ProbeWorld, Watchdog]:
    """Probes for a while, then none; a new operator replaces a crashed one at the next step.

    `crowded`: in between a real pod waits for room that any probe has reserved ("reserved"), or real pods
    run on all nodes and use what the probes notionally request ("notional").
    """
    world = ProbeWorld()
    for name in NODE_NAMES:
        world.api.touch(f"{NODES}/{name}")["status"]["allocatable"]["cpu"] = "1"
    watchdog = Watchdog(world)
    world.api.put(PROBES, node_probe(limits={"running": LIMIT}, reserveRoom=crowded == "reserved"))
    crowd = [real(f"late-{name}", "1", on=name) for name in NODE_NAMES]
    crowd = crowd if crowded == "notional" else [real("late", "1")]
    world.api.crash_at = crash_at
    suspended = False
    begin = world.api.now
    end = begin + PROBING_SECONDS + QUIET_SECONDS
    while world.api.now < end:
        if not suspended and world.api.now >= end - QUIET_SECONDS:
            world.suspend()
            suspended = True
        if crowded and world.api.now == begin + CROWDED_SECONDS[0]:
            for pod in crowd:
                world.api.put(REAL, pod)
        if crowded and world.api.now == begin + CROWDED_SECONDS[1]:
            for pod in crowd:
                world.api.remove(f"{REAL}/{pod['metadata']['name']}")
        world.cluster_step()
        try:
            world.sync()
        except Crash:
            world.start()
        world.api.now += 5.0
    return world, watchdog


def count_calls(crowded: str = "") -> int:
    world, _ = simulate(None, crowded)
    return len(world.api.calls)


CALLS = count_calls()


def test_the_simulation_covers_every_kind_of_request():
    world, _ = simulate(None)
    methods = {(method, path.rpartition("/")[2][:8]) for method, path in world.api.calls}
    assert {("POST", "pods"), ("PATCH", "status"), ("POST", "nodeprof")} <= methods
    assert world.status()["succeeded"] >= 3
    for crowded in ("reserved", "notional"):
        world, _ = simulate(None, crowded)
        assert world.status()["failed"] >= 1, "probes yield when it is crowded"


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.long
def test_whatever_request_it_crashes_at_nothing_leaks_and_no_probe_runs_twice(after):
    for call in range(CALLS):
        world, watchdog = simulate((call, after))
        status = world.status()
        assert set(watchdog.pods_ever.values()) <= {1}, f"call {call}: a probe ran twice"
        assert world.api.pods() == {}, f"call {call}: a pod is left"
        assert status["runs"] == [], f"call {call}: a run is left"
        assert status["running"] == 0
        assert status["succeeded"] + status["failed"] == status["nextNumber"], (
            f"call {call}: a run is not counted"
        )
        # Only a run whose pod was not created yet when its NodeProbe was suspended may fail.
        assert status["failed"] <= 1
        assert len(watchdog.pods_ever) >= status["succeeded"] >= 2
        profiles = [path for path in world.api.objects if path.startswith(PROFILES)]
        assert len(profiles) >= 2, f"call {call}: the nodes' profiles were not written"


@pytest.mark.parametrize("crowded", ["reserved", "notional"])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_the_same_holds_when_probes_yield(after, crowded):
    for call in range(count_calls(crowded)):
        world, watchdog = simulate((call, after), crowded)
        status = world.status()
        assert set(watchdog.pods_ever.values()) <= {1}, f"call {call}: a probe ran twice"
        assert world.api.pods() == {}, f"call {call}: a pod is left"
        assert status["runs"] == [], f"call {call}: a run is left"
        assert status["succeeded"] + status["failed"] == status["nextNumber"]


def test_the_same_holds_when_it_crashes_again_and_again():
    for first in range(0, CALLS, 7):
        world = ProbeWorld()
        watchdog = Watchdog(world)
        world.api.put(PROBES, node_probe(limits={"running": LIMIT}))
        world.api.crash_at = (first, True)
        for step in range(60):
            if step == 20:
                world.suspend()
            world.cluster_step()
            try:
                world.sync()
            except Crash:
                world.start()
                world.api.crash_at = (len(world.api.calls) + 3, bool(step % 2)) if step < 40 else None
            world.api.now += 5.0
        assert set(watchdog.pods_ever.values()) <= {1}
        assert world.api.pods() == {}
        assert world.status()["runs"] == []
