"""Pools of the API as pools of the model, and what is measured of one as a part of its status."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import make_engine, make_node
from eclectus.api.names import POOL_LABEL
from eclectus.api.pool import MAX_WEIGHT, NodeShare, PoolStatus
from eclectus.kube.pools import (
    LEAST_WEIGHT,
    MOST_RESOURCES,
    decode_pool,
    minimum_problem,
    pool_from,
    pool_status,
)
from eclectus.kube.requests import MOST
from eclectus.model.errors import MalformedError
from eclectus.model.events import PoolSeen
from eclectus.model.objects import Requirement, Task
from eclectus.model.pool import NodeAmounts, Pool, PoolAmounts, PoolPreemption, PoolRecord
from eclectus.model.printed import amount_text
from eclectus.policies.order.pools import FairPools
from eclectus.policies.place.fit import BestFit
from pod_objects import task
from pool_objects import raw
from worlds import World

NOON = 1772366400.0
KIND = {"key": "k", "value": "v"}


def read(**fields: Any) -> Pool:
    return pool_from(decode_pool(raw(**fields)))


OWNERS = {"web": ("apps/v1", "ReplicaSet"), "db": ("apps/v1", "StatefulSet"), "batch": ("batch/v1", "Job")}


def pods_of(name: str, count: int, minute: int) -> list[Task]:
    """Pods that a controller has created; the ReplicaSet is that of a Deployment."""
    version, kind = OWNERS[name]
    owner = {"apiVersion": version, "kind": kind, "name": name, "uid": f"uid-{name}", "controller": True}
    metadata = {
        "labels": {POOL_LABEL: "research"},
        "ownerReferences": [owner],
        "creationTimestamp": f"2026-03-01T12:{minute:02d}:00Z",
    }
    of_us = {"schedulerName": "eclectus"}
    return [task(of_us, name=f"{name}-{at}", uid=f"uid-{name}-{at}", **metadata) for at in range(count)]


def test_pods_of_a_deployment_or_a_stateful_set_are_one_job_of_the_pool_that_their_label_names() -> None:
    world = World(make_engine(BestFit(), order=FairPools()), make_node("n", cpu=9))
    world.step(PoolSeen(read(policy="fifo", maxRunningJobs=2, namespaces={"names": ["shop"]})))
    world.add(*pods_of("web", 3, 0), *pods_of("db", 2, 1), *pods_of("batch", 1, 2))
    assert sorted(world.placed()) == ["db-0", "db-1", "web-0", "web-1", "web-2"]
    world.sleep(5.0)
    quota = ("WaitingForQuota", "pool research runs 2 of at most 2 jobs")
    assert world.messages("batch-0") == [quota]
    for name in ("web-0", "web-1", "web-2"):
        world.delete(name)
    assert world.node_of("batch-0") == "n"


def test_a_pool_of_a_name_alone_has_the_defaults_of_the_model() -> None:
    assert read() == Pool("research")


def test_every_field_is_read_in_the_units_of_pods_requests() -> None:
    found = read(
        parent="lab",
        weight=2,
        minShare={"amounts": {"cpu": "1500m", "memory": "1Gi", "nvidia.com/gpu": 2}},
        maxShare={"amounts": {"cpu": 4, "pods": "100"}, "percent": 30},
        policy="srtf",
        maxRunningJobs=3,
        altruism=0.5,
        namespaces={
            "names": ["b", "a"],
            "selector": {
                "matchLabels": {"team": "vision"},
                "matchExpressions": [{"key": "tier", "operator": "Exists"}],
            },
        },
        preemption={
            "minShareSeconds": 60,
            "fairShareSeconds": 600.5,
            "fairShareThreshold": 0.25,
            "minRuntimeSeconds": 300,
            "allowFrom": False,
            "dryRun": True,
        },
        suspend=True,
        status={
            "belowMinShareSince": "2026-03-01T12:00:00.500000Z",
            "belowFairShareSince": "2026-03-01T12:00:00.250000Z",
        },
    )
    assert found == Pool(
        "research",
        parent="lab",
        weight=2.0,
        min_share=PoolAmounts((("cpu", 1500), ("memory", 2**30), ("nvidia.com/gpu", 2))),
        max_share=PoolAmounts((("cpu", 4000), ("pods", 100)), 30.0),
        policy="srtf",
        running_jobs_most=3,
        altruism=0.5,
        namespaces=("a", "b"),
        selector=(Requirement("team", "In", ("vision",)), Requirement("tier", "Exists")),
        preemption=PoolPreemption(60.0, 600.5, 0.25, 300.0, allow_from=False, dry_run=True),
        suspended=True,
        below_min_since=NOON + 0.5,
        below_share_since=NOON + 0.25,
    )


def test_amounts_by_node_are_read_by_label_and_value() -> None:
    kinds = [
        {"key": "gpu", "value": "h100", "amounts": {"nvidia.com/gpu": 2}},
        {"key": "gpu", "value": "a100", "amounts": {"nvidia.com/gpu": "4", "cpu": "1500m"}},
    ]
    found = read(minShare={"byNode": kinds[:1]}, maxShare={"byNode": kinds})
    h100 = NodeAmounts("gpu", "h100", (("nvidia.com/gpu", 2),))
    a100 = NodeAmounts("gpu", "a100", (("cpu", 1500), ("nvidia.com/gpu", 4)))
    assert (found.min_share.by_node, found.max_share.by_node) == ((h100,), (a100, h100))
    assert not found.max_share  # of all nodes together nothing is stated


def test_null_means_not_set() -> None:
    nulls: dict[str, Any] = dict.fromkeys(
        (
            "parent",
            "weight",
            "minShare",
            "policy",
            "maxRunningJobs",
            "altruism",
            "namespaces",
            "preemption",
            "suspend",
        )
    )
    assert read(**nulls, maxShare={"amounts": None, "percent": None}) == Pool("research")
    assert read(maxShare={"amounts": {"cpu": None, "memory": "1"}}).max_share.amounts == (("memory", 1),)


def test_an_empty_selector_selects_all_namespaces_and_none_selects_none() -> None:
    assert read(namespaces={"selector": {}}).selector == ()
    assert read(namespaces={"names": ["a"]}).selector is None


def test_a_maximum_of_nothing_stays_a_maximum() -> None:
    found = read(maxShare={"amounts": {"nvidia.com/gpu": 0}})
    assert found.max_share.amounts == (("nvidia.com/gpu", 0),)
    assert found.max_share


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"weight": "heavy"}, "spec.weight: Expected `float`, got `str`"),
        ({"weight": -1}, "spec.weight: -1 is not between 0 and 1e+06"),
        (
            {"maxShare": {"byNode": [{"key": "k", "value": "v", "amounts": {"gpu": 1}}]}},
            "spec.maxShare.byNode[0].amounts.gpu: pods request no such resource",
        ),
        ({"maxShare": {"byNode": [KIND, KIND]}}, "spec.maxShare.byNode[1]: k=v is stated already"),
        ({"minShare": {"byNode": [{**KIND, "key": ""}]}}, "spec.minShare.byNode[0].key: it is empty"),
        (
            {"minShare": {"byNode": [{**KIND, "value": str(at)} for at in range(17)]}},
            "spec.minShare.byNode: it states 17 kinds of nodes, more than 16",
        ),
        ({"altruism": 1.5}, "spec.altruism: 1.5 is not between 0 and 1"),
        ({"weight": 1e7}, "spec.weight: 1e+07 is not between"),
        ({"minShare": {"amounts": {"cpu": "many"}}}, "spec.minShare.amounts.cpu: 'many' is not a quantity"),
        ({"maxShare": {"amounts": {"cpu": "-1"}}}, "spec.maxShare.amounts.cpu: '-1' is negative"),
        ({"maxShare": {"amounts": {"gpu": "1"}}}, "spec.maxShare.amounts.gpu: pods request no such resource"),
        ({"minShare": {"amounts": {"cpu": [1]}}}, "spec.minShare.amounts"),
        ({"minShare": {"percent": 101}}, "spec.minShare.percent: 101 is not between 0 and 100"),
        ({"policy": "random"}, "spec.policy: Invalid enum value 'random'"),
        ({"maxRunningJobs": 0}, "spec.maxRunningJobs: 0 is not between 1 and"),
        ({"preemption": {"fairShareThreshold": 0}}, "spec.preemption.fairShareThreshold: 0 is not above 0"),
        ({"preemption": {"minShareSeconds": -1}}, "spec.preemption.minShareSeconds: -1 is not between 0"),
        ({"preemption": {"minRuntimeSeconds": 1e10}}, "spec.preemption.minRuntimeSeconds: 1e+10 is not"),
        ({"maxRunningJobs": 10**30}, "spec.maxRunningJobs"),
        (
            {"namespaces": {"selector": {"matchExpressions": [{"key": "a", "operator": "Is"}]}}},
            "spec.namespaces.selector.matchExpressions[0].operator: Invalid enum value 'Is'",
        ),
    ],
)
def test_a_pool_that_cannot_be_read_is_named_with_the_field(spec: Any, problem: str) -> None:
    with pytest.raises(MalformedError) as raised:
        read(**spec)
    assert str(raised.value).startswith("Pool research: spec.")
    assert problem in str(raised.value)


AMOUNTS = st.one_of(
    st.sampled_from(["0", "1m", "64e4294967296", "1e60", "9007199254740993", "0064", ".5", "1Ei"]),
    st.integers(0, 10**40),
    st.floats(0, allow_infinity=False),
)


@given(
    st.dictionaries(st.sampled_from(["cpu", "memory", "example.com/x"]), AMOUNTS),
    st.floats(0, MAX_WEIGHT) | st.sampled_from([0.0, 5e-324, MAX_WEIGHT]),
)
def test_any_amounts_and_weights_are_read_as_numbers_that_can_be_reckoned_with(
    amounts: Any, weight: float
) -> None:
    found = read(minShare={"amounts": amounts}, weight=weight)
    assert all(isinstance(each, int) and 0 <= each <= MOST for _, each in found.min_share.amounts)
    assert len(found.min_share.amounts) == len(amounts)
    assert found.weight == 0.0 if weight == 0.0 else LEAST_WEIGHT <= found.weight <= MAX_WEIGHT


@pytest.mark.parametrize(
    ("least", "most", "problem"),
    [
        (
            {"amounts": {"cpu": 3}},
            {"amounts": {"cpu": "2500m"}},
            "a minimum of 3 cpu, but a maximum of 2.5 cpu",
        ),
        ({"amounts": {"memory": "2Gi"}}, {"amounts": {"memory": "1Gi"}}, "2Gi memory, but a maximum of 1Gi"),
        ({"percent": 50}, {"percent": 40}, "a minimum of 50 percent, but a maximum of 40 percent"),
        ({"amounts": {"cpu": 3}}, {"amounts": {"cpu": 3, "memory": 0}, "percent": 1}, ""),
        ({}, {}, ""),
    ],
)
def test_a_minimum_above_the_maximum_is_found(least: Any, most: Any, problem: str) -> None:
    found = minimum_problem(read(minShare=least, maxShare=most))
    assert problem in found
    assert bool(found) == bool(problem)


@pytest.mark.parametrize(
    ("name", "amount", "text"),
    [
        ("cpu", 120_000, "120 cpu"),
        ("cpu", 1, "0.001 cpu"),
        ("memory", 3 * 2**29, "1.5Gi memory"),
        ("memory", 1000, "1000 memory"),
        ("hugepages-2Mi", 2**21, "2Mi hugepages-2Mi"),
        ("nvidia.com/gpu", 8, "8 nvidia.com/gpu"),
    ],
)
def test_amounts_are_written_for_people(name: str, amount: int, text: str) -> None:
    assert amount_text(name, amount) == text


RECORD = PoolRecord(
    held=(("cpu", 1500), ("memory", 2**30)),
    demand=(("cpu", 2000),),
    share=(("cpu", 1000),),
    waiting_pods=7,
    running_jobs=2,
    below_min_since=NOON + 0.25,
)


def test_what_is_measured_is_written_in_kubernetes_units() -> None:
    assert pool_status(RECORD, PoolStatus()) == {
        "held": {"cpu": "1500m", "memory": "1073741824"},
        "demand": {"cpu": "2000m"},
        "share": {"cpu": "1000m"},
        "waitingPods": 7,
        "runningJobs": 2,
        "belowMinShareSince": "2026-03-01T12:00:00.250000Z",
        "belowFairShareSince": None,
    }


def test_what_is_held_by_node_is_written_where_a_pool_states_it_and_removed_where_it_did() -> None:
    kind = NodeAmounts("gpu", "a100", (("cpu", 1500), ("nvidia.com/gpu", 0)))
    written = pool_status(PoolRecord(held_by_node=(kind,)), PoolStatus())["heldByNode"]
    amounts = {"cpu": "1500m", "nvidia.com/gpu": "0"}
    assert written == [{"key": "gpu", "value": "a100", "amounts": amounts}]
    before = PoolStatus(held_by_node=(NodeShare("gpu", "a100", amounts),))
    assert pool_status(PoolRecord(), before)["heldByNode"] is None
    assert "heldByNode" not in pool_status(PoolRecord(), PoolStatus())


def test_what_is_no_longer_measured_is_removed() -> None:
    """A merge patch keeps what it does not name."""
    before = PoolStatus(held={"cpu": "1", "memory": "1Gi"}, demand={"cpu": "1"}, share={"pods": "3"})
    found = pool_status(PoolRecord(held=(("cpu", 500),)), before)
    assert found["held"] == {"cpu": "500m", "memory": None}
    assert (found["demand"], found["share"]) == ({"cpu": None}, {"pods": None})
    assert found["belowMinShareSince"] is None


def test_since_when_it_is_starved_survives_a_restart() -> None:
    written = pool_status(RECORD, PoolStatus())
    assert read(status=written).below_min_since == RECORD.below_min_since


def test_resources_of_any_number_and_name_fit_into_a_status() -> None:
    """The API server would refuse the whole status for one more, and any tenant can request them."""
    named = [f"a.example.com/{at:03d}" for at in range(MOST_RESOURCES)]
    many = tuple((name, 1) for name in [*named, "cpu", "memory"])
    before = PoolStatus(held={"a.example.com/063": "1"})
    found = pool_status(PoolRecord(held=many), before)["held"]
    assert sum(each is not None for each in found.values()) == MOST_RESOURCES
    assert (found["cpu"], found["memory"], found["a.example.com/063"]) == ("1m", "1", None)


@pytest.mark.parametrize("since", [3e11, float("inf")])
def test_any_numbers_that_are_measured_can_be_written(since: float) -> None:
    record = PoolRecord(waiting_pods=10**12, running_jobs=10**12, below_min_since=since)
    written = json.loads(json.dumps(pool_status(record, PoolStatus()), allow_nan=False))
    assert written["waitingPods"] == written["runningJobs"] == 2**31 - 1
