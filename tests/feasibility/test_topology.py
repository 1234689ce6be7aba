"""The rules about other pods, kept up to date by domains, against going through all pods for each node."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from msgspec.structs import replace

import dumb_rules
import pod_rules
from eclectus.cluster.nodes import Cluster
from eclectus.feasibility.fit_error import RoomWithout, fit_error, reasons_without
from eclectus.feasibility.task_class import Parts, TaskClass
from eclectus.model.objects import (
    Node,
    PodAffinityTerm,
    Requirement,
    Spec,
    SpreadConstraint,
    Taint,
    Task,
    Term,
    Toleration,
)

KEYS = st.sampled_from(["zone", "zone", "zone", "host", "rack"])
APPS = st.sampled_from(["web", "web", "db"])
LABELS = st.one_of(
    st.just((("app", "web"),)),
    st.dictionaries(st.sampled_from(["app", "tier"]), APPS, max_size=2).map(
        lambda labels: tuple(sorted(labels.items()))
    ),
)
NAMESPACES = st.sampled_from(["shop", "shop", "bank"])
REQUIREMENTS = st.builds(
    Requirement,
    st.sampled_from(["app", "app", "tier"]),
    st.sampled_from(["In", "In", "NotIn", "Exists", "DoesNotExist"]),
    st.lists(APPS, min_size=1, max_size=2, unique=True).map(tuple),
)
WEB = (Requirement("app", "In", ("web",)),)
SELECTORS = st.one_of(st.just(WEB), st.lists(REQUIREMENTS, max_size=2).map(tuple))
TERMS = st.builds(
    PodAffinityTerm, KEYS, SELECTORS, st.sampled_from([None, ("shop",), ("bank", "shop"), ("bank",)])
)
NOT_IN_B = (Term((Requirement("zone", "NotIn", ("b",)),)),)
TERM_LISTS = st.lists(TERMS, max_size=2, unique=True).map(tuple)


@st.composite
def spread(draw: st.DrawFn, namespace: str, labels: tuple[tuple[str, str], ...]) -> SpreadConstraint:
    selector = draw(st.one_of(st.none(), SELECTORS, SELECTORS))
    return SpreadConstraint(
        draw(KEYS),
        namespace,
        selector,
        selector is not None and pod_rules.selected(selector, dict(labels)),
        draw(st.sampled_from([1, 1, 2])),
        draw(st.sampled_from([1, 1, 2, 3])),
        draw(st.booleans()),
        draw(st.booleans()),
    )


@st.composite
def pods(draw: st.DrawFn) -> Task:
    namespace, labels = draw(NAMESPACES), draw(LABELS)
    constraints = tuple(draw(st.lists(spread(namespace, labels), max_size=2)))
    affinity = draw(st.one_of(st.just(()), st.just(()), TERM_LISTS))
    own = draw(st.one_of(st.just(()), st.just(()), TERM_LISTS))
    task = Task("", namespace, "p", labels=labels, anti_affinity_terms=own)
    keys = [*(each.topology_key for each in constraints), *(each.topology_key for each in affinity)]
    spec = Spec(
        requests=(("cpu", 1),),
        node_selector=draw(st.sampled_from([(), (), (("disk", "ssd"),)])),
        affinity=draw(st.sampled_from([None, None, NOT_IN_B, ()])),
        tolerations=draw(st.sampled_from([(), (Toleration("t", "Exists"),)])),
        topology_keys=tuple(dict.fromkeys(keys)),
        spread=constraints,
        affinity_terms=affinity,
        matches_itself=all(pod_rules.matches(term, task) for term in affinity),
        own_anti_affinity=task.anti_affinity_terms,
    )
    return replace(task, spec=spec)


NODES = st.builds(
    Node,
    st.sampled_from([f"n{at}" for at in range(7)]),
    st.just((("cpu", 9), ("pods", 9))),
    st.builds(
        lambda zone, others: tuple(sorted({**zone, **others}.items())),
        st.sampled_from([{}, {"zone": "a"}, {"zone": "b"}, {"zone": "c"}, {"zone": "a"}, {"zone": "b"}]),
        st.dictionaries(st.sampled_from(["host", "disk"]), st.sampled_from(["a", "ssd"])),
    ),
    st.sampled_from([(), (), (Taint("t"),)]),
)


class FollowsOtherPods(RuleBasedStateMachine):
    """Nodes and pods come, change and go; classes of pods with rules about others are compared."""

    @initialize(
        nodes=st.lists(NODES, min_size=3, max_size=6), first=pods(), placed=st.lists(pods(), max_size=6)
    )
    def start(self, nodes: list[Node], first: Task, placed: list[Task]) -> None:
        self.cluster = Cluster(rows=2)  # small, so that arrays grow under the classes
        self.parts = Parts(self.cluster)
        self.placed: list[tuple[str, Task]] = []
        self.asked: dict[tuple[Any, ...], tuple[Task, TaskClass]] = {}
        self.serial = 0
        for node in nodes:
            self.cluster.set_node(node)
        for at, pod in enumerate(placed):
            self.a_pod_comes(at, pod, "bound")
        self.a_pod_asks(first)

    @property
    def nodes(self) -> list[Node]:
        found = [self.cluster.node(name) for name in self.cluster.rows]
        return [node for node in found if node is not None]

    @rule(node=NODES)
    def a_node_comes_or_changes(self, node: Node) -> None:
        self.cluster.set_node(node)

    @precondition(lambda self: self.cluster.rows)
    @rule(data=st.data())
    def a_node_goes(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.cluster.rows)))
        for where, pod in [pair for pair in self.placed if pair[0] == name]:
            self.remove(where, pod)
        self.cluster.drop_node(name)

    @precondition(lambda self: self.cluster.rows)
    @rule(
        pick=st.integers(0, 99),
        pod=pods(),
        kind=st.sampled_from(["bound", "bound", "bound", "terminating", "nominated"]),
    )
    def a_pod_comes(self, pick: int, pod: Task, kind: str) -> None:
        name = sorted(self.cluster.rows)[pick % len(self.cluster.rows)]
        self.serial += 1
        pod = replace(pod, uid=str(self.serial), deleting=kind == "terminating")
        pod = pod if kind == "nominated" else replace(pod, node=name)
        self.cluster.hold(self.cluster.rows[name], pod, is_nominated=not pod.node)
        self.placed.append((name, pod))

    @precondition(lambda self: self.placed)
    @rule(data=st.data())
    def a_pod_goes(self, data: st.DataObject) -> None:
        self.remove(*data.draw(st.sampled_from(self.placed)))

    def remove(self, name: str, pod: Task) -> None:
        self.cluster.release(self.cluster.rows[name], pod, is_nominated=not pod.node)
        self.placed.remove((name, pod))

    @rule(keep=st.integers(0, 2))
    def change_logs_are_truncated(self, keep: int) -> None:
        for log in (self.cluster.shape, self.cluster.usage, self.cluster.pods.changes):
            log.truncate(keep)

    @rule(pod=pods())
    def a_pod_asks(self, pod: Task) -> None:
        self.asked[pod.namespace, pod.labels, pod.spec] = (pod, self.class_of(pod, self.parts))
        self.compare(*self.asked[pod.namespace, pod.labels, pod.spec])

    @precondition(lambda self: self.asked)
    @rule()
    def all_ask_again(self) -> None:
        for key, (pod, before) in list(self.asked.items()):
            kept = before
            if kept.spec.matched_terms != self.cluster.anti_affinity.matching(pod.namespace, pod.labels):
                kept = self.class_of(pod, self.parts)
                self.asked[key] = pod, kept
            kept.refresh()
            self.compare(pod, kept)

    def class_of(self, pod: Task, parts: Parts | None) -> TaskClass:
        matched = self.cluster.anti_affinity.matching(pod.namespace, pod.labels)
        return TaskClass(self.cluster, replace(pod.spec, matched_terms=matched), "w", parts)

    def compare(self, pod: Task, kept: TaskClass) -> None:
        fresh = self.class_of(pod, None)
        np.testing.assert_array_equal(kept.fits_now, fresh.fits_now)
        assert kept.fits_now_count == kept.fits_now.sum()
        placed = [(node, task) for node in self.nodes for name, task in self.placed if name == node.name]
        expected: Counter[str] = Counter()
        for node in self.nodes:
            row = self.cluster.rows[node.name]
            why = pod_rules.refusal(pod.spec, pod, node, self.nodes, placed)
            if (fresh.feasible[row] and not fresh.overflow[row] > 0) or why in (
                pod_rules.MISSING,
                pod_rules.AFFINITY,
            ):
                assert bool(kept.fits_now[row]) == (not why), (node, why)
            assert kept.fits_beside_held(row) == kept.fits_now[row]
            if self.passes_other_rules(pod.spec, node) and why:
                expected[why] += 1
            here = [each for each in placed if each[0].name == node.name]
            self.compare_without(pod, kept, node, placed, here[::2])
        message = fit_error(kept, self.cluster).message
        for reason, count in expected.items():
            assert f" {count} {reason}" in message, (message, expected)

    def compare_without(
        self, pod: Task, kept: TaskClass, node: Node, placed: list[Any], removed: list[Any]
    ) -> None:
        row = self.cluster.rows[node.name]
        room = RoomWithout(kept, row)
        for _, other in removed:
            room.remove(other)
        left = [each for each in placed if each not in removed]
        why = pod_rules.refusal(pod.spec, pod, node, self.nodes, left)
        if kept.feasible[row]:
            assert room.fits == (not why and 9 - len([each for each in left if each[0] == node]) >= 1)
        if dumb_rules.affinity_true(pod.spec, node) and dumb_rules.taints_true(pod.spec, node):
            here = [other for at, other in left if at == node]
            lacks = {
                "Too many pods": len(here) >= 9,
                "Insufficient cpu": sum(dict(each.spec.requests).get("cpu", 0) for each in (*here, pod)) > 9,
            }
            first = tuple(reason for reason, is_lacking in lacks.items() if is_lacking)
            assert reasons_without(room) == (first or ((why,) if why else ()))

    def passes_other_rules(self, spec: Spec, node: Node) -> bool:
        row = self.cluster.rows[node.name]
        return (
            dumb_rules.affinity_true(spec, node)
            and dumb_rules.taints_true(spec, node)
            and self.cluster.used[row, self.cluster.columns["pods"]] < 9
        )

    def teardown(self) -> None:
        if hasattr(self, "asked"):
            self.all_ask_again()


@settings(max_examples=250, deadline=None)
@given(st.lists(NODES, min_size=3, max_size=6), pods(), st.lists(pods(), max_size=8))
def test_the_rules_say_what_going_through_all_pods_says(
    nodes: list[Node], asks: Task, placed: list[Task]
) -> None:
    world = FollowsOtherPods()
    world.start(nodes=nodes, first=asks, placed=placed)  # compares


TestFollowsOtherPods = FollowsOtherPods.TestCase
TestFollowsOtherPods.settings = settings(max_examples=100, stateful_step_count=20, deadline=None)
