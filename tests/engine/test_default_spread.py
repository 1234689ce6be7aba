"""Default topology spread: pods that state no constraints, by their Services and controllers."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from builders import make_engine, make_node, make_task
from configurations import HEAD, error_of
from eclectus.config.configuration import parse
from eclectus.engine.engine import Engine
from eclectus.engine.pod_specs.late_pods import PODS_MOST
from eclectus.feasibility.scores_by_pods import HOSTNAME
from eclectus.framework.profile_settings import ZONE, DefaultConstraint, SpreadDefaults
from eclectus.model.commands import Bind, Command, Report
from eclectus.model.events import (
    BindConfirmed,
    Event,
    NodeSeen,
    PodSelectorGone,
    PodSelectorSeen,
    Resumed,
    TaskGone,
    TaskSeen,
)
from eclectus.model.objects import PodSelector, Requirement, Selector, Spec, SpreadConstraint, Task, selects
from eclectus.policies.place.allocation import MostAllocated
from eclectus.policies.place.kube import KubeScores

WEB = (Requirement("app", "In", ("web",)),)
OF_SET = (*WEB, Requirement("hash", "In", ("1",)))
LABELS = (("app", "web"), ("hash", "1"))
BY_ZONE = DefaultConstraint(ZONE, 1, "DoNotSchedule")
NONE = SpreadDefaults("List")


def seen(kind: str, name: str, selector: Selector = OF_SET, namespace: str = "default") -> PodSelectorSeen:
    return PodSelectorSeen(PodSelector(kind, namespace, name, selector))


SERVICE, REPLICA_SET = seen("Service", "web", WEB), seen("ReplicaSet", "web-1")


def pod(name: str, **fields: Any) -> Task:
    return make_task(name, labels=LABELS, controller="ReplicaSet/web-1", **fields)


def zone_node(name: str, zone: str = "", cpu: float = 99) -> NodeSeen:
    labels = {HOSTNAME: name, **({ZONE: zone} if zone else {})}
    return NodeSeen(make_node(name, cpu=cpu, labels=labels))


NODES = [zone_node("a1", "a"), zone_node("a2", "a"), zone_node("b1", "b")]


def placed(engine: Engine, *events: Event) -> dict[str, str]:
    """The nodes of the pods that are bound after these events; binds are confirmed."""
    found, given = dict[str, str](), [*events]
    while binds := [each for each in engine.step(given, 0.0) if isinstance(each, Bind)]:
        found |= {each.name: each.node for each in binds}
        given = [BindConfirmed(each.uid, each.node) for each in binds]
    return found


def spec_of(engine: Engine, name: str) -> Spec:
    return engine._state.pending[f"uid-{name}"].spec


# -- what pods get ---------------------------------------------------------------------------------


def test_a_pod_of_a_replica_set_gets_kube_schedulers_two_soft_constraints() -> None:
    engine = make_engine()
    engine.step([REPLICA_SET, TaskSeen(pod("x"))], 0.0)
    host, zone = spec_of(engine, "x").preferred_spread
    expected = {"namespace": "default", "selector": OF_SET, "counts_itself": True, "needs_all_keys": False}
    assert host == SpreadConstraint(HOSTNAME, max_skew=3, is_default=True, **expected)
    assert zone == SpreadConstraint(ZONE, max_skew=5, is_default=True, **expected)
    assert not spec_of(engine, "x").has_pod_rules


OWN = SpreadConstraint("rack", "default", WEB, counts_itself=True)


@pytest.mark.parametrize(
    ("fields", "settings"),
    [
        ({"preferred_spread": (OWN,)}, {}),
        ({"spread": (OWN,), "topology_keys": ("rack",)}, {}),
        ({}, {"topology_spread": NONE}),
        ({"controller": "ReplicaSet/another"}, {}),
        ({"controller": "StatefulSet/web-1"}, {}),
    ],
)
def test_a_pod_that_states_constraints_or_that_nothing_selects_stays_as_it_is(
    fields: Any, settings: Any
) -> None:
    engine, task = make_engine(**settings), make_task("x", **{"labels": (), **fields})
    engine.step([SERVICE, REPLICA_SET, TaskSeen(task)], 0.0)
    assert spec_of(engine, "x") == task.spec


def test_pods_of_one_controller_share_a_class_and_those_of_two_do_not() -> None:
    engine = make_engine()
    other = replace(pod("z"), controller="ReplicaSet/web-2", labels=(("app", "web"), ("hash", "2")))
    second = seen("ReplicaSet", "web-2", (Requirement("hash", "In", ("2",)),))
    engine.step([REPLICA_SET, second, *map(TaskSeen, (pod("x"), pod("y"), other))], 0.0)
    specs = [spec_of(engine, name) for name in "xyz"]
    assert specs[0] == specs[1] != specs[2]


def test_a_list_may_have_hard_and_soft_constraints() -> None:
    by_rack = DefaultConstraint("rack", 2, "ScheduleAnyway", None, "Ignore", "Honor")
    minimum = DefaultConstraint(ZONE, 1, "DoNotSchedule", 3)
    engine = make_engine(topology_spread=SpreadDefaults("List", (minimum, by_rack)))
    engine.step([SERVICE, TaskSeen(pod("x"))], 0.0)
    spec = spec_of(engine, "x")
    fields = {"namespace": "default", "selector": WEB, "counts_itself": True, "is_default": True}
    assert spec.spread == (SpreadConstraint(ZONE, max_skew=1, min_domains=3, **fields),)
    rack = SpreadConstraint("rack", max_skew=2, honors_affinity=False, honors_taints=True, **fields)
    assert (spec.preferred_spread, spec.topology_keys) == ((rack,), (ZONE,))


# -- decisions -------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", [MostAllocated(), KubeScores()])
def test_the_pods_of_a_service_are_spread_over_zones(place: Any) -> None:
    engine = make_engine(place)
    nodes = placed(engine, Resumed(), *NODES, SERVICE, *(TaskSeen(pod(f"p{at}")) for at in range(4)))
    assert sorted(nodes.values()) == ["a1", "a2", "b1", "b1"]


def test_without_defaults_they_share_a_node() -> None:
    engine = make_engine(MostAllocated(), topology_spread=NONE)
    nodes = placed(engine, Resumed(), *NODES, SERVICE, *(TaskSeen(pod(f"p{at}")) for at in range(4)))
    assert len(set(nodes.values())) == 1


def test_nodes_without_a_zone_are_spread_over_too() -> None:
    nodes = [zone_node(name) for name in ("n1", "n2", "n3")]
    engine = make_engine(MostAllocated())
    found = placed(engine, Resumed(), *nodes, SERVICE, *(TaskSeen(pod(f"p{at}")) for at in range(6)))
    assert sorted(found.values()) == ["n1", "n1", "n2", "n2", "n3", "n3"]


def test_a_hard_default_refuses_nodes_in_kube_schedulers_words() -> None:
    engine = make_engine(topology_spread=SpreadDefaults("List", (BY_ZONE,)))
    nodes = [zone_node("a1", "a"), zone_node("b1", "b", cpu=1), zone_node("n1")]
    commands: list[Command] = engine.step([Resumed(), *nodes, SERVICE], 0.0)
    for at in range(4):
        commands += engine.step([TaskSeen(pod(f"p{at}"))], 1.0 + at)
    commands += engine.step([], 10.0)
    assert sorted(each.node for each in commands if isinstance(each, Bind)) == ["a1", "a1", "b1"]
    (report,) = (each for each in commands if isinstance(each, Report))
    reasons = (
        "1 Insufficient cpu",
        "1 node(s) didn't match pod topology spread constraints",
        "1 node(s) didn't match pod topology spread constraints (missing required label)",
    )
    assert all(reason in report.message for reason in reasons)


def test_a_pod_that_a_hard_default_keeps_waiting_is_placed_when_its_service_is_gone() -> None:
    engine = make_engine(topology_spread=SpreadDefaults("List", (BY_ZONE,)))
    found = placed(engine, Resumed(), zone_node("n1"), SERVICE, TaskSeen(pod("x")))
    assert not found
    assert placed(engine, PodSelectorGone("Service", "default", "web")) == {"x": "n1"}


# -- what comes later ------------------------------------------------------------------------------


def test_a_pending_pod_follows_services_and_controllers_that_come_change_and_go() -> None:
    engine = make_engine()

    def selector(*events: Event) -> Selector | None:
        engine.step(list(events), 0.0)
        constraints = spec_of(engine, "x").preferred_spread
        return constraints[0].selector if constraints else None

    assert selector(TaskSeen(pod("x"))) is None
    assert selector(REPLICA_SET) == OF_SET
    assert selector(PodSelectorGone("ReplicaSet", "default", "web-1")) is None
    assert selector(SERVICE) == WEB
    assert selector(seen("Service", "web", (Requirement("app", "In", ("db",)),))) is None
    assert selector(SERVICE, REPLICA_SET) == OF_SET
    assert selector(TaskSeen(pod("x"))) == OF_SET  # the pod as the API has it


def test_a_pod_that_no_change_concerns_keeps_its_place() -> None:
    engine = make_engine()
    engine.step([Resumed(), REPLICA_SET, TaskSeen(pod("x"))], 0.0)
    elsewhere = seen("Service", "web", WEB, "elsewhere")
    engine.step([elsewhere, seen("Service", "db", (Requirement("app", "In", ("db",)),))], 1.0)
    assert engine._state.counters.incoming["active", "PodUpdate"] == 0


def test_pods_that_are_gone_or_bound_are_forgotten() -> None:
    engine = make_engine()
    spreading = engine._event_handlers._specs.default_spread
    engine.step([Resumed(), zone_node("n1", cpu=1), *map(TaskSeen, (pod("x"), pod("y")))], 0.0)
    assert len(spreading.pods) == 2
    engine.step([BindConfirmed("uid-x", "n1"), TaskGone("uid-y")], 1.0)
    assert (len(spreading.pods), spreading._users) == (0, {})


def test_a_service_of_very_many_pending_pods_is_looked_at_in_several_steps() -> None:
    engine, pods = make_engine(), 2 * PODS_MOST + 1
    engine.step([Resumed(), *(TaskSeen(pod(f"p{at}")) for at in range(pods))], 0.0)

    def spread() -> int:
        return sum(bool(each.spec.preferred_spread) for each in engine._state.pending.values())

    engine.step([SERVICE], 1.0)
    for done in (PODS_MOST, 2 * PODS_MOST):
        assert (spread(), engine.next_step_at()) == (done, 1.0)
        engine.step([], 1.0)
    assert (spread(), engine._event_handlers.goes_on) == (pods, False)


NAMES = st.sampled_from(["a", "b", "c"])
CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("pod"), NAMES, st.sampled_from(["", "ReplicaSet/a", "StatefulSet/b"])),
        st.tuples(st.just("gone"), NAMES, st.just("")),
        st.tuples(st.sampled_from(["Service", "ReplicaSet", "StatefulSet"]), NAMES, st.sampled_from("xy-")),
    ),
    max_size=25,
)


@settings(deadline=None, max_examples=150)
@given(CHANGES)
def test_constraints_are_always_those_of_what_there_is_now(changes: Any) -> None:
    engine, there, pods = make_engine(), dict[tuple[str, str], Selector](), dict[str, Task]()
    gone = set[str]()  # a uid is never used again
    for kind, name, value in changes:
        events: list[Event]
        if kind == "pod" and name not in gone:
            pods[name] = make_task(name, labels=(("app", "x"),), controller=value)
            events = [TaskSeen(pods[name])]
        elif kind in ("pod", "gone"):
            gone.add(name)
            pods.pop(name, None)
            events = [TaskGone(f"uid-{name}")]
        elif value == "-":
            there.pop((kind, name), None)
            events = [PodSelectorGone(kind, "default", name)]
        else:
            there[kind, name] = (Requirement("app", "In", (value,)),)
            events = [seen(kind, name, there[kind, name])]
        engine.step(events, 0.0)
        for each in pods.values():
            expected = set[Requirement]()
            for (of_kind, of_name), selector in there.items():
                is_service = of_kind == "Service" and selects(selector, dict(each.labels))
                if is_service or each.controller == f"{of_kind}/{of_name}":
                    expected |= set(selector)
            found = {one.selector for one in spec_of(engine, each.name).preferred_spread}
            assert found == ({tuple(sorted(expected, key=lambda one: one.values))} if expected else set())


# -- settings --------------------------------------------------------------------------------------

SOFT_ZONE = f"{{topologyKey: {ZONE}, maxSkew: 1, whenUnsatisfiable: ScheduleAnyway}}"


def test_the_default_is_kube_schedulers_and_a_list_replaces_it() -> None:
    def constraints(text: str) -> list[tuple[str, int]]:
        profile = parse(f"{HEAD}profiles: [{{schedulerName: a{text}}}]").profiles[0]
        return [(each.topology_key, each.max_skew) for each in profile.settings.topology_spread.constraints]

    assert constraints("") == [(HOSTNAME, 3), (ZONE, 5)]
    assert constraints(", topologySpread: {defaultingType: List}") == []
    listed = f", topologySpread: {{defaultingType: List, defaultConstraints: [{SOFT_ZONE}]}}"
    assert constraints(listed) == [(ZONE, 1)]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (f"{{defaultConstraints: [{SOFT_ZONE}]}}", "defaultConstraints: needs defaultingType: List"),
        (
            f"{{defaultingType: List, defaultConstraints: [{SOFT_ZONE}, {SOFT_ZONE}]}}",
            f"has 2 constraints with ScheduleAnyway on {ZONE}; at most one",
        ),
        ("{defaultingType: List, defaultConstraints: [{maxSkew: 1}]}", "topologyKey: is missing"),
        (
            f"{{defaultingType: List, defaultConstraints: [{SOFT_ZONE.replace('Skew: 1', 'Skew: 0')}]}}",
            "defaultConstraints[0].maxSkew: 0 is too small",
        ),
        (
            f"{{defaultingType: List, defaultConstraints: [{SOFT_ZONE[:-1]}, minDomains: 2}}]}}",
            "defaultConstraints[0].minDomains: needs whenUnsatisfiable: DoNotSchedule",
        ),
        (
            f"{{defaultingType: List, defaultConstraints: [{SOFT_ZONE[:-1]}, labelSelector: {{}}}}]}}",
            "labelSelector: unknown field",
        ),
    ],
)
def test_what_is_wrong_is_named(text: str, problem: str) -> None:
    assert problem in error_of(f"{HEAD}profiles: [{{schedulerName: a, topologySpread: {text}}}]")
