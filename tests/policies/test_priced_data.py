"""Priced locality: a slow node with the data, a fast one without, or a wait, by the same arithmetic."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from builders import ExactSpeeds, make_engine, make_node, make_task
from calls import calls_of
from eclectus.explain.pod import explain_pod
from eclectus.maths.data_gain import LEAST_SAMPLES, DataGain
from eclectus.model.errors import SettingsError
from eclectus.model.events import TaskGone
from eclectus.model.objects import Input, Task
from eclectus.policies.rosella import Rosella, RosellaLearn
from eclectus.policies.rosella.locality import DataLevel, DataPrice, DataPrices, data_price, learned_times
from eclectus.policies.rosella.replan import DEFERRED_BY_DATA
from worlds import World

GB = 10**9


def reads(name: str, *nodes: str, size: int = GB, **fields: Any) -> Task:
    return make_task(name, inputs=(Input("data", size, nodes),), **fields)


def known(world: World, times: float, seconds: float = 10.0, samples: int = 1000) -> World:
    """Let it be known that tasks of this class take so many times as long away from their data."""
    gains, task = world.engine._state.held.gains, make_task()
    for is_far, each in ((False, seconds), (True, seconds * times)):
        for _ in range(samples):
            gains.end(task.namespace, task.workload, each, is_far=is_far)
    return world


def world(times: float | None, cpu: float = 1, *, settings: Any = {"theta": 1}, **rates: float) -> World:  # noqa: B006
    """Nodes of these rates, in tasks a second, with so many slots each."""
    engine = make_engine(Rosella(**settings), ExactSpeeds(dict(rates)))
    made = World(engine, *(make_node(name, cpu=cpu) for name in rates))
    return made if times is None else known(made, times)


def others(*nodes: str, cpu: float = 1) -> list[Task]:
    """Pods that fill these nodes."""
    return [make_task(f"on-{node}", node=node, cpu=cpu, phase="Running", profile="other") for node in nodes]


# -- which node ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("times", "node"), [(None, "fast"), (1.0, "fast"), (2.0, "fast"), (8.0, "slow")])
def test_a_slow_node_with_the_data_or_a_fast_one_without(times: float | None, node: str) -> None:
    """4 times as fast: as good as the data where these make it 4 times as long."""
    made = world(times, slow=0.25, fast=1.0)
    made.add(reads("a", "slow"))
    assert made.node_of("a") == node


def test_of_equal_nodes_one_with_the_data_though_nothing_is_known() -> None:
    made = world(None, cpu=8, **{f"n{at}": 1.0 for at in range(6)})
    made.add(reads("a", "n4"), reads("b", "n4"), reads("c", "n2", "n5"))
    assert made.node_of("a") == made.node_of("b") == "n4"
    assert made.node_of("c") in {"n2", "n5"}


def test_it_waits_for_the_data_where_that_is_sooner() -> None:
    """One slot, 10 s a task: a wait of 10 s is worth it where a task takes more than 20 s elsewhere."""
    for times, node in ((1.5, "far"), (3.0, "")):
        made = world(times, near=0.1, far=0.1)
        made.add(*others("near"))
        made.add(reads("a", "near"))
        assert made.node_of("a") == node


def test_it_waits_no_longer_than_it_would_run_elsewhere() -> None:
    made = world(3.0, near=0.1, far=0.1)
    made.add(*others("near"))
    made.add(reads("a", "near"))
    made.sleep(29.0)
    assert not made.node_of("a")
    made.sleep(2.0)
    assert made.node_of("a") == "far"


def test_of_busy_nodes_it_waits_for_the_one_that_is_best_for_it() -> None:
    """A fast node without the data counts as slower there too."""
    for times, waits_for in ((1.2, "fast"), (9.0, "near")):
        made = world(times, near=0.2, fast=1.0, slow=0.001)
        made.add(*others("near", "fast"))
        made.add(reads("a", "near"))
        assert f"waiting for node {waits_for}:" in waits(made, "a")


def test_a_node_that_may_not_run_it_is_none_with_its_data() -> None:
    engine = make_engine(Rosella(theta=1), ExactSpeeds({}))
    made = known(World(engine, make_node("n1"), make_node("n2", labels={"disk": "b"})), 9.0)
    made.add(reads("a", "n1", node_selector=(("disk", "b"),)))
    assert made.node_of("a") == "n2"


def test_data_on_nodes_that_do_not_exist_mean_nothing() -> None:
    made = world(9.0, n1=1.0, n2=4.0)
    made.add(reads("a", "gone"))
    assert made.node_of("a") == "n2"


# -- by a bandwidth ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "node"), [(GB // 2, "fast"), (2 * GB, "slow")])
def test_bytes_over_a_stated_bandwidth_are_seconds(size: int, node: str) -> None:
    """1 s there and 2 s here: a GB takes a second."""
    made = world(None, settings={"theta": 1, "data_bandwidth": 1000.0}, slow=0.5, fast=1.0)
    made.add(reads("a", "slow", size=size))
    assert made.node_of("a") == node


def seconds_of(price: DataPrice) -> dict[int, float]:
    """By row of the nodes near the data, what it takes to read the rest there."""
    return {
        row: seconds
        for each in price.near
        for row, seconds in zip(each.rows.tolist(), each.seconds_at.tolist(), strict=True)
    }


def test_a_node_with_a_part_of_the_bytes_reads_the_rest() -> None:
    made = world(None, settings={"data_bandwidth": 100.0}, n0=1.0, n1=1.0, n2=1.0)
    task = make_task("a", inputs=(Input("a", 3 * GB, ("n0", "n1")), Input("b", GB, ("n1", "no", "n1"))))
    price = data_price(made.engine._state.view, task, DataPrices(bandwidth=100.0))
    assert price is not None
    rows = made.engine._state.cluster.rows
    assert seconds_of(price) == {rows["n0"]: 10.0, rows["n1"]: 0.0}
    assert (price.times, price.seconds) == (1.0, 40.0)


def test_a_second_of_reading_weighs_what_it_costs_others() -> None:
    price = data_price(world(2.0, n0=1.0).engine._state.view, reads("a", "n0"), DataPrices())
    assert price is not None
    assert price.elsewhere(10.0) == pytest.approx(20.0, rel=0.05)
    assert replace(price, weight=3.0).elsewhere(10.0) == pytest.approx(40.0, rel=0.05)


def test_a_service_has_no_price() -> None:
    view = world(9.0, n0=1.0).engine._state.view
    assert data_price(view, reads("a", "n0", long_running=True), DataPrices()) is None


# -- what is learned -----------------------------------------------------------------------------------


def gain(times: float, samples: int) -> DataGain:
    found = DataGain()
    for _ in range(samples):
        found.near.add(10.0)
        found.far.add(10.0 * times)
    return found


def test_a_ratio_counts_once_enough_have_ended_and_from_1_05_on() -> None:
    assert (
        learned_times(None) == learned_times(gain(3.0, LEAST_SAMPLES - 1)) == [pytest.approx(1.0, abs=0.01)]
    )
    assert learned_times(gain(1.04, 1000)) == learned_times(gain(0.5, 1000)) == learned_times(None)
    assert learned_times(gain(3.0, 10_000)) == [pytest.approx(3.0, rel=0.06)]


def test_times_are_what_is_most_likely_where_far_tasks_take_longer() -> None:
    assert gain(3.0, LEAST_SAMPLES - 1).times() == gain(1.0, 100).times() == gain(0.5, 100).times() == 1.0
    assert gain(3.0, 100).times() == pytest.approx(3.0)


def run(made: World, name: str, node: str, data: str, seconds: float) -> None:
    """A pod with its data on a node runs on another one, or the same."""
    made.add(replace(reads(name, data), node=node, phase="Running"))
    made.step(after=1.0)
    made.end(name, seconds)


def test_a_node_is_not_slow_because_its_tasks_have_their_data_elsewhere() -> None:
    """Two equal nodes: eight of ten tasks of one are far, two of ten of the other, and take twice as long."""
    made = World(make_engine(Rosella(), RosellaLearn()), make_node("n0"), make_node("n1"))
    for at in range(150):
        for node, other, few in (("n0", "n1", 8), ("n1", "n0", 2)):
            is_far = at % 10 < few
            run(made, f"{node}-{at}", node, other if is_far else node, 20.0 if is_far else 10.0)
    rate = made.engine._state.view.learn.speeds(make_task().workload).rate
    assert rate[0] == pytest.approx(rate[1], rel=0.1)
    found = made.engine._state.held.gains.of("default", make_task().workload)
    assert found is not None
    assert found.times() == pytest.approx(2.0, rel=0.15)  # the first samples were taken for slow nodes


def test_data_do_not_save_what_a_faster_node_does() -> None:
    """Near ones on a slow node for 10 s, far ones on one of 4 times the speed for 5: data save half."""
    made = world(None, slow=0.1, fast=0.4)
    for at in range(2 * LEAST_SAMPLES):
        run(made, f"near-{at}", "slow", "slow", 10.0)
        run(made, f"far-{at}", "fast", "slow", 5.0)
    found = made.engine._state.held.gains.of("default", make_task().workload)
    assert found is not None
    assert found.times() == pytest.approx(2.0)


def test_a_blind_one_learns_nothing_of_data() -> None:
    made = world(None, settings={"price_data": False}, n0=1.0, n1=1.0)
    run(made, "a", "n0", "n1", 10.0)
    assert made.engine._state.held.gains.of("default", make_task().workload) is None


def test_the_learner_sees_how_long_a_far_task_would_have_run_at_its_data() -> None:
    made = world(4.0, n0=1.0, n1=1.0)
    run(made, "far", "n0", "n1", 40.0)
    run(made, "near", "n1", "n1", 10.0)
    assert [each.seconds for each in made.engine._state.learn.seen] == pytest.approx([10.0, 10.0])  # type: ignore[attr-defined]


# -- levels: racks -------------------------------------------------------------------------------------

RACKS = {"data_levels": (DataLevel("rack"),)}


def racks(times: dict[str, float] | None, *, rates: float = 0.1, **settings: Any) -> World:
    """n0 and n1 in rack a, n2 and n3 in rack b, a slot each; pods take so many times as long by level."""
    engine = make_engine(
        Rosella(**{"theta": 1, **RACKS, **settings}), ExactSpeeds(dict.fromkeys(NODES, rates))
    )
    made = World(engine, *(make_node(f"n{at}", cpu=1, labels={"rack": "aabb"[at]}) for at in range(4)))
    gains, task = made.engine._state.held.gains, make_task()
    for level, factor in (times or {}).items():
        for _ in range(1000):
            far = level != "node"
            at = {"is_far": far, "level": level if far else None}
            gains.end(task.namespace, task.workload, 10.0 * factor, **at)  # type: ignore[arg-type]
    return made


NODES = [f"n{at}" for at in range(4)]


def test_of_two_free_nodes_the_one_in_the_rack_of_the_data() -> None:
    for times in (None, {"node": 1.0, "rack": 1.2, "any": 3.0}):
        made = racks(times)
        made.add(*others("n2", "n0"))
        made.add(reads("a", "n2"))
        assert made.node_of("a") == "n3"


def test_it_waits_for_its_data_beside_far_room_and_not_beside_room_in_its_rack() -> None:
    """10 s a task: a wait of 10 s is worth it against 40 s elsewhere, and not against 15 s in the rack."""
    for free, node in (("n1", "n1"), ("n3", "")):
        made = racks({"node": 1.0, "rack": 1.5, "any": 4.0})
        made.add(*others(*(each for each in NODES if each != free)))
        made.add(reads("a", "n0"))
        assert made.node_of("a") == node


def test_room_in_a_rack_gets_the_task_whose_data_are_there() -> None:
    made = racks({"node": 1.0, "rack": 1.2, "any": 9.0})
    made.add(*others(*NODES))
    made.add(*(reads(f"t{at}", "n0", created=float(at)) for at in range(5)), reads("last", "n2", created=9.0))
    made.delete("on-n3")
    assert made.node_of("last") == "n3"


def test_levels_are_learned_apart_and_far_runs_teach_speeds_by_their_level() -> None:
    made = racks({"node": 1.0, "rack": 2.0, "any": 4.0})
    for name, node, seconds in (("near", "n0", 10.0), ("rack", "n1", 20.0), ("far", "n2", 40.0)):
        run(made, name, node, "n0", seconds)
    seen = [each.seconds for each in made.engine._state.learn.seen]  # type: ignore[attr-defined]
    assert seen == pytest.approx([10.0, 10.0, 10.0], rel=0.01)
    found = made.engine._state.held.gains.of("default", make_task().workload)
    assert found is not None
    assert {name: each.samples for name, each in found.levels.items()} == {"rack": 1001, "any": 1001}
    assert found.far.samples == 2002


def test_a_level_of_which_too_little_is_known_counts_as_all_that_are_far_and_none_as_nearer() -> None:
    def learned(**times: float) -> list[float]:
        task = make_task()
        found = racks(times).engine._state.held.gains.of(task.namespace, task.workload)
        return learned_times(found, ("rack",))

    assert learned(node=1.0, rack=1.2, any=3.0) == pytest.approx([1.2, 3.0], rel=0.06)
    assert learned(node=1.0, any=3.0) == pytest.approx([3.0, 3.0], rel=0.06)
    assert learned(node=1.0, rack=3.0, any=1.2) == pytest.approx([3.0, 3.0], rel=0.06)
    assert learned(node=1.0) == pytest.approx([1.0, 1.0], abs=0.01)
    nearer, farther = learned(node=1.0)
    assert 1.0 < nearer < farther


def test_bytes_of_the_rack_come_at_its_bandwidth() -> None:
    """3 GB on n0 and 1 GB on n2: n1 reads 3 GB at a GB a second and 1 GB at a tenth of that."""
    prices = DataPrices((DataLevel("rack", 1000.0),), 100.0)
    task = make_task("a", inputs=(Input("a", 3 * GB, ("n0",)), Input("b", GB, ("n2",))))
    view = racks(None).engine._state.view
    price = data_price(view, task, prices)
    assert price is not None
    rows = view.cluster.rows
    assert seconds_of(price) == pytest.approx(
        {rows["n0"]: 10.0, rows["n1"]: 13.0, rows["n2"]: 30.0, rows["n3"]: 31.0}
    )
    assert price.seconds == pytest.approx(40.0)
    assert sorted(price.near[0].rows.tolist()) == sorted([rows["n0"], rows["n2"]])


def test_a_node_without_the_label_is_in_no_rack() -> None:
    engine = make_engine(Rosella(theta=1, **RACKS), ExactSpeeds({}))
    made = World(engine, make_node("n0"), make_node("n1"), make_node("n2", labels={"rack": "b"}))
    price = data_price(made.engine._state.view, reads("a", "n0"), DataPrices((DataLevel("rack"),)))
    assert price is not None
    assert [each.rows.tolist() for each in price.near] == [[0], []]


def test_levels_say_what_they_cost() -> None:
    made = racks({"node": 1.0, "rack": 1.5, "any": 4.0})
    made.add(*others("n0", "n1", "n2"))
    made.add(reads("a", "n0"))
    assert "its data are on n0, and with the rack of one of them 1.49 times as long" in waits(made, "a")


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"data_levels": (DataLevel("r"), DataLevel("r"))}, "dataLevels: name a label twice"),
        ({"data_levels": (DataLevel("r", 9.0),)}, "so dataBandwidth must be stated too"),
        ({"data_levels": (DataLevel("r"),), "data_bandwidth": 1.0}, "need a bandwidth each"),
        ({"data_levels": (DataLevel("r", 1.0),), "data_bandwidth": 2.0}, "the greatest bandwidth first"),
        ({"data_levels": (DataLevel("r"),), "price_data": False}, "dataLevels: needs priceData"),
    ],
)
def test_levels_that_cannot_be_are_refused(settings: Any, problem: str) -> None:
    with pytest.raises(SettingsError, match=problem):
        Rosella(**settings)


# -- many tasks of one class ---------------------------------------------------------------------------


def test_a_node_that_gets_room_gets_the_task_that_has_its_data_there() -> None:
    made = world(4.0, n0=0.1, n1=0.1, n2=0.1)
    made.add(*others("n0", "n1", "n2"))
    made.add(*(reads(f"t{at}", "n0", created=float(at)) for at in range(5)), reads("last", "n2", created=9.0))
    made.delete("on-n2")
    assert made.placed() | {"last": "n2"} == made.placed()


def cost_of_a_step(tasks: int) -> int:
    """Of one that starts the last task of so many, all of one class and with data of their own."""
    made = world(4.0, n0=0.1, n1=0.1, n2=0.1)
    made.add(*others("n0", "n1", "n2"))
    made.add(*(reads(f"t{at}", "n0", size=GB + at, created=float(at)) for at in range(tasks)))
    made.add(reads("last", "n2", created=1e6))
    event = TaskGone(made.tasks.pop("on-n2").uid)
    assert len(made.engine._state.class_queues._classes) == 1
    cost = calls_of(lambda: made.step(event))
    assert [bind.name for bind in made.binds] == ["last"]
    return cost


def test_ten_times_as_many_tasks_cost_a_step_nothing_more() -> None:
    few, many = cost_of_a_step(500), cost_of_a_step(5_000)
    assert many <= few * 1.2


def test_a_task_with_room_at_its_data_takes_it_if_enough_others_wait_for_better_nodes() -> None:
    """Of a ninth of the speed: of few tasks none takes it, of many the one that has its data there."""
    for tasks, node in ((2, ""), (300, "slow")):
        made = world(2.0, fast=1.0, slow=1 / 9)
        made.add(*others("fast", "slow"))
        made.add(*(reads(f"t{at}", "fast", created=float(at)) for at in range(tasks)))
        made.add(reads("last", "slow", created=1e6))
        made.delete("on-slow")
        assert made.node_of("last") == node


def test_a_cycle_defers_a_bounded_number_and_none_is_forgotten() -> None:
    made = world(9.0, near=0.1, far=0.1, large=0.1)
    made.put_node(make_node("large", cpu=100))
    made.add(*others("near"))
    made.add(*(reads(f"t{at}", "near", created=float(at)) for at in range(100)))
    assert 0 < len(made.engine._state.deferrals.waits) <= DEFERRED_BY_DATA
    made.sleep(400.0)
    assert len(made.placed()) == 101


def test_data_are_of_the_task_and_never_of_its_class() -> None:
    made = world(4.0, n0=1.0, n1=1.0)
    view = made.engine._state.view
    assert view.task_class(reads("a", "n0")) is view.task_class(reads("b", "n1"))


# -- beside it -----------------------------------------------------------------------------------------


def waits(made: World, name: str) -> str:
    found = explain_pod(made.engine, "default", name, made.now).waiting
    assert found is not None
    return found.reason


def test_explain_says_what_is_priced() -> None:
    made = world(3.0, near=0.1, far=0.1)
    made.add(*others("near"))
    made.add(reads("a", "near"))
    assert waits(made, "a").endswith("; its data are on near, and elsewhere it takes 3 times as long")


def test_explain_says_what_a_bandwidth_makes_of_it() -> None:
    made = world(None, settings={"theta": 1, "data_bandwidth": 10.0}, near=0.1, far=0.1)
    made.add(*others("near"))
    made.add(reads("a", "near"))
    assert waits(made, "a").endswith("; its data are on near, and elsewhere it takes 100 s longer")


@pytest.mark.parametrize("settings", [{"view": "sample"}, {"replan": False}, {"price_data": False}])
def test_a_bandwidth_that_prices_nothing_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match="needs priceData and re-planning"):
        Rosella(data_bandwidth=100.0, **settings)


def test_only_re_planning_prices_data() -> None:
    assert Rosella().traits.prices_data
    assert not Rosella(price_data=False).traits.prices_data
    assert not Rosella(view="sample").traits.prices_data
