"""namespaceSelectors of pod affinity and anti-affinity, of pods that wait and of pods on nodes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from builders import make_engine, make_node, make_task
from eclectus.engine.engine import Engine
from eclectus.engine.pod_specs import namespaces
from eclectus.engine.pod_specs.late_pods import PODS_MOST
from eclectus.engine.pod_specs.namespaces import NamespaceSelectors
from eclectus.model.commands import Bind
from eclectus.model.events import (
    BindConfirmed,
    Event,
    NamespaceGone,
    NamespaceSeen,
    NodeSeen,
    Paused,
    Resumed,
    TaskGone,
    TaskSeen,
)
from eclectus.model.objects import PodAffinityTerm, Requirement, Task, WeightedTerm, selects
from eclectus.policies.place.allocation import LeastAllocated
from operation_counts import operations

TEAM_X = (Requirement("team", "In", ("x",)),)
WEB = (Requirement("app", "In", ("web",)),)
OF_TEAM = PodAffinityTerm("host", WEB, (), TEAM_X)
LABELS = (("app", "web"),)
NODES = [NodeSeen(make_node(name, cpu=99, labels={"host": name})) for name in ("n1", "n2")]
X = (("team", "x"),)


def pod(name: str, namespace: str = "default", **fields: Any) -> Task:
    return replace(make_task(name, labels=LABELS, **fields), namespace=namespace)


def near(name: str, namespace: str = "default", **fields: Any) -> Task:
    return pod(name, namespace, affinity_terms=(OF_TEAM,), topology_keys=("host",), **fields)


def apart(name: str, namespace: str = "default", **fields: Any) -> Task:
    return pod(name, namespace, own_anti_affinity=(OF_TEAM,), anti_affinity_terms=(OF_TEAM,), **fields)


def on(task: Task, node: str) -> TaskSeen:
    return TaskSeen(replace(task, node=node, profile="another", phase="Running"))


class Cluster:
    """An engine with two nodes; binds are confirmed at once."""

    def __init__(self, *events: Event) -> None:
        self.engine: Engine = make_engine(LeastAllocated())
        self._now = 0.0
        self.nodes: dict[str, str] = {}
        self.step(*NODES, *events, Resumed())

    def step(self, *events: Event) -> None:
        """Hand events over, and confirm what is bound until nothing more is."""
        given: list[Event] = list(events)
        while True:
            self._now += 0.01
            binds = [each for each in self.engine.step(given, self._now) if isinstance(each, Bind)]
            if not binds:
                return
            self.nodes |= {each.name: each.node for each in binds}
            given = [BindConfirmed(each.uid, each.node) for each in binds]


@pytest.mark.parametrize("is_late", [False, True])
def test_affinity_counts_pods_of_the_selected_namespaces(is_late: bool) -> None:
    labelled = NamespaceSeen("shop", X)
    cluster = Cluster(on(pod("there", "shop"), "n2"), *([] if is_late else [labelled]))
    cluster.step(TaskSeen(near("a")))
    assert cluster.nodes == ({} if is_late else {"a": "n2"})
    cluster.step(labelled)
    assert cluster.nodes == {"a": "n2"}


def test_a_namespace_that_is_listed_counts_beside_those_selected() -> None:
    listed = replace(OF_TEAM, namespaces=("bank",))
    cluster = Cluster(on(pod("there", "bank"), "n2"))
    cluster.step(TaskSeen(pod("a", affinity_terms=(listed,), topology_keys=("host",))))
    assert cluster.nodes == {"a": "n2"}


@pytest.mark.parametrize("own", [X, ()])
def test_the_first_pod_may_begin_if_its_terms_select_its_own_namespace(own: Any) -> None:
    cluster = Cluster(NamespaceSeen("default", own), NamespaceSeen("shop", X))
    cluster.step(TaskSeen(near("a")))
    assert bool(cluster.nodes) == bool(own)


def test_anti_affinity_of_a_pod_that_waits_follows_labels() -> None:
    there = [on(pod(f"there-{node}", "shop"), node) for node in ("n1", "n2")]
    cluster = Cluster(NamespaceSeen("shop", X), *there, TaskSeen(apart("a")))
    assert not cluster.nodes
    cluster.step(NamespaceSeen("shop", ()))
    assert cluster.nodes.keys() == {"a"}


def test_anti_affinity_of_pods_on_nodes_follows_labels() -> None:
    there = [on(apart(f"there-{node}", "shop"), node) for node in ("n1", "n2")]
    cluster = Cluster(NamespaceSeen("default", X), *there, TaskSeen(pod("a")))
    assert not cluster.nodes
    cluster.step(NamespaceSeen("default", ()))
    assert cluster.nodes.keys() == {"a"}
    cluster.step(NamespaceSeen("default", X), TaskSeen(pod("b")))
    assert cluster.nodes.keys() == {"a"}
    cluster.step(TaskGone(there[0].task.uid))
    assert cluster.nodes["b"] == "n1"


def test_preferences_count_pods_of_the_selected_namespaces() -> None:
    """To be away from `there` outweighs that the other node is emptier."""
    there = [on(pod("there", "shop"), "n1"), on(pod("large", "bank", cpu=9), "n2")]
    cluster = Cluster(NamespaceSeen("shop", X), *there)
    cluster.step(TaskSeen(pod("a", preferred_terms=(WeightedTerm(-100, OF_TEAM),))))
    cluster.step(
        NamespaceSeen("shop", ()), TaskSeen(pod("b", preferred_terms=(WeightedTerm(-100, OF_TEAM),)))
    )
    assert cluster.nodes == {"a": "n2", "b": "n1"}


def test_a_namespace_that_is_deleted_selects_nothing() -> None:
    cluster = Cluster(NamespaceSeen("shop", X), on(pod("there", "shop"), "n2"))
    cluster.step(NamespaceGone("shop"), TaskSeen(near("a")))
    assert not cluster.nodes


def test_pods_that_are_gone_are_forgotten() -> None:
    selectors = NamespaceSelectors()
    selectors.resolved(near("a"))
    assert len(selectors.pods) == 1
    selectors.discard("uid-a")
    selectors.relabel("shop", X)
    assert (len(selectors.pods), list(selectors.take_changed())) == (0, [])
    assert selectors.resolved(pod("b")) == pod("b")


# -- very many pods --------------------------------------------------------------------------------

TEAM_Y = (Requirement("team", "In", ("y",)),)
OF_TEAM_Y = PodAffinityTerm("host", WEB, (), TEAM_Y)
Y = (("team", "y"),)


def crowded(pods: int, *events: Event) -> Cluster:
    """So many pods on n1 that keep pods of team x away, one on n2, and on both one that keeps team y away."""
    of_y = {"own_anti_affinity": (OF_TEAM_Y,), "anti_affinity_terms": (OF_TEAM_Y,)}
    of_team_x = [on(apart(f"x{at}", "shop", cpu=0), "n1") for at in range(pods)]
    others = [on(apart("x-2", "shop"), "n2"), *(on(pod(f"y-{n}", "shop", **of_y), n) for n in ("n1", "n2"))]
    return Cluster(*events, *of_team_x, *others)


def test_very_many_pods_are_seen_again_in_several_steps_and_nothing_is_decided_between() -> None:
    """Before the change team x keeps pods of `default` away, after it team y does: they may never run."""
    pods = 5_000
    cluster = crowded(pods, NamespaceSeen("default", X))
    engine, steps, commands = cluster.engine, 0, list[Any]()
    commands += engine.step([NamespaceSeen("default", Y), TaskSeen(pod("kept-away")), TaskSeen(free())], 9.0)
    while engine.next_step_at() == 9.0 and engine._event_handlers.must_wait:
        assert not commands
        commands += engine.step([], 9.0)
        steps += 1
    assert steps == pods // PODS_MOST
    assert [each.name for each in commands if isinstance(each, Bind)] == ["free"]
    commands = engine.step([NamespaceSeen("default", ())], 9.1)
    assert [each.name for each in commands if isinstance(each, Bind)] == ["kept-away"]


def free() -> Task:
    """A pod of a namespace that no team has."""
    return pod("free", "bank")


def test_labels_that_change_in_every_step_do_not_keep_pods_from_being_placed() -> None:
    cluster = crowded(PODS_MOST + 1)
    engine, bound = cluster.engine, list[str]()
    engine.step([NamespaceSeen("default", X), TaskSeen(free())], 9.0)
    for at in range(4):
        labels = NamespaceSeen("default", () if at % 2 else Y)
        bound += [each.name for each in engine.step([labels], 9.0) if isinstance(each, Bind)]
    assert bound == ["free"]


def test_a_standby_sees_them_again_too_and_then_rests() -> None:
    cluster = crowded(PODS_MOST + 1)
    cluster.engine.step([Paused(), NamespaceSeen("default", X)], 9.0)
    assert cluster.engine.next_step_at() == 9.0
    cluster.engine.step([], 9.0)
    assert cluster.engine.next_step_at() is None


NAMES = st.sampled_from(["a", "b", "c"])
SELECTORS = st.sampled_from(
    [
        TEAM_X,
        (Requirement("team", "In", ("x", "y")),),
        (Requirement("team", "NotIn", ("x",)),),
        (Requirement("team", "Exists"),),
        (Requirement("team", "DoesNotExist"),),
        (Requirement("team", "Exists"), Requirement("team", "NotIn", ("y",))),
        (Requirement("team", "In", ("x", "y")), Requirement("team", "In", ("y", "z"))),
    ]
)
CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("label"), NAMES, st.sampled_from([X, (("team", "y"),), ()])),
        st.tuples(st.just("delete"), NAMES, st.just(())),
        st.tuples(st.just("pod"), NAMES, SELECTORS),
        st.tuples(st.just("gone"), NAMES, st.just(())),
        st.tuples(st.just("look"), NAMES, st.just(())),
    ),
    max_size=20,
)


@pytest.mark.parametrize("few", [1, 16])
@settings(deadline=None, max_examples=150)
@given(CHANGES)
def test_pods_always_name_the_namespaces_that_their_selectors_select(few: int, changes: Any) -> None:
    """With every change taken in, each pod is as it would be if it came only now."""
    selectors, labels, asked, seen = NamespaceSelectors(), {}, {}, {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(namespaces, "FEW_NAMESPACES", few)
        for kind, name, value in [*changes, ("look", "", ())]:
            if kind == "label":
                selectors.relabel(name, value)
                labels[name] = dict(value)
            elif kind == "delete":
                selectors.relabel(name, None)
                labels.pop(name, None)
            elif kind == "pod":
                asked[f"uid-{name}"] = value
                task = pod(name, affinity_terms=(replace(OF_TEAM, namespace_selector=value),))
                seen[task.uid] = selectors.resolved(task)
            elif kind == "gone":
                selectors.discard(f"uid-{name}")
                asked.pop(f"uid-{name}", None)
                seen.pop(f"uid-{name}", None)
            else:
                for changed in selectors.take_changed():
                    seen[changed.uid] = selectors.resolved(changed)
                for uid, selector in asked.items():
                    expected = tuple(
                        sorted(each for each, of_it in labels.items() if selects(selector, of_it))
                    )
                    assert seen[uid].spec.affinity_terms == (PodAffinityTerm("host", WEB, expected),)


def selecting(at: int, op: Any = "In") -> PodAffinityTerm:
    """A term whose selector no other term has."""
    values = (f"x{at}",) if op in ("In", "NotIn") else ()
    return PodAffinityTerm("host", WEB, (), (Requirement("team" if values else f"k{at}", op, values),))


def many_namespaces(count: int) -> list[Event]:
    return [NamespaceSeen(f"ns{at:04}", (("name", f"ns{at:04}"), ("team", f"x{at}"))) for at in range(count)]


@pytest.mark.parametrize("op", ["In", "NotIn", "Exists", "DoesNotExist"])
def test_the_terms_of_a_pod_and_the_namespaces_do_not_multiply(op: Any) -> None:
    def work(scale: int) -> int:
        cluster = Cluster(*many_namespaces(60 * scale))
        terms = tuple(selecting(at, op) for at in range(30 * scale))
        there = on(pod("there", anti_affinity_terms=terms), "n1")
        return operations(lambda: cluster.step(there, TaskSeen(pod("a"))))

    assert work(8) < 3 * work(4), "twice as many of both: a product would be four times as much"


def test_a_namespace_that_comes_costs_each_selector_little() -> None:
    """The first list of a cluster shows thousands of namespaces after thousands of pods with selectors."""

    def work(count: int) -> int:
        terms = tuple(selecting(at) for at in range(200))
        cluster = Cluster(on(pod("there", anti_affinity_terms=terms), "n1"))
        return operations(lambda: cluster.step(*many_namespaces(count)))

    assert work(800) < work(100) + 700 * 300, "300 bytecodes a namespace, however many selectors there are"


@pytest.mark.parametrize("count", [3, 40])
def test_terms_that_select_many_namespaces_keep_away_pods_of_these_alone(count: int) -> None:
    """Those that name few are filed by namespace, others are not."""
    term = PodAffinityTerm("host", WEB, (), (Requirement("team", "NotIn", ("x1",)),))
    there = [on(pod(f"there-{node}", "shop", anti_affinity_terms=(term,)), node) for node in ("n1", "n2")]
    cluster = Cluster(*many_namespaces(count), *there)
    cluster.step(TaskSeen(pod("a", "ns0001")), TaskSeen(pod("b", "ns0002")))
    assert cluster.nodes.keys() == {"a"}
    cluster.step(NamespaceSeen("ns0002", (("team", "x1"),)))
    assert cluster.nodes.keys() == {"a", "b"}
    late = [on(pod(f"late-{node}", "bank", anti_affinity_terms=(term,)), node) for node in ("n1", "n2")]
    cluster.step(TaskSeen(pod("c", "ns0000", cpu=999)), *late)
    (waiting,) = cluster.engine._state.pending.values()
    assert [each.selector for each in waiting.spec.matched_terms] == [WEB]
