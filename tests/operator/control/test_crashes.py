"""The operator dies at every request it makes, before or after its effect: nothing lost, nothing doubled."""

from collections import Counter

import pytest

from fake_api import NODES, PODS, PROBES, PROFILES, Crash
from probe_world import REAL, ProbeWorld, node_probe, real

LIMIT = 2
PROBING_SECONDS, QUIET_SECONDS = 45.0, 90.0  # the latter: for the last run to end
CROWDED_SECONDS = 15.0, 30.0  # from the first moment on
NODE_NAMES = ("n0", "n1", "n2")


class Watchdog:
    """What must hold at every write, whoever dies when."""

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
            assert "outcome" not in run, "a pod is created only for a run that is written down and not over"
            pods = self._api.pods().values()
            nodes = [each["metadata"]["annotations"]["eclectus.dev/node"] for each in pods]
            assert run["node"] not in nodes
            assert len(pods) < LIMIT
        if method == "DELETE":
            assert "outcome" in run, "a pod is deleted only when its outcome is written down"

    def _run(self, number: int) -> dict:
        (run,) = [each for each in self._api.probe("batch")["status"]["runs"] if each["number"] == number]
        return run


def life(crash_at: tuple[int, bool] | None, crowded: str = "") -> tuple[ProbeWorld, Watchdog]:
    """Probes for a while, then none; an operator that dies is followed by a new one at the next look.

    `crowded`: in between a real pod waits for the room of any probe that holds some ("held"), or real pods
    run on all nodes in the room that probes stand for ("borrowed").
    """
    world = ProbeWorld()
    for name in NODE_NAMES:
        world.api.touch(f"{NODES}/{name}")["status"]["allocatable"]["cpu"] = "1"
    watchdog = Watchdog(world)
    world.api.put(PROBES, node_probe(limits={"running": LIMIT}, reserveRoom=crowded == "held"))
    crowd = [real(f"late-{name}", "1", on=name) for name in NODE_NAMES]
    crowd = crowd if crowded == "borrowed" else [real("late", "1")]
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


def calls_of_a_life(crowded: str = "") -> int:
    world, _ = life(None, crowded)
    return len(world.api.calls)


CALLS = calls_of_a_life()


def test_a_quiet_life_is_long_enough_to_die_in():
    world, _ = life(None)
    methods = {(method, path.rpartition("/")[2][:8]) for method, path in world.api.calls}
    assert {("POST", "pods"), ("PATCH", "status"), ("POST", "nodeprof")} <= methods
    assert world.status()["succeeded"] >= 3
    for crowded in ("held", "borrowed"):
        world, _ = life(None, crowded)
        assert world.status()["failed"] >= 1, "in a crowded life probes make way"


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_whatever_request_it_dies_at_nothing_leaks_and_no_probe_runs_twice(after):
    for call in range(CALLS):
        world, watchdog = life((call, after))
        status = world.status()
        assert set(watchdog.pods_ever.values()) <= {1}, f"call {call}: a probe ran twice"
        assert world.api.pods() == {}, f"call {call}: a pod is left"
        assert status["runs"] == [], f"call {call}: a run is left"
        assert status["running"] == 0
        assert status["succeeded"] + status["failed"] == status["nextNumber"], (
            f"call {call}: a run is not counted"
        )
        # A run whose pod was not created yet when the author withdrew is the only one that may fail.
        assert status["failed"] <= 1
        assert len(watchdog.pods_ever) >= status["succeeded"] >= 2
        profiles = [path for path in world.api.objects if path.startswith(PROFILES)]
        assert len(profiles) >= 2, f"call {call}: the nodes' profiles were not told"


@pytest.mark.parametrize("crowded", ["held", "borrowed"])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_the_same_holds_when_probes_make_way(after, crowded):
    for call in range(calls_of_a_life(crowded)):
        world, watchdog = life((call, after), crowded)
        status = world.status()
        assert set(watchdog.pods_ever.values()) <= {1}, f"call {call}: a probe ran twice"
        assert world.api.pods() == {}, f"call {call}: a pod is left"
        assert status["runs"] == [], f"call {call}: a run is left"
        assert status["succeeded"] + status["failed"] == status["nextNumber"]


def test_the_same_holds_when_it_it_dies_again_and_again():
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
