"""What a profile adds to its pods: node affinity, and resources that are not compared."""

from __future__ import annotations

from typing import Any

import pytest

from builders import make_engine, make_node, make_task
from configurations import HEAD, error_of
from eclectus.config.configuration import parse
from eclectus.framework import ProfileSettings
from eclectus.framework.profile_settings import AddedAffinity
from eclectus.model.commands import Bind, Report
from eclectus.model.events import NodeSeen, Resumed, TaskSeen
from eclectus.model.objects import Requirement, Term
from eclectus.policies.place.allocation import LeastAllocated

POOL_A = "{matchExpressions: [{key: pool, operator: In, values: [a]}]}"
REQUIRED = f"{{requiredDuringSchedulingIgnoredDuringExecution: {{nodeSelectorTerms: [{POOL_A}]}}}}"
PREFERRED = f"{{preferredDuringSchedulingIgnoredDuringExecution: [{{weight: 10, preference: {POOL_A}}}]}}"
NODES = [NodeSeen(make_node(f"n{pool}", labels={"pool": pool})) for pool in "cba"]


def added(text: str) -> AddedAffinity:
    settings = parse(f"{HEAD}profiles: [{{schedulerName: a, addedAffinity: {text}}}]").profiles[0].settings
    assert settings.added_affinity is not None
    return settings.added_affinity


def step(engine: Any, *pods: Any) -> list[Any]:
    return engine.step([*NODES, *map(TaskSeen, pods), Resumed()], 0.0)


@pytest.mark.parametrize("text", [REQUIRED, PREFERRED])
def test_pods_are_placed_where_their_profile_wants_them(text: str) -> None:
    engine = make_engine(LeastAllocated(), added_affinity=added(text))
    commands = step(engine, make_task("x", cpu=1), make_task("y", cpu=1))
    assert [each.node for each in commands if isinstance(each, Bind)] == ["na", "na"]


def test_added_affinity_holds_besides_the_pods_own_and_is_refused_in_kube_schedulers_words() -> None:
    engine = make_engine(LeastAllocated(), added_affinity=added(REQUIRED))
    pool_b = (Term((Requirement("pool", "In", ("b",)),)),)
    (report,) = (each for each in step(engine, make_task("x", affinity=pool_b)) if isinstance(each, Report))
    words = "0/3 nodes are available: 1 node(s) didn't match Pod's node affinity/selector"
    assert report.message.startswith(words)
    assert "2 node(s) didn't match scheduler-enforced node affinity" in report.message


def test_a_resource_that_is_ignored_need_not_be_there() -> None:
    licence = (("cpu", 1000), ("example.com/licence", 1), ("example.org/slot", 2))
    task = make_task("x")
    spec = type(task.spec)(requests=licence, score_requests=(1000, 200))
    asking = make_task("x", spec=spec)
    assert not [each for each in step(make_engine(LeastAllocated()), asking) if isinstance(each, Bind)]
    ignoring = {"ignored_resources": ("example.com/licence",), "ignored_resource_groups": ("example.org",)}
    (bind,) = (
        each for each in step(make_engine(LeastAllocated(), **ignoring), asking) if isinstance(each, Bind)
    )
    assert bind.name == "x"


def test_the_same_pod_seen_again_keeps_its_place() -> None:
    engine = make_engine(LeastAllocated(), added_affinity=added(REQUIRED))
    waiting = make_task("x", cpu=100)
    step(engine, waiting)
    engine.step([TaskSeen(waiting)], 0.1)
    assert engine._state.counters.incoming["active", "PodAdd"] == 1
    assert engine._state.counters.incoming["active", "PodUpdate"] == 0


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ("ignoredResources: [cpu]", "ignoredResources[0]: 'cpu' is not the name of an extended resource"),
        ("ignoredResources: [kubernetes.io/x]", "ignoredResources[0]"),
        ("ignoredResourceGroups: [example.com/x]", "ignoredResourceGroups[0]"),
        ("addedAffinity: {required: {}}", "addedAffinity.required: unknown field"),
        (
            "addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: []}}",
            "nodeSelectorTerms: needs a term",
        ),
        (
            "addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{}]}}",
            "nodeSelectorTerms[0]: is empty",
        ),
        (f"addedAffinity: {PREFERRED.replace('10', '101')}", "weight: 101 is too large; at most 100"),
        (f"addedAffinity: {REQUIRED.replace('values: [a]', 'values: []')}", "values: needs a value"),
        (f"addedAffinity: {REQUIRED.replace('In, values: [a]', 'Gt, values: [a]')}", "one whole number"),
        (f"addedAffinity: {REQUIRED.replace('In, values: [a]', 'Is, values: [a]')}", "'Is' is unknown"),
        (
            f"addedAffinity: {REQUIRED.replace('matchExpressions', 'matchFields')}",
            "nodes have no other field",
        ),
    ],
)
def test_what_no_node_or_pod_could_mean_is_refused(fields: str, problem: str) -> None:
    assert problem in error_of(f"{HEAD}profiles: [{{schedulerName: a, {fields}}}]")


def test_profiles_add_nothing_by_default() -> None:
    assert ProfileSettings().added_affinity is None
    assert not ProfileSettings().ignores("example.com/licence")
