"""Preemption against kube-scheduler's algorithm, written in the simplest way."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from builders import make_engine, make_node, make_task
from eclectus.model.events import BudgetSeen
from eclectus.model.objects import Budget, HostPort, Node, Requirement, Task
from eclectus.policies.place.allocation import LeastAllocated
from eclectus.policies.relieve.preemption import Preemption
from judge import refusal
from worlds import World

OFFSET = 2**31
SHAPES: list[dict[str, Any]] = [
    {"cpu": 1},
    {"cpu": 2},
    {"cpu": 1, "memory": 30},
    {"cpu": 0, "host_ports": (HostPort(80),)},
    {"cpu": 3},
]


@dataclass
class Choice:
    """The victims on one node, and how kube-scheduler compares them with those on others."""

    node: str
    victims: set[str]
    cost: tuple[float, ...]


def important_first(pods: list[Task]) -> list[Task]:
    return sorted(pods, key=lambda pod: (-pod.priority, pod.started))


def violating(pods: list[Task], budgets: list[Budget]) -> set[str]:
    """filterPodsWithPDBViolation: each pod in turn takes one from every budget that selects it."""
    allowed = {budget.name: budget.allowed for budget in budgets}
    found = set()
    for pod in pods:
        for budget in budgets:
            if dict(pod.labels).get("app") in budget.selector[0].values:
                allowed[budget.name] -= 1
                if allowed[budget.name] < 0:
                    found.add(pod.name)
    return found


def on_node(preemptor: Task, node: Node, pods: list[Task], budgets: list[Budget]) -> Choice | None:
    """SelectVictimsOnNode."""
    staying = [pod for pod in pods if pod.priority >= preemptor.priority]
    lower = important_first([pod for pod in pods if pod.priority < preemptor.priority])
    if refusal(preemptor, node, staying):
        return None
    violates = violating(lower, budgets)
    victims = []
    for is_violating in (True, False):
        for pod in lower:
            if (pod.name in violates) == is_violating:
                if refusal(preemptor, node, [*staying, pod]):
                    victims.append(pod)
                else:
                    staying.append(pod)
    highest = max((pod.priority for pod in victims), default=0)
    starts = [pod.started or 0.0 for pod in victims if pod.priority == highest]
    cost = (
        len(violates & {pod.name for pod in victims}),
        highest,
        sum(pod.priority + OFFSET for pod in victims),
        len(victims),
        -min(starts, default=0.0),
    )
    return Choice(node.name, {pod.name for pod in victims}, cost)


@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[Node], list[Task], list[Budget], Task]:
    """Full nodes, their pods, budgets and a preemptor."""
    nodes = [make_node(f"n{at}", draw(st.integers(2, 5))) for at in range(draw(st.integers(1, 5)))]
    pods: list[Task] = []
    for node in nodes:
        for _ in range(draw(st.integers(0, 6))):
            pod = make_task(
                f"p{len(pods)}",
                **draw(st.sampled_from(SHAPES)),
                profile="other",
                node=node.name,
                priority=draw(st.integers(-1, 3)),
                started=float(draw(st.integers(0, 5))),
                labels=(("app", draw(st.sampled_from("abc"))),),
            )
            here = [other for other in pods if other.node == node.name]
            if not refusal(pod, node, here):
                pods.append(pod)
    budgets = [
        Budget("default", f"b{at}", (Requirement("app", "In", tuple(apps)),), draw(st.integers(0, 2)))
        for at, apps in enumerate(draw(st.lists(st.sampled_from(["a", "b", "ab"]), max_size=2)))
    ]
    preemptor = make_task("new", **draw(st.sampled_from(SHAPES)), priority=draw(st.integers(0, 4)))
    return nodes, pods, budgets, preemptor


@given(clusters())
def test_the_victims_are_those_that_kube_scheduler_would_choose(
    drawn: tuple[list[Node], list[Task], list[Budget], Task],
) -> None:
    nodes, pods, budgets, preemptor = drawn
    world = World(make_engine(LeastAllocated(), relieve=Preemption()), *nodes)
    world.step(*map(BudgetSeen, budgets))
    world.add(*pods)
    world.add(preemptor)
    by_node = {name: list(some) for name, some in groupby(pods, key=lambda pod: pod.node)}
    if any(not refusal(preemptor, node, by_node.get(node.name, [])) for node in nodes):
        assert not world.victims()
        return
    found = [on_node(preemptor, node, by_node.get(node.name, []), budgets) for node in nodes]
    choices = {choice.node: choice for choice in found if choice is not None}
    if not choices:
        assert not world.victims()
        return
    chosen = choices[world.nominations[0].node]
    assert chosen.cost == min(choice.cost for choice in choices.values())
    assert set(world.victims()) == chosen.victims
    assert world.node_of("new") == chosen.node
