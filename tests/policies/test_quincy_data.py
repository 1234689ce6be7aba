"""Quincy's data costs: what moving data costs, which arcs that makes, and where pods go by them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from builders import make_cluster, make_engine, make_node, make_task
from eclectus.explain.pod import explain_pod
from eclectus.model.explanation import FlowArc, FlowPart
from eclectus.model.objects import Input
from eclectus.policies.quincy import draft, groups
from eclectus.policies.quincy.costs.quincy import NEAR_MOST, STAYING_LEAST, Prices, Transfers, TransferTimes
from eclectus.policies.quincy.place import Quincy
from flow_answers import answer
from worlds import World, numbered

GB = 10**9
RACK = "rack"


def node(name: str, rack: str = "", **fields: Any) -> Any:
    return make_node(name, labels=((RACK, rack),) if rack else (), **{"cpu": 1, **fields})


FOUR = (node("M0", "R0"), node("M1", "R0"), node("M2", "R1"), node("M3", "R1"))
# 10 GB, all on M1, of which M3 has 4.
ONE_COPY = (Input("a", 6 * GB, ("M1",)), Input("b", 4 * GB, ("M1", "M3")))
# 12 GB: 8 on M1, 4 on M2, and M3 has 6 of those of M1.
TWO_PARTS = (Input("a", 6 * GB, ("M1", "M3")), Input("b", 2 * GB, ("M1",)), Input("c", 4 * GB, ("M2",)))


def world(*nodes: Any, answers: bool = True, **settings: Any) -> World:
    made = World(make_engine(Quincy(**{"costs": "quincy", "rack": RACK, **settings})), *(nodes or FOUR))
    made.answers_solves = answers
    return made


def transfers(*nodes: Any, in_rack: float = 1.0, across: float = 2.0) -> Transfers:
    class View:
        cluster = make_cluster(*(nodes or FOUR))

    return Transfers(View(), Prices(RACK, in_rack, across, 0.5))  # type: ignore[arg-type]


def seconds(costs: Any) -> list[float]:
    return [cost / 1000 for cost in costs]


# -- golden cases --------------------------------------------------------------------------------------


def test_q1_costs_of_nodes_racks_and_the_cluster() -> None:
    found = transfers()
    assert seconds(found.costs(ONE_COPY, np.arange(4))) == [10, 0, 16, 12]
    near = found.nearness(ONE_COPY)
    assert (near.elsewhere, near.rows, near.costs) == (16_000, (1, 3), (0, 12_000))
    assert near.racks == ((0, 10_000), (1, 16_000))
    assert found.worst(ONE_COPY) == 20_000  # as if all came from other racks


@pytest.mark.parametrize(("full", "wanted"), [("", "M1"), ("M1", "M0"), ("M1 M0", "M3")])
def test_q1_the_nearest_node_with_room(full: str, wanted: str) -> None:
    made = world()
    made.add(*(make_task(f"on-{each}", profile="other", node=each) for each in full.split()))
    made.add(make_task("reads", inputs=ONE_COPY))
    made.sleep(60.0)  # until to wait costs more than to read from there
    assert made.node_of("reads") == wanted


def test_q2_it_waits_until_waiting_costs_more() -> None:
    made = world()
    made.add(*(make_task(f"on-{each}", profile="other", node=each) for each in ("M0", "M1", "M3")))
    made.add(make_task("reads", inputs=ONE_COPY))
    waiting = explain_pod(made.engine, "default", "reads", made.now).waiting
    assert waiting is not None
    assert "nearer to its data: that costs 100, and the cheapest node 16000" in waiting.reason
    made.sleep(30.0)
    assert made.node_of("reads") == ""  # 15 < 16
    assert part(made, "reads").why == "no node with room costs less than to wait"
    made.sleep(4.0)
    assert made.node_of("reads") == "M2"  # 17 > 16


def test_q21_distances_decide() -> None:
    found = transfers(node("M0", "R0"), node("M1", "R0"), node("M2", "R0"), node("M3", "R1"), across=3.0)
    assert seconds(found.costs(TWO_PARTS, np.arange(4))) == [12, 4, 8, 18]
    near = found.nearness(TWO_PARTS)
    assert (near.elsewhere, dict(zip(near.rows, near.costs, strict=True))) == (
        18_000,
        {1: 4_000, 2: 8_000, 3: 18_000},
    )
    assert near.racks == ((0, 12_000),)  # a rack of one node is that node


def test_q21_m3_alone_is_taken_after_45_seconds() -> None:
    nodes = [*FOUR[:2], node("M2", "R0"), node("M3", "R1")]
    made = world(*nodes, across_seconds=3.0, wait_weight=0.4)
    made.add(*(make_task(f"on-{each}", profile="other", node=each) for each in ("M0", "M1", "M2")))
    made.add(make_task("reads", inputs=TWO_PARTS))
    made.sleep(44.0)
    assert made.node_of("reads") == ""
    made.sleep(3.0)
    assert made.node_of("reads") == "M3"


def test_q8_a_pod_that_loses_less_leaves_the_node() -> None:
    """Both have their data on M1."""
    made = world()
    waited: dict[str, Any] = {"created": -60.0}  # else one of them would wait for M1
    first = make_task("first", inputs=(Input("a", 2 * GB, ("M1",)),), **waited)
    made.add(first, make_task("second", inputs=(Input("b", 20 * GB, ("M1",)),), **waited))
    assert made.placed() == {"first": "M0", "second": "M1"}


# -- what counts as near -------------------------------------------------------------------------------


def test_the_worst_node_of_a_rack_is_one_with_the_least_of_the_data() -> None:
    found = transfers(*FOUR[:2])  # both have some, and there is no other rack
    inputs = (Input("a", 6 * GB, ("M0",)), Input("b", 4 * GB, ("M1",)))
    near = found.nearness(inputs)
    assert (near.elsewhere, near.racks) == (6_000, ((0, 6_000),))


def test_nodes_with_less_than_a_tenth_are_as_any_other() -> None:
    inputs = (Input("a", 91 * GB, ("M1",)), Input("b", 9 * GB, ("M3",)))
    near = transfers().nearness(inputs)
    assert (near.rows, [rack for rack, _ in near.racks]) == ((1,), [0])
    more = (Input("a", 90 * GB, ("M1",)), Input("b", 10 * GB, ("M3",)))
    assert transfers().nearness(more).rows == (1, 3)


def test_nodes_without_the_label_are_racks_by_themselves() -> None:
    found = transfers(node("M0"), node("M1"), node("M2", "R0"), node("M3", "R0"))
    inputs = (Input("a", GB, ("M0", "M2")),)
    assert seconds(found.costs(inputs, np.arange(4))) == [0, 2, 0, 1]
    assert [cost for _, cost in found.nearness(inputs).racks] == [1_000]


def test_data_that_no_known_node_has_cost_nothing() -> None:
    found = transfers()
    unknown = Input("far", 100 * GB, ("gone",))
    assert found.nearness((unknown,)).elsewhere == found.worst((unknown,)) == 0
    assert found.nearness((*ONE_COPY, unknown)) == found.nearness(ONE_COPY)
    made = world()
    made.add(make_task("reads", inputs=(unknown,)))
    assert made.node_of("reads")


def test_a_group_has_few_arcs_however_many_nodes_have_its_data() -> None:
    many = [node(f"n{at}", f"r{at % 40}") for at in range(80)]
    found = transfers(*many)
    inputs = [
        Input(f"i{at}", GB, tuple(f"n{each}" for each in range(at * 5, at * 5 + 16))) for at in range(8)
    ]
    near = found.nearness(inputs)
    assert len(near.rows) == len(near.racks) == NEAR_MOST
    assert [*near.costs] == sorted(near.costs)


def test_any_number_of_bytes_is_within_bounds() -> None:
    huge = [Input(f"i{at}", 2**60, ("M1",)) for at in range(16)]
    made = world()
    small = make_task("small", inputs=ONE_COPY, created=-60.0)
    made.add(small, make_task("reads", inputs=tuple(huge), created=-60.0))
    assert made.node_of("reads") == "M1"
    assert made.faults == []


# -- rounds --------------------------------------------------------------------------------------------


def test_without_data_any_node_is_taken_at_once_the_emptiest_first() -> None:
    made = world(*(node(f"n{at}", cpu=9) for at in range(3)))
    made.add(*numbered(6))
    assert sorted(made.placed().values()) == ["n0", "n0", "n1", "n1", "n2", "n2"]


@pytest.mark.parametrize("costs", ["rosella", "load-spreading", "network"])
def test_other_costs_ask_the_same_with_data(costs: Any) -> None:
    asked = []
    for inputs in ((), ONE_COPY):
        made = world(costs=costs, answers=False)
        made.add(make_task("a", inputs=inputs), make_task("b"))
        asked.append(made.solves[-1].digest)
    assert asked[0] == asked[1]


def test_pods_with_the_same_data_are_one_group() -> None:
    made = world(node("M0", "R0", cpu=9), node("M1", "R0", cpu=9), answers=False)
    made.add(*numbered(5, "a", inputs=ONE_COPY), *numbered(4, "b", inputs=ONE_COPY[:1]), *numbered(3, "c"))
    assert sorted(part(made, name).pods for name in ("a0", "b0", "c0")) == [3, 4, 5]
    assert part(made, "a0").groups == 3


def test_a_pod_of_higher_priority_gets_the_node_also_if_it_loses_less_elsewhere() -> None:
    made = world(node("M0", "R0"), node("M2", "R1"))
    made.add(make_task("other", profile="other", node="M2"))
    low = make_task("low", inputs=(Input("a", 900 * GB, ("M0",)),))
    made.add(low, make_task("high", priority=5, inputs=(Input("b", 900 * GB, ("M2",)),)))
    assert made.placed() == {"other": "M2", "high": "M0"}


def test_without_an_answer_pods_go_where_their_data_are() -> None:
    made = world(answers=False)
    made.add(make_task("a", inputs=ONE_COPY), make_task("b", inputs=ONE_COPY))
    made.sleep(5.1)
    assert made.placed() == {"a": "M1", "b": "M0"}


def test_of_very_many_nodes_those_near_the_data_have_arcs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draft, "ARCS_MOST", 4)
    monkeypatch.setattr(draft, "NODES_LEAST", 3)
    made = world(*(node(f"n{at}", f"r{at // 2}") for at in range(20)))
    made.add(
        make_task("a", inputs=(Input("a", GB, ("n19",)),)), make_task("b", inputs=(Input("b", GB, ("n17",)),))
    )
    assert made.placed() == {"a": "n19", "b": "n17"}


# -- bounds --------------------------------------------------------------------------------------------


def own_data(count: int, namespace: str = "default", prefix: str = "t") -> list[Any]:
    """Pods of which each reads data of its own, all on M1."""
    return [
        replace(make_task(f"{prefix}{at}", inputs=(Input("a", GB + at, ("M1",)),)), namespace=namespace)
        for at in range(count)
    ]


def test_more_groups_than_a_round_may_have_cost_the_same_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "DATA_MOST", 3)
    made = world(answers=False)
    made.add(*own_data(10))
    found = [part(made, f"t{at}") for at in range(10)]
    assert {each.groups for each in found} == {3 + 1}
    assert [each.is_beyond for each in found] == [False] * 3 + [True] * 7
    beyond = found[-1]
    assert (beyond.pods, beyond.data) == (7, None)
    assert {arc.cost for arc in beyond.nodes} == {2000}
    assert all(arc.across is None for arc in beyond.nodes)


def test_each_namespace_has_a_part_of_the_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "DATA_MOST", 4)
    made = world(answers=False)
    made.add(*own_data(10), *own_data(2, "other", "late"))
    made_of = {
        name: explain_pod(made.engine, space, name, made.now).flow
        for space, name in (("other", "late0"), ("other", "late1"), ("default", "t1"), ("default", "t2"))
    }
    assert [each is not None and each.is_beyond for each in made_of.values()] == [False, False, False, True]


def test_the_number_of_arcs_is_bounded_whatever_pods_read() -> None:
    counts = []
    for pods in (groups.DATA_MOST, groups.DATA_MOST + 900):
        made = world(answers=False)
        made.add(*own_data(pods))
        counts.append(made.solves[-1].arcs)
    assert counts[1] - counts[0] <= 2 * 2  # of a group or two without arcs by their data: to stay, and to X


# -- settings, explanation -----------------------------------------------------------------------------


def test_a_rack_may_be_further_than_the_rest() -> None:
    found = transfers(in_rack=3.0, across=2.0)
    assert seconds(found.costs(ONE_COPY, np.arange(4))) == [30, 0, 24, 12]
    assert found.nearness(ONE_COPY).elsewhere == found.worst(ONE_COPY) == 30_000


def test_to_wait_costs_more_than_the_pods_of_any_node() -> None:
    """Otherwise pods whose data cost nothing would wait beside room."""
    made = world(node("M1", "R0", cpu=200, pods=200))
    made.add(*numbered(150))
    made.add(*numbered(5, "more"))
    made.sleep(1.0)  # to the next round
    assert len(made.placed()) == 155
    assert TransferTimes(Prices(RACK, 1, 2, 0.5)).waiting(None, None, 0.0) == STAYING_LEAST  # type: ignore[arg-type]


def part(made: World, name: str) -> FlowPart:
    found = explain_pod(made.engine, "default", name, made.now).flow
    assert found is not None
    return found


def test_it_is_explained_what_would_move_and_why_it_is_this_node() -> None:
    made = world(answers=False)
    made.add(make_task("taken", profile="other", node="M1"))
    made.add(make_task("reads", inputs=ONE_COPY, created=-60.0))
    before = part(made, "reads")
    assert (before.data, before.why) == (10 * GB, "")
    made.step(answer(made.engine, made.solves[-1]))
    made.settle()
    found = part(made, "reads")
    assert made.node_of("reads") == "M0"
    assert found.why == "of the nodes with room none costs less"
    assert found.nodes == (
        FlowArc("M0", 10_000, 1, 1, 10 * GB, 0),
        FlowArc("M3", 12_000, 1, 0, 0, 6 * GB),
        FlowArc("M2", 16_000, 1, 0, 4 * GB, 6 * GB),
    )


def test_it_is_explained_that_others_lose_more() -> None:
    made = world()
    first = make_task("first", inputs=(Input("a", 2 * GB, ("M1",)),), created=-60.0)
    made.add(first, make_task("second", inputs=(Input("b", 20 * GB, ("M1",)),), created=-60.0))
    assert part(made, "first").why.startswith("cheaper nodes were given to pods that lose more")


def test_it_is_explained_that_to_wait_costs_less() -> None:
    made = world(FOUR[0], FOUR[2])
    made.add(
        make_task("reads", inputs=(Input("a", 2 * GB, ("M0",)),)), make_task("x", profile="other", node="M0")
    )
    assert part(made, "reads").why == "no node with room costs less than to wait"
