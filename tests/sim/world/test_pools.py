"""Pools of a scenario: what the scheduler sees of them, changes at given times, and what each pool got."""

from __future__ import annotations

from typing import Any

import pytest

from checked_worlds import run_checked
from eclectus.kube.pools import decode_pool, pool_from
from eclectus.model.commands import RecordPool
from eclectus.model.errors import SettingsError
from eclectus.model.events import PoolGone, PoolSeen
from eclectus.model.pool import Pool, PoolRecord
from eclectus.sim.base.results import PoolsResult
from eclectus.sim.runs import build_world, run
from eclectus.sim.world.pools import PoolChange, PoolField, ScenarioPools
from pool_objects import raw
from short_scenarios import document, scenario

TWO: list[dict[str, Any]] = [{"name": "a"}, {"name": "b", "weight": 3}]


def kind(value: str, cpu: float) -> dict[str, Any]:
    """So many cores on the nodes of one model."""
    return {"key": "model", "value": value, "amounts": {"cpu": cpu}}


def by_node(min_share: Any = None, max_share: Any = None, **fields: Any) -> dict[str, Any]:
    """Pool a with a minimum or a maximum of one kind of node."""
    shares = {"minShare": min_share, "maxShare": max_share}
    return {"name": "a", **{name: {"byNode": [each]} for name, each in shares.items() if each}, **fields}


def classes(**fields: Any) -> dict[str, Any]:
    """Two classes of equal work, each of more than the cluster can do."""
    both = [{"name": name, "pool": name, "size": {"mean": "20s"}, **fields} for name in "ab"]
    return {"poisson": {"rate": 3, "classes": both}}


def shared(order: str = "pools", **fields: Any) -> dict[str, Any]:
    """A scenario of a node with twenty slots; its first minute is not measured."""
    profile = {
        "schedulerName": order,
        "order": {"policy": order},
        "place": {"policy": "best-fit"},
        "learn": {"policy": "none"},
    }
    return {
        "cluster": {"groups": [{"slots": 20}]},
        "pools": TWO,
        "workload": classes(),
        "profiles": [profile],
        "measure": {"horizon": 300, "warmUp": 0.2},
        "allowUnstable": True,
        **fields,
    }


def pools_of(order: str = "pools", **fields: Any) -> PoolsResult:
    read = scenario(**shared(order, **fields))
    found = run_checked(read, read.profiles[0], 1).pools
    assert found is not None
    return found


def test_pools_hold_what_their_weights_entitle_them_to() -> None:
    found = pools_of()
    for name, part in (("a", 0.25), ("b", 0.75)):
        of_pool = found.pools[name]
        assert of_pool.resource == "cpu"
        assert of_pool.share == pytest.approx(part)
        assert of_pool.held == pytest.approx(part, abs=0.02)
        assert of_pool.off < 0.05
        assert of_pool.wait.count > 50
        assert of_pool.first_start is not None
    assert found.windows == 3
    assert found.fairness is not None
    assert found.fairness > 0.97


def test_another_order_is_judged_by_the_same_formula() -> None:
    """By age the two hold equal parts, though b is entitled to three times as much."""
    found = pools_of("fifo")
    assert found.pools["b"].share == pytest.approx(0.75)
    assert found.pools["b"].held == pytest.approx(0.5, abs=0.1)
    assert found.pools["b"].off > 0.15
    assert found.fairness is not None
    assert found.fairness < 0.9


def test_a_maximum_holds_whatever_the_order() -> None:
    pools = [{"name": "a", "maxShare": {"amounts": {"cpu": 4}}}, {"name": "b"}]
    assert pools_of("fifo", pools=pools).pools["a"].held <= 0.2 + 1e-9


MODELS = {"groups": [{"slots": 10, "labels": {"model": model}} for model in ("fast", "slow")]}


def test_a_maximum_by_node_leaves_the_other_nodes() -> None:
    pools = [by_node(max_share=kind("fast", 2)), {"name": "b", "weight": 0}]
    held = pools_of("fifo", cluster=MODELS, pools=pools).pools["a"].held
    assert held <= 0.6 + 1e-9
    assert held > 0.3
    both = [{"name": "a", "maxShare": {"byNode": [kind("fast", 2), kind("slow", 1)]}}, {"name": "b"}]
    assert pools_of(cluster=MODELS, pools=both).pools["a"].held <= 0.15 + 1e-9


def test_a_minimum_by_node_comes_first_there() -> None:
    """Of weight 0, a gets what b leaves, which is nothing but for its minimum."""
    for least, held in ((0, 0.0), (4, 0.2)):
        pools = [by_node(min_share=kind("fast", least), weight=0), {"name": "b"}]
        found = pools_of(cluster=MODELS, pools=pools, workload=classes(nodeSelector={"model": "fast"}))
        assert found.pools["a"].held == pytest.approx(held, abs=0.05)


def test_a_pool_of_a_scenario_is_the_one_that_a_cluster_admin_would_write() -> None:
    spec = {
        "minShare": {"amounts": {"cpu": 2}, "byNode": [kind("slow", 1), kind("fast", 0.5)]},
        "maxShare": {"percent": 50, "byNode": [kind("fast", 4)]},
        "altruism": 0.25,
    }
    written = decode_pool(raw("a", namespaces={"selector": {}}, **spec))
    read = scenario(**document(**shared(pools=[{"name": "a", **spec}, {"name": "b"}])))
    assert read.pools[0] == pool_from(written)


def test_a_tree_has_the_parts_of_all_its_levels() -> None:
    pools = [{"name": "all", "maxShare": {"percent": 50}}, *({**each, "parent": "all"} for each in TWO)]
    found = pools_of(pools=pools).pools
    assert set(found) == {"all", "all/a", "all/b"}
    assert found["all"].share == pytest.approx(0.5)
    assert found["all/a"].held + found["all/b"].held == pytest.approx(found["all"].held)


def test_pools_change_at_given_times() -> None:
    """a is suspended for the measured minutes; b is gone, so its pods are in no pool that is named."""
    events = [{"at": "50s", "pool": {"name": "a", "suspend": True}}, {"at": "50s", "removePool": "b"}]
    found = pools_of(events=[*events, {"at": 300, "pool": {"name": "a"}}]).pools
    assert found["a"].held < 0.05
    assert found["default/default"].held > 0.9


def test_a_class_has_a_namespace_and_without_a_pool_its_own() -> None:
    workload = {"poisson": {"rate": 1, "classes": [{"namespace": "team", "size": {"mean": "10s"}}]}}
    assert set(pools_of(workload=workload).pools) == {"default", "default/team"}


def test_a_pool_with_namespaces_admits_no_others() -> None:
    pools = [{"name": "a", "namespaces": {"names": ["team"]}}, {"name": "b"}]
    assert set(pools_of(pools=pools).pools) == {"b", "default", "default/default"}


def test_a_class_begins_later() -> None:
    both = classes()["poisson"]["classes"]
    both[1]["begins"] = "100s"
    found = pools_of(workload={"poisson": {"rate": 3, "classes": both}}).pools
    assert found["a"].first_arrival is not None
    assert found["b"].first_arrival is not None
    assert found["a"].first_arrival < 10
    assert 100 <= found["b"].first_arrival < 110


def test_without_pools_there_is_no_result_of_them() -> None:
    read = scenario()
    assert run(read, read.profiles[0], 1).pools is None


def test_what_is_recorded_of_a_pool_is_seen_again_with_it() -> None:
    """So a scheduler that starts anew knows since when a pool lacks its minimum."""
    pools = ScenarioPools([Pool("a", weight=2.0), Pool("b")])
    recorded = pools.record(RecordPool("a", PoolRecord(below_min_since=7.0)))
    assert recorded == PoolSeen(Pool("a", weight=2.0, below_min_since=7.0))
    changed = pools.change(PoolChange(9.0, PoolField("a", weight=5.0)))
    assert isinstance(changed, PoolSeen)
    assert (changed.pool.weight, changed.pool.below_min_since) == (5.0, 7.0)
    assert [event.pool.below_min_since for event in pools.seen()] == [7.0, None]
    assert pools.change(PoolChange(9.0, remove_pool="b")) == PoolGone("b")
    assert pools.record(RecordPool("b", PoolRecord(below_min_since=7.0))) is None


def test_a_run_records_since_when_a_pool_lacks_its_minimum() -> None:
    """Pods of a fill the node for 100 s; b, which has a minimum, comes after 20 s."""
    both = [
        {"name": "a", "pool": "a", "tasksPerJob": 20, "size": {"law": "deterministic", "mean": "100s"}},
        {"name": "b", "pool": "b", "size": {"mean": "5s"}, "begins": "20s"},
    ]
    pools = [{"name": "a"}, {"name": "b", "minShare": {"amounts": {"cpu": 5}}}]
    workload = {"poisson": {"rate": 10, "classes": both}}
    read = scenario(**shared(pools=pools, workload=workload, measure={"horizon": 100}))
    since = list[float | None]()

    def observe(now: float, events: Any, commands: Any) -> None:
        since.extend(
            event.pool.below_min_since
            for event in events
            if isinstance(event, PoolSeen) and now and event.pool.name == "b"
        )

    world = build_world(read, read.profiles[0], 1)
    world.on_step = observe
    world.run()
    assert since[0] is None or since[0] > 20
    assert any(each is not None and 20 < each < 40 for each in since)
    assert since[-1] is None, "in the end it lacks nothing"


def test_a_pool_takes_back_what_it_is_entitled_to() -> None:
    """With reclaim, b does not wait until the long pods of a end by themselves."""
    both = [
        {"name": "a", "pool": "a", "tasksPerJob": 10, "size": {"law": "deterministic", "mean": "150s"}},
        {"name": "b", "pool": "b", "share": 6, "size": {"mean": "10s"}, "begins": "20s"},
    ]
    pools = [{"name": "a"}, {"name": "b", "preemption": {"fairShareSeconds": 10, "fairShareThreshold": 0.9}}]
    workload = {"poisson": {"rate": 4, "classes": both}}
    profile = {**shared()["profiles"][0], "relieve": [{"policy": "reclaim"}]}
    measure = {"horizon": 140, "warmUp": 0.4}
    found = pools_of(pools=pools, workload=workload, profiles=[profile], measure=measure).pools["b"]
    assert found.held == pytest.approx(0.5, abs=0.05)
    assert pools_of(pools=pools, workload=workload, measure=measure).pools["b"].held < 0.05, "without it"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"pools": [{"parent": "a"}]}, "pools[0].name: is missing"),
        ({"pools": [{"name": "a/b"}]}, "pools[0].name: 'a/b' is no name of a pool"),
        ({"pools": [{"name": "a"}, {"name": "a"}]}, "pools[1].name: 'a' is already used by pools[0]"),
        ({"pools": [{"name": "a", "wait": 3}]}, "pools[0].wait: unknown field; did you mean 'weight'?"),
        ({"pools": [{"name": "a", "weight": -1}]}, "pools[0].weight: -1 is too small"),
        ({"pools": [{"name": "a", "policy": "lifo"}]}, "pools[0].policy: 'lifo' is unknown; did you mean"),
        ({"pools": [{"name": "a", "maxRunningJobs": 0}]}, "pools[0].maxRunningJobs: 0 is too small"),
        ({"pools": [{"name": "a", "suspend": "yes"}]}, "pools[0].suspend: must be true or false, not 'yes'"),
        ({"pools": [{"name": "a", "maxShare": {"percent": 101}}]}, "pools[0].maxShare.percent: 101 % is too"),
        ({"pools": [{"name": "a", "minShare": {"cpu": 1}}]}, "pools[0].minShare.cpu: unknown field"),
        (
            {"pools": [{"name": "a", "minShare": {"amounts": {"gpu": 1}}}]},
            "pools[0].minShare.amounts.gpu: is not a resource that a scheduler counts",
        ),
        (
            {"pools": [{"name": "a", "minShare": {"amounts": {"cpu": "lots"}}}]},
            "pools[0].minShare.amounts.cpu: 'lots' is not",
        ),
        ({"pools": [{"name": "a", "altruism": 1.5}]}, "pools[0].altruism: 1.5 is too large"),
        ({"pools": [{"name": "a", "altruism": -1}]}, "pools[0].altruism: -1 is too small"),
        (
            {
                "pools": [
                    {"name": "a", "minShare": {"amounts": {"cpu": 5}}, "maxShare": {"amounts": {"cpu": 4}}}
                ]
            },
            "pools[0].minShare: it has a minimum of 5 cpu, but a maximum of 4 cpu",
        ),
        ({"pools": [by_node(min_share={"value": "x", "amounts": {}})]}, "minShare.byNode[0].key: is missing"),
        ({"pools": [by_node(min_share={"key": "m", "amounts": {}})]}, "minShare.byNode[0].value: is missing"),
        (
            {"pools": [by_node(min_share={"key": "m", "value": "x"})]},
            "minShare.byNode[0].amounts: is missing",
        ),
        (
            {"pools": [by_node(max_share={"key": "", "value": "x", "amounts": {}})]},
            "pools[0].maxShare.byNode[0].key: is empty; write a label of nodes",
        ),
        (
            {"pools": [by_node(max_share=kind("x" * 64, 1))]},
            "pools[0].maxShare.byNode[0].value: has 64 characters, more than 63",
        ),
        (
            {"pools": [by_node(max_share={**kind("x", 1), "amounts": {"gpu": 1}})]},
            "pools[0].maxShare.byNode[0].amounts.gpu: is not a resource that a scheduler counts",
        ),
        (
            {"pools": [{"name": "a", "maxShare": {"byNode": [kind("x", 1), kind("y", 1), kind("x", 2)]}}]},
            "pools[0].maxShare.byNode[2]: model=x is stated already by byNode[0]",
        ),
        (
            {"pools": [{"name": "a", "maxShare": {"byNode": [kind(f"x{at}", 1) for at in range(17)]}}]},
            "pools[0].maxShare.byNode: states 17 kinds of nodes, more than 16",
        ),
        (
            {"pools": [by_node(min_share=kind("x", 5), max_share=kind("x", 4))]},
            "pools[0].minShare: it has a minimum of 5 cpu on nodes with model=x, but a maximum of 4 cpu",
        ),
        ({"pools": [{"name": "a", "parent": "c"}, {"name": "b"}]}, "pools[0].parent: 'c' is not a pool"),
        (
            {"pools": [{"name": "a", "parent": "b"}, {"name": "b", "parent": "a"}]},
            "pools[0].parent: does not lead to the root",
        ),
        ({"pools": [{"name": "a"}]}, "workload.poisson.classes[1].pool: 'b' is not a pool; known are: a"),
        ({"events": [{"at": 1, "pool": {"weight": 1}}]}, "events[0].pool.name: is missing"),
        ({"events": [{"at": 1, "removePool": "c"}]}, "events[0].removePool: 'c' is not a pool"),
        ({"events": [{"at": 1, "removePool": "a", "pool": {"name": "a"}}]}, "events[0].pool: give either"),
        ({"events": [{"removePool": "a"}]}, "events[0].at: is missing"),
    ],
)
def test_wrong_fields_are_named(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingsError) as raised:
        scenario(**document(**shared(**fields)))
    assert words in str(raised.value)
