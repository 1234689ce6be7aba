"""Preferences about other pods, kept up to date by domains, against going through all pods for each node."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from msgspec.structs import replace

import dumb_scores
import pod_rules
from builders import make_node, make_task
from eclectus.cluster.changelog import AnyRows, Rows
from eclectus.cluster.nodes import Cluster
from eclectus.feasibility import scores_by_pods
from eclectus.feasibility.scores_by_pods import NodeGroups
from eclectus.feasibility.task_class import Parts, TaskClass
from eclectus.framework.view import Ranking
from eclectus.maths.numbers import Floats
from eclectus.model.objects import (
    Node,
    PodAffinityTerm,
    Requirement,
    Spec,
    SpreadConstraint,
    Taint,
    Task,
    Toleration,
    WeightedTerm,
)
from pod_rules import Placed
from small_clusters import cluster_of, node

KEYS = st.sampled_from(["zone", "zone", "zone", "host", "rack"])
WEB = (Requirement("app", "In", ("web",)),)
SELECTORS = st.sampled_from([WEB, WEB, (), (Requirement("app", "NotIn", ("web",)),)])
TERMS = st.builds(PodAffinityTerm, KEYS, SELECTORS, st.sampled_from([None, ("shop",), ("bank",)]))
WEIGHTED = st.builds(WeightedTerm, st.sampled_from([-100, -3, -1, 1, 2, 50]), TERMS)
SPREAD = st.builds(
    SpreadConstraint,
    KEYS,
    st.just("shop"),
    st.sampled_from([WEB, WEB, (), None]),
    st.just(False),
    st.sampled_from([1, 1, 3]),
    st.just(1),
    st.booleans(),
    st.booleans(),
)
SPECS = st.builds(
    Spec,
    requests=st.just((("cpu", 1),)),
    node_selector=st.sampled_from([(), (), (("disk", "ssd"),)]),
    tolerations=st.sampled_from([(), (Toleration("t", "Exists"),)]),
    affinity_terms=st.lists(TERMS, max_size=1).map(tuple),
    preferred_terms=st.lists(WEIGHTED, max_size=3).map(tuple),
    preferred_spread=st.one_of(
        st.lists(SPREAD, max_size=2),
        st.lists(SPREAD.map(lambda each: replace(each, needs_all_keys=False)), max_size=2),
    ).map(tuple),
)
PODS = st.builds(
    Task,
    uid=st.just(""),
    namespace=st.sampled_from(["shop", "shop", "bank"]),
    name=st.just("p"),
    spec=SPECS,
    labels=st.sampled_from([(), (("app", "web"),), (("app", "web"),), (("app", "db"),)]),
)
NODES = st.builds(
    Node,
    st.sampled_from([f"n{at}" for at in range(7)]),
    st.just((("cpu", 9), ("memory", 9), ("pods", 9))),
    st.builds(
        lambda zone, others: tuple(sorted({**zone, **others}.items())),
        st.sampled_from([{}, {"zone": "a"}, {"zone": "b"}, {"zone": "c"}]),
        st.dictionaries(st.sampled_from(["host", "disk"]), st.sampled_from(["a", "ssd"])),
    ),
    st.sampled_from([(), (), (Taint("t"),), (Taint("s", effect="PreferNoSchedule"),)]),
)


def may_run_on(pod: Task, node: Node) -> bool:
    labels, hard = dict(node.labels), [each for each in node.taints if each.effect != "PreferNoSchedule"]
    return all(labels.get(key) == value for key, value in pod.spec.node_selector) and (
        not hard or bool(pod.spec.tolerations)
    )


def has_terms(pod: Task, cluster: Cluster) -> bool:
    """Whether a term is about it by a label that some node has."""
    terms = [each.term for each in pod.spec.preferred_terms]
    terms += cluster.preferences.matching(pod.namespace, pod.labels)
    return any(cluster.labels.carries(term.topology_key) for term in terms)


def cost(task_class: TaskClass, rows: Rows) -> Floats:
    return np.where(task_class.fits_now[rows], 1.0 - task_class.preference_score[rows], np.inf)


def cost_by_room(task_class: TaskClass, rows: Rows) -> Floats:
    return np.where(task_class.fits_now[rows], 0.0, np.inf)


def weigh(task_class: TaskClass, unweighed: Floats, rows: AnyRows) -> Floats:
    return unweighed + (1.0 - task_class.preference_score[rows])


def without_required(pod: Task) -> Task:
    """Where required affinity is about others' scores alone, the pod itself must not be refused for it."""
    return replace(pod, spec=replace(pod.spec, affinity_terms=()))


class FollowsOtherPods(RuleBasedStateMachine):
    """Nodes and pods come, change and go; classes of pods with preferences about others are compared."""

    @initialize(nodes=st.lists(NODES, min_size=3, max_size=6), first=PODS, placed=st.lists(PODS, max_size=6))
    def start(self, nodes: list[Node], first: Task, placed: list[Task]) -> None:
        self.cluster = Cluster(rows=2)  # small, so that arrays grow under the classes
        self.parts = Parts(self.cluster)
        self.placed: list[tuple[str, Task]] = []
        self.asked: dict[Any, tuple[Task, TaskClass, tuple[Ranking, Ranking]]] = {}
        self.serial = 0
        for each in nodes:
            self.cluster.set_node(each)
        for at, pod in enumerate(placed):
            self.a_pod_comes(at, pod, "bound")
        self.a_pod_asks(first)

    @property
    def nodes(self) -> list[Node]:
        found = [self.cluster.node(name) for name in self.cluster.rows]
        return [each for each in found if each is not None]

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
    @rule(pick=st.integers(0, 99), pod=PODS, kind=st.sampled_from(["bound", "bound", "dying", "nominated"]))
    def a_pod_comes(self, pick: int, pod: Task, kind: str) -> None:
        name = sorted(self.cluster.rows)[pick % len(self.cluster.rows)]
        self.serial += 1
        pod = replace(pod, uid=str(self.serial), deleting=kind == "dying")
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

    @rule(pod=PODS)
    def a_pod_asks(self, pod: Task) -> None:
        self.keep(without_required(pod))
        self.all_ask_again()

    @precondition(lambda self: self.asked)
    @rule()
    def all_ask_again(self) -> None:
        for pod, before, _ in list(self.asked.values()):
            matched = self.cluster.preferences.matching(pod.namespace, pod.labels)
            if before.spec.matched_preferences != matched:
                self.keep(pod)
        for pod, kept, rankings in self.asked.values():
            kept.refresh()
            self.compare(pod, kept, rankings)

    def keep(self, pod: Task) -> None:
        made = self.class_of(pod, self.parts)
        rankings = Ranking(made, cost), Ranking(made, cost_by_room)
        rankings[1].weigh = weigh
        self.asked[pod.namespace, pod.labels, pod.spec] = pod, made, rankings

    def class_of(self, pod: Task, parts: Parts | None) -> TaskClass:
        matched = self.cluster.preferences.matching(pod.namespace, pod.labels)
        return TaskClass(self.cluster, replace(pod.spec, matched_preferences=matched), "w", parts)

    def compare(self, pod: Task, kept: TaskClass, rankings: tuple[Ranking, Ranking]) -> None:
        with patch.object(scores_by_pods, "FEW_GROUPS", 0):  # of arrays, where `kept` is of plain numbers
            fresh = self.class_of(pod, None)
        np.testing.assert_array_equal(kept.preference_score, fresh.preference_score)
        again = Ranking(fresh, cost)
        again.refresh(0)
        for ranking in rankings:
            ranking.refresh(0)
            assert ranking.best() == again.best()
        groups, placed = kept.node_groups, self.placed_pods()
        for each in self.nodes if groups is not None else ():
            row = self.cluster.rows[each.name]
            assert groups.attraction()[groups.of_row[row]] == dumb_scores.attraction(pod, each, placed)
            assert groups.has_keys()[groups.of_row[row]] == dumb_scores.has_keys(pod, each)
            if may_run_on(pod, each):
                own = 1.0 / (1 + sum(taint.key == "s" for taint in each.taints))
                expected = self.expected_score(pod, each, placed, own)
                assert kept.preference_score[row] == pytest.approx(expected)
        if groups is not None:
            np.testing.assert_array_equal(groups.sizes, np.bincount(groups.of_row, minlength=len(groups)))
            self.compare_spread(pod, groups, placed)

    def compare_spread(self, pod: Task, groups: NodeGroups, placed: Placed) -> None:
        constraints = tuple(groups.constraints([1.0] * len(pod.spec.preferred_spread)))
        for each in (each for each in self.nodes if dumb_scores.has_keys(pod, each)):
            group = groups.of_row[self.cluster.rows[each.name]]
            assert [int(counted[group]) for counted, _, _ in constraints] == [
                dumb_scores.domain_count(pod, constraint, each, self.nodes, placed)
                for constraint in pod.spec.preferred_spread
            ]

    def expected_score(self, pod: Task, node: Node, placed: Placed, own: float) -> float:
        """`own`: of the node itself, with weight 3."""
        may_run = [each for each in self.nodes if may_run_on(pod, each)]
        total, weight = 3 * own, 3
        sums = {each.name: dumb_scores.attraction(pod, each, placed) for each in may_run}
        least, most = min(sums.values()), max(sums.values())
        if has_terms(pod, self.cluster):
            share = int(100.0 * ((sums[node.name] - least) / float(most - least))) if most > least else 100
            total, weight = total + 2 * share / 100, weight + 2
        if pod.spec.preferred_spread:
            share = self.expected_spread(pod, node, placed, may_run)
            total, weight = total + 2 * share / 100, weight + 2
        return total / weight

    def expected_spread(self, pod: Task, node: Node, placed: Placed, may_run: list[Node]) -> int:
        scored = [each for each in may_run if dumb_scores.has_keys(pod, each)]
        if node not in scored:
            return 0
        sizes = []
        for constraint in pod.spec.preferred_spread:
            there = [each for each in self.nodes if dumb_scores.has_keys(pod, each)]
            there = [each for each in there if pod_rules.is_included(pod.spec, constraint, each)]
            values = {dict(each.labels).get(constraint.topology_key) for each in there}
            sizes.append(len(values - {None}))
        raw = {each.name: dumb_scores.crowding(pod, each, sizes, self.nodes, placed) for each in scored}
        least, most = min(raw.values()), max(raw.values())
        return 100 * (most + least - raw[node.name]) // most if most else 100

    def placed_pods(self) -> Placed:
        return [(each, task) for each in self.nodes for name, task in self.placed if name == each.name]

    def teardown(self) -> None:
        if hasattr(self, "asked"):
            self.all_ask_again()


@settings(max_examples=80, deadline=None)
@given(st.lists(NODES, min_size=3, max_size=6), PODS, st.lists(PODS, max_size=8))
def test_the_sums_are_those_of_going_through_all_pods(
    nodes: list[Node], asks: Task, placed: list[Task]
) -> None:
    world = FollowsOtherPods()
    world.start(nodes=nodes, first=asks, placed=placed)  # compares


TestFollowsOtherPods = FollowsOtherPods.TestCase
TestFollowsOtherPods.settings = settings(max_examples=40, stateful_step_count=20, deadline=None)


class GroupsByCounts(FollowsOtherPods):
    """The same where nodes are grouped by counts instead of domains, and are grouped again often."""

    def __init__(self) -> None:
        super().__init__()
        self.patched = pytest.MonkeyPatch()
        self.patched.setattr(scores_by_pods, "MAX_APART", 1)
        self.patched.setattr(scores_by_pods, "SPARE", 1)

    def teardown(self) -> None:
        try:
            super().teardown()
        finally:
            self.patched.undo()


TestGroupsByCounts = GroupsByCounts.TestCase
TestGroupsByCounts.settings = settings(max_examples=40, stateful_step_count=20, deadline=None)


# -- worked examples -------------------------------------------------------------------------------


def on(cluster: Cluster, name: str, **fields: Any) -> Task:
    """A pod comes to a node."""
    task = Task(f"uid-{name}-{len(cluster.pods.changes.entries_since(0) or ())}", "shop", "p", **fields)
    task = replace(task, node=name)
    cluster.hold(cluster.rows[name], task)
    return task


def scores(cluster: Cluster, spec: Spec) -> list[float]:
    return TaskClass(cluster, spec, "").preference_score[: len(cluster)].tolist()


APP_WEB = (("app", "web"),)
APART = WeightedTerm(-10, PodAffinityTerm("host", WEB, ("shop",)))
NEAR = WeightedTerm(10, PodAffinityTerm("zone", WEB, ("shop",)))


def test_a_node_with_the_fewest_pods_to_avoid_scores_best() -> None:
    cluster = cluster_of(*(node(name, host=name) for name in "abc"))
    for name in "aab":
        on(cluster, name, labels=APP_WEB)
    assert scores(cluster, Spec(preferred_terms=(APART,))) == [3 / 5, (3 + 2 * 0.5) / 5, 1.0]


def test_all_nodes_of_a_zone_are_near_its_pods() -> None:
    cluster = cluster_of(node("a", zone="1"), node("b", zone="1"), node("c", zone="2"), node("d"))
    on(cluster, "a", labels=APP_WEB)
    assert scores(cluster, Spec(preferred_terms=(NEAR,))) == [1.0, 1.0, 3 / 5, 3 / 5]


def test_where_pods_do_not_distinguish_nodes_all_have_the_score_of_the_node_itself() -> None:
    soft = Taint("k", effect="PreferNoSchedule")
    cluster = cluster_of(node("a", zone="1"), node("b", (soft,), zone="2"))
    assert scores(cluster, Spec(preferred_terms=(NEAR,))) == [1.0, (3 / 2 + 2) / 5]


def test_nodes_that_may_not_run_the_pod_do_not_count_for_the_others() -> None:
    cluster = cluster_of(*(node(name, host=name, pool=pool) for name, pool in ("ax", "bx", "cy")))
    for name in "aab":
        on(cluster, name, labels=APP_WEB)
    spec = Spec(preferred_terms=(APART,), node_selector=(("pool", "x"),))
    assert scores(cluster, spec)[:2] == [3 / 5, 1.0]


def test_soft_spread_prefers_the_zone_with_the_fewest_pods() -> None:
    cluster = cluster_of(node("a", zone="1"), node("b", zone="2"), node("c", zone="3"), node("d"))
    for name in "aab":
        on(cluster, name, labels=APP_WEB)
    spread = SpreadConstraint("zone", "shop", WEB, counts_itself=True)
    # ln(5) = 1.609: 3, 2 and 0, of which the score is 0, 33 and 100; a node without a zone has 0.
    expected = [3 / 5, (3 + 2 * 0.33) / 5, 1.0, 3 / 5]
    assert scores(cluster, Spec(preferred_spread=(spread,))) == pytest.approx(expected)


def test_a_default_constraint_says_nothing_of_nodes_without_its_label() -> None:
    cluster = cluster_of(node("a", host="a", zone="1"), node("b", host="b", zone="2"), node("c", host="c"))
    for name in "ab":
        on(cluster, name, labels=APP_WEB)
    of_system = {"counts_itself": True, "is_default": True, "needs_all_keys": False}
    by_host = SpreadConstraint("host", "shop", WEB, max_skew=3, **of_system)
    by_zone = SpreadConstraint("zone", "shop", WEB, max_skew=5, **of_system)
    # Nodes with a zone: ln(5) + 2 + ln(4) + 4 = 8.996, rounded 9. Without one: 2.
    expected = [(3 + 2 * 0.22) / 5, (3 + 2 * 0.22) / 5, 1.0]
    assert scores(cluster, Spec(preferred_spread=(by_host, by_zone))) == pytest.approx(expected)


def test_a_pod_on_a_node_attracts_those_that_its_terms_match() -> None:
    cluster = cluster_of(node("a", zone="1"), node("b", zone="2"), node("c", zone="3"))
    required = PodAffinityTerm("zone", WEB, ("shop",))
    on(cluster, "a", spec=Spec(affinity_terms=(required,)))
    on(cluster, "b", spec=Spec(preferred_terms=(WeightedTerm(-1, required),)))
    matched = cluster.preferences.matching("shop", APP_WEB)
    assert matched == (required,)
    assert scores(cluster, Spec(matched_preferences=matched)) == [1.0, 3 / 5, (3 + 2 * 0.5) / 5]
    assert cluster.preferences.matching("bank", APP_WEB) == ()


def test_nodes_that_preferences_cannot_tell_apart_are_one_group() -> None:
    many = 3 * scores_by_pods.MAX_APART
    cluster = cluster_of(*(node(f"n{at}", host=f"n{at}", zone=str(at % 2)) for at in range(many)))
    spread = tuple(SpreadConstraint(key, "shop", WEB, counts_itself=True) for key in ("host", "zone"))
    task_class = TaskClass(cluster, Spec(preferred_spread=spread), "")
    groups = task_class.node_groups
    assert groups is not None
    assert sorted(groups.sizes[groups.may_run].tolist()) == [many // 2] * 2  # the zones
    for name in ("n2", "n4"):
        on(cluster, name, labels=APP_WEB)
    task_class.refresh()
    assert sorted(groups.sizes[groups.may_run].tolist()) == [2, many // 2 - 2, many // 2]


def test_what_is_made_of_scores_is_made_once_for_nodes_that_pods_elsewhere_do_not_distinguish() -> None:
    cluster = Cluster()
    for at in range(300):
        cluster.set_node(make_node(f"n{at}", labels={"zone": f"z{at % 3}", "host": f"n{at}"}))
    web = (Requirement("app", "In", ("web",)),)
    spread = tuple(SpreadConstraint(key, "default", web, counts_itself=True) for key in ("zone", "host"))
    task_class = TaskClass(cluster, replace(Spec(), preferred_spread=spread), "")
    asked = list[int]()

    def of_score(scores: np.ndarray) -> np.ndarray:
        asked.append(len(scores))
        return 1.0 + 2.0 * (1.0 - scores)

    for at in range(20):
        cluster.hold(7 * at, make_task(f"t{at}", labels=(("app", "web"),)))
        task_class.refresh()
        made = task_class.by_preference(of_score, slice(300))
        np.testing.assert_array_equal(made, 1.0 + 2.0 * (1.0 - task_class.preference_score[:300]))
    assert max(asked) < 30, "groups, not nodes"


def test_scores_of_all_nodes_are_written_when_they_are_read() -> None:
    cluster = cluster_of(*(node(f"n{at}", zone=str(at % 2)) for at in range(4)))
    spread = SpreadConstraint("zone", "shop", WEB, counts_itself=True)
    task_class = TaskClass(cluster, Spec(preferred_spread=(spread,)), "")
    written = task_class.preference_score
    on(cluster, "n0", labels=APP_WEB)
    task_class.refresh()
    assert task_class.scalars.preference_score[0] == 3 / 5
    assert written[:4].tolist() == [1.0] * 4, "every pod of the class would pay for all nodes"
    assert task_class.preference_score[:4].tolist() == [3 / 5, 1.0, 3 / 5, 1.0]
