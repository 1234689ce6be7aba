"""Required anti-affinity of placed pods: no matching pod is placed beside them, whichever is seen first."""

from __future__ import annotations

from msgspec.structs import replace

from builders import make_engine, make_node, make_spec, make_task
from eclectus.model.commands import Bind
from eclectus.model.events import NodeSeen, Resumed, TaskGone, TaskSeen
from eclectus.model.objects import PodAffinityTerm, Requirement, Task, WeightedTerm

TERM = PodAffinityTerm("zone", (Requirement("app", "In", ("web",)),), ("default",))
WEB = (("app", "web"),)
NODES = [
    NodeSeen(make_node(name, labels={"zone": zone})) for name, zone in (("a1", "a"), ("a2", "a"), ("b1", "b"))
]


def running(name: str, node: str) -> TaskSeen:
    return TaskSeen(
        make_task(name, profile="another", node=node, anti_affinity_terms=(TERM,), phase="Running")
    )


def pending(name: str, labels: tuple[tuple[str, str], ...] = WEB) -> Task:
    return make_task(name, labels=labels)


def bound(commands: list[object]) -> dict[str, str]:
    return {command.name: command.node for command in commands if isinstance(command, Bind)}


def test_a_matching_pod_is_placed_in_another_zone() -> None:
    engine = make_engine()
    commands = engine.step([*NODES, running("r", "a1"), TaskSeen(pending("p")), Resumed()], 0.0)
    assert bound(list(commands)) == {"p": "b1"}


def test_a_term_that_is_seen_after_the_pending_pod_counts_too() -> None:
    engine = make_engine()
    engine.step([*NODES, TaskSeen(pending("p")), TaskSeen(pending("q", ()))], 0.0)
    both = [running("r", "a1"), running("s", "b1"), Resumed()]
    assert set(bound(list(engine.step(both, 1.0)))) == {"q"}
    assert bound(list(engine.step([TaskGone("uid-s")], 2.0))) == {"p": "b1"}


def test_a_pod_of_another_namespace_or_label_is_not_restricted() -> None:
    engine = make_engine()
    placed = [running("r", "a1"), running("s", "b1")]
    other = Task("uid-x", "elsewhere", "x", labels=WEB)
    commands = engine.step([*NODES, *placed, TaskSeen(other), TaskSeen(pending("q", ())), Resumed()], 0.0)
    assert set(bound(list(commands))) == {"x", "q"}


def test_a_pod_that_terms_of_both_kinds_match_is_requeued_once() -> None:
    engine = make_engine()
    full = make_node("a1", cpu=1, labels={"zone": "a"})
    engine.step([NodeSeen(full), Resumed(), TaskSeen(pending("first")), TaskSeen(pending("second"))], 1.0)
    before = engine.queue_counts().counters.incoming["active", "PodUpdate"]
    spec = make_spec(0, preferred_terms=(WeightedTerm(-10, TERM),))
    other = make_task("other", profile="another", node="a1", anti_affinity_terms=(TERM,), spec=spec)
    engine.step([TaskSeen(replace(other, phase="Running"))], 2.0)
    counters = engine.queue_counts().counters
    assert counters.incoming["active", "PodUpdate"] == before + 1
    spec = engine._state.pending["uid-second"].spec
    assert spec.matched_terms == (TERM,)
    assert spec.matched_preferences == (TERM,)
