"""`--only rules`: every rule is measured, its pods are bound and its change happens; growth is judged."""

from __future__ import annotations

import pytest

from eclectus.model.events import NodeSeen, TaskGone, TaskSeen
from eclectus_bench.rules import measure
from eclectus_bench.rules.measure import RuleCost
from eclectus_bench.rules.rule import Rule
from eclectus_bench.rules.table import RULES

NODES, COURSE = 40, measure.Course(node_counts=(), pods=2, warm=2)


@pytest.mark.parametrize("rule", RULES, ids=lambda each: each.name)
def test_every_rule_is_measured(rule: Rule) -> None:
    found = measure.cost(rule, NODES, COURSE)
    assert (found.rule, found.nodes) == (rule.name, NODES)
    assert found.decision > 0
    assert found.change > 0 or not rule.change(1)
    assert found.with_pod > 0 or not rule.with_pod(1)


def test_names_are_unique() -> None:
    assert len({rule.name for rule in RULES}) == len(RULES)


@pytest.mark.parametrize("rule", [each for each in RULES if each.change(0)], ids=lambda each: each.name)
def test_each_pod_is_followed_by_a_change_of_something_that_is_there(rule: Rule) -> None:
    there = {each.task.uid for each in rule.there(NODES) if isinstance(each, TaskSeen)}
    for number in range(COURSE.warm + COURSE.pods):
        for event in rule.change(number):
            if isinstance(event, TaskGone):
                assert event.uid in there | {rule.pod(at).uid for at in range(number + 1)}
            elif isinstance(event, NodeSeen):
                nodes = {node.name: node for node in map(rule.node, range(NODES))}
                assert nodes[event.node.name] != event.node


def costs(name: str, fewest: float, most: float) -> list[RuleCost]:
    return [RuleCost(name, nodes, each, 0.0, 7.0) for nodes, each in ((500, fewest), (15_000, most))]


def test_a_rule_that_need_not_grow_is_flat_or_missed() -> None:
    flat = measure.line(costs("taints", 100.0, 130.0))
    assert " ".join(flat.split()) == "taints 10,000 7,692 1.30 7 .. 7 <= 1.3 met"
    assert measure.line(costs("taints", 100.0, 131.0)).endswith("<= 1.3 MISSED")


def test_a_rule_that_must_grow_says_why() -> None:
    rule = next(each for each in RULES if each.grows)
    assert measure.line(costs(rule.name, 100.0, 200.0)).endswith(f"grows: {rule.grows}")
    assert measure.line(costs(rule.name, 100.0, 120.0)).endswith("<= 1.3 met")


def test_the_file_has_every_number_of_nodes_with_the_growth() -> None:
    content = measure.content([costs("taints", 100.0, 150.0)])
    assert [(each["nodes"], each["flat"]) for each in content] == [(500, 1.5), (15_000, 1.5)]
