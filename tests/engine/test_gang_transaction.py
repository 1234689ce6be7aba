"""An abandoned transaction leaves no trace: arrays, accounts, queues, volumes and draws are as they were."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from builders import make_engine, make_node, make_task
from eclectus.engine.gang_attempts import Transaction
from eclectus.engine.state import State
from eclectus.framework import Place
from eclectus.model.commands import Bind
from eclectus.model.events import Event, NodeSeen, Paused, Resumed, TaskGone, TaskSeen
from eclectus.model.objects import HostPort, PodAffinityTerm, Requirement, SpreadConstraint, Task
from eclectus.model.volumes import StorageClass
from eclectus.policies.order.drf import DominantShare
from eclectus.policies.place.allocation import LeastAllocated
from eclectus.policies.place.power_of_two import PowerOfTwo
from eclectus.policies.rosella import Rosella
from gangs import group, members
from storage_objects import make_claim, make_volume, seen, with_claims

ZONE = "zone"
LAYERS = ("allocatable", "used", "tentative", "long_running", "scored")


def random_task(rng: Random, name: str) -> Task:
    """A pod with one of the rules of which the cluster keeps counts, or with none."""
    app = f"a{rng.randrange(2)}"
    selector = (Requirement("app", "In", (app,)),)
    term = PodAffinityTerm(ZONE, selector, ("default",))
    spread = SpreadConstraint(ZONE, "default", selector, counts_itself=True, max_skew=5)
    fields: dict[str, Any] = rng.choice(
        [
            {"cpu": rng.randrange(1, 4)},
            {"cpu": 1, "long_running": True},
            {"cpu": 1, "host_ports": (HostPort(80),)},
            {"own_anti_affinity": (term,), "anti_affinity_terms": (term,)},
            {"spread": (spread,), "topology_keys": (ZONE,)},
            {"cpu": 0, "device_milli": 500},
        ]
    )
    owner = {"job": f"j{rng.randrange(3)}", "estimate": rng.random()}
    return make_task(name, labels=(("app", app),), workload=app, **owner, **fields)


def fingerprint(state: State) -> dict[str, Any]:
    """All that decisions are made of. Change logs and caches may know that rows were looked at."""
    cluster, placed = state.cluster, state.placed
    devices, storage = cluster.devices, state.volumes
    assert devices is not None
    return {
        "arrays": {name: getattr(cluster, name).tobytes() for name in LAYERS},
        "devices": (devices._free.tobytes(), dict(devices._held)),
        "placed": dict(placed._placed),
        "on": {node: list(uids) for node, uids in placed._on.items() if uids},
        "priorities": +placed._priorities,
        "assumed": dict(placed.assumed),
        "shares": [(each._held, each._counted) for each in state.accounts.shares.values()],
        "volumes": (dict(cluster.volumes.storage.decisions), dict(storage._binding), dict(storage._waits)),
        "places": {uid: place for uid, (place, _) in state.places._of.items() if place != "lead"},
        "queued": len(state.class_queues),
        "random": state.view.rng.getstate(),
        "commands": list(state._commands),
        "reports": (
            dict(state.reports._first),
            dict(state.reports._moved._valid),
            dict(state.reports._repeated._valid),
            dict(state.reports._reported),
        ),
        "fits": {
            uid: state.view.task_class(task).fits_now_rows.tolist() for uid, task in state.pending.items()
        },
    }


@pytest.mark.parametrize("seed", range(20))
def test_an_abandoned_transaction_leaves_the_state_as_it_was(seed: int) -> None:
    rng = Random(f"transaction {seed}")
    engine = make_engine(LeastAllocated(), order=DominantShare())
    nodes = [make_node(f"n{at}", cpu=9, labels={ZONE: f"z{at % 2}"}, devices=at % 2) for at in range(6)]
    given = [random_task(rng, f"t{at}") for at in range(20)]
    claims = [make_claim(f"c{at}") for at in range(3)]
    volumes = [make_volume(f"v{at}") for at in range(2)]
    local = StorageClass("late", "kubernetes.io/no-provisioner", waits_for_consumer=True)
    storage = seen(local, *claims, *volumes)
    waiting = [with_claims(make_task(f"w{at}", cpu=1), f"c{at}") for at in range(3)]
    waiting += [random_task(rng, f"w{at}") for at in range(3, 12)]
    engine.step([Resumed(), *storage, *map(NodeSeen, nodes), *map(TaskSeen, given)], 0.0)
    engine.step([Paused(), *map(TaskSeen, waiting)], 1.0)
    state = engine._state
    state.begin_step(2.0)
    before = fingerprint(state)
    transaction = Transaction(state)
    state.view.rng.random()
    for task in waiting:
        resolved = state.pending[task.uid]
        rows = state.view.task_class(resolved).fits_now_rows
        if len(rows):
            transaction.place(resolved, int(rng.choice(rows.tolist())))
    assert len(transaction) >= 3
    assert fingerprint(state) != before
    transaction.abandon()
    after = fingerprint(state)
    assert {name for name in before if before[name] != after[name]} == set()


def story(seed: int, place: Place, *, with_gang: bool) -> list[tuple[float, str, str]]:
    """When which ordinary pod is bound to which node, with and without a gang that never has room."""
    rng, engine = Random(f"gang {seed}"), make_engine(place, seed=seed)
    nodes = [make_node(f"n{at}", cpu=4) for at in range(5)]
    gang: list[Event] = [group(minimum=30), *map(TaskSeen, members(count=30))] if with_gang else []
    events: list[Event] = [Resumed(), *map(NodeSeen, nodes)]
    bound: list[tuple[float, str, str]] = []
    running: list[str] = []
    for step in range(120):
        if step == 3:
            events += gang
        if rng.random() < 0.6:
            events.append(TaskSeen(make_task(f"t{step}", cpu=rng.randrange(1, 4), created=float(step))))
        if running and rng.random() < 0.4:
            events.append(TaskGone(running.pop(rng.randrange(len(running)))))
        commands = engine.step(events, float(step))
        events = []
        for command in commands:
            if isinstance(command, Bind):
                bound.append((float(step), command.name, command.node))
                running.append(command.uid)
    if with_gang:
        assert engine._state.counters.attempts["unschedulable", "eclectus"] > 30, "it was tried"
    return bound


@pytest.mark.parametrize("place", [PowerOfTwo, LeastAllocated, Rosella])
@pytest.mark.parametrize("seed", range(4))
def test_a_gang_that_never_has_room_changes_no_decision_about_others(seed: int, place: type[Place]) -> None:
    assert story(seed, place(), with_gang=True) == story(seed, place(), with_gang=False)
