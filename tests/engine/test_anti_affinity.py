"""Residents' anti-affinity from the event to the bind: whoever comes first, nobody is placed beside it."""

from __future__ import annotations

from builders import make_engine, make_node, make_task
from eclectus.model.commands import Bind
from eclectus.model.events import NodeSeen, Resumed, TaskGone, TaskSeen
from eclectus.model.objects import AntiAffinityTerm, Requirement, Task

GUARD = AntiAffinityTerm("zone", (Requirement("app", "In", ("web",)),), ("default",))
WEB = (("app", "web"),)
NODES = [
    NodeSeen(make_node(name, labels={"zone": zone})) for name, zone in (("a1", "a"), ("a2", "a"), ("b1", "b"))
]


def resident(name: str, node: str) -> TaskSeen:
    return TaskSeen(
        make_task(name, profile="another", node=node, anti_affinity_terms=(GUARD,), phase="Running")
    )


def waiting(name: str, labels: tuple[tuple[str, str], ...] = WEB) -> Task:
    return make_task(name, labels=labels)


def bound(commands: list[object]) -> dict[str, str]:
    return {command.name: command.node for command in commands if isinstance(command, Bind)}


def test_a_matching_pod_lands_outside_the_guarded_zone() -> None:
    engine = make_engine()
    commands = engine.step([*NODES, resident("r", "a1"), TaskSeen(waiting("p")), Resumed()], 0.0)
    assert bound(list(commands)) == {"p": "b1"}


def test_a_guard_that_comes_after_the_pod_counts_all_the_same() -> None:
    engine = make_engine()
    engine.step([*NODES, TaskSeen(waiting("p")), TaskSeen(waiting("q", ()))], 0.0)
    both = [resident("r", "a1"), resident("s", "b1"), Resumed()]
    assert set(bound(list(engine.step(both, 1.0)))) == {"q"}
    assert bound(list(engine.step([TaskGone("uid-s")], 2.0))) == {"p": "b1"}


def test_a_pod_of_another_namespace_or_label_is_free() -> None:
    engine = make_engine()
    guards = [resident("r", "a1"), resident("s", "b1")]
    stranger = Task("uid-x", "elsewhere", "x", labels=WEB)
    commands = engine.step([*NODES, *guards, TaskSeen(stranger), TaskSeen(waiting("q", ())), Resumed()], 0.0)
    assert set(bound(list(commands))) == {"x", "q"}
