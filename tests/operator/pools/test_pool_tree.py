"""What is wrong with Pools that only all of them together show, and when a condition is written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eclectus.api.common import MESSAGE_CHARACTERS, Condition
from eclectus.api.pool import MAX_LEVELS
from eclectus.model.pool import NodeAmounts, Pool, PoolAmounts
from eclectus_operator.pools.pool_tree import ACCEPTED, Finding, findings, updated


def pool(name: str, parent: str = "", *, least: object = None, most: object = None) -> Pool:
    """`least`, `most`: thousandths of cpu, or a whole PoolAmounts."""
    return Pool(name, parent, min_share=amounts(least), max_share=amounts(most))


def amounts(given: object) -> PoolAmounts:
    if isinstance(given, PoolAmounts):
        return given
    return PoolAmounts((("cpu", given),)) if isinstance(given, int) else PoolAmounts()


def found(*pools: Pool, **unread: str) -> dict[str, Finding]:
    return findings(pools, unread)


def reasons(*pools: Pool, **unread: str) -> dict[str, str]:
    return {name: each.reason for name, each in found(*pools, **unread).items()}


def test_pools_with_a_way_to_the_top_are_accepted() -> None:
    assert set(found(pool("a", least=2000), pool("b", "a", least=2000), pool("c", "b")).values()) == {
        ACCEPTED
    }


IDLE = "; it does not count until then"


def test_pools_in_a_circle_and_those_below_it_are_distinguished() -> None:
    seen = found(pool("a", "c"), pool("b", "a"), pool("c", "b"), pool("below", "b"), pool("beside"))
    assert {name for name, each in seen.items() if each.reason == "Cycle"} == {"a", "b", "c", "below"}
    assert seen["a"].message == f"its parents lead in a circle, a -> c -> b -> a{IDLE}"
    assert seen["below"].message == f"the parents of its ancestors lead in a circle, b -> a -> c -> b{IDLE}"
    assert seen["beside"] == ACCEPTED


def test_its_own_parent_is_a_circle() -> None:
    assert reasons(pool("a", "a")) == {"a": "Cycle"}


def test_a_long_circle_is_not_named_whole() -> None:
    message = found(*(pool(f"p{at}", f"p{(at + 1) % 20}") for at in range(20)))["p0"].message
    assert "p9 -> ... -> p0" in message
    assert len(message) < 200


def test_a_parent_that_does_not_exist_is_named_to_all_below() -> None:
    seen = found(pool("a", "gone"), pool("b", "a"))
    assert {each.reason for each in seen.values()} == {"NoSuchParent"}
    assert seen["a"].message == f"its parent is gone, but there is no Pool gone{IDLE}"
    assert seen["b"].message == f"its ancestor a has the parent gone, but there is no Pool gone{IDLE}"


def test_a_parent_that_does_not_count_is_none() -> None:
    seen = found(pool("a", least=2000, most=1000), pool("b", "a"), pool("d", "c"), c="spec.weight: is odd")
    assert {name: each.reason for name, each in seen.items()} == {
        "a": "MinimumAboveMaximum",
        "b": "NoSuchParent",
        "c": "InvalidSpec",
        "d": "NoSuchParent",
    }
    assert seen["a"].message == "it has a minimum of 2 cpu, but a maximum of 1 cpu"
    assert "the Pool a does not count: it has a minimum of 2 cpu" in seen["b"].message
    assert (seen["c"].message, seen["d"].message.count("spec.weight: is odd")) == ("spec.weight: is odd", 1)


@pytest.mark.parametrize("levels", [MAX_LEVELS, MAX_LEVELS + 1, 10 * MAX_LEVELS])
def test_a_pool_below_too_many_others_does_not_count(levels: int) -> None:
    seen = reasons(*(pool(f"p{at}", f"p{at - 1}" if at else "") for at in range(levels)))
    assert [name for name, reason in seen.items() if reason == "TooDeep"] == [
        f"p{at}" for at in range(MAX_LEVELS, levels)
    ]


def test_two_pools_are_at_the_top_whatever_parent_they_name() -> None:
    assert reasons(pool("default", "gone"), pool("a", "default")) == {"default": "Accepted", "a": "Accepted"}


RESEARCH = pool("research", least=100_000)


def test_minima_that_exceed_their_parents_are_said_of_those_that_have_one() -> None:
    children = [
        pool("a", "research", least=70_000),
        pool("b", "research", least=50_000),
        pool("c", "research"),
    ]
    seen = found(RESEARCH, *children)
    text = "the minima of the children of research add up to 120 cpu, research has a minimum of 100 cpu"
    assert seen["a"] == seen["b"] == Finding("MinimaExceedParent", text)
    assert seen["c"] == seen["research"] == ACCEPTED


def test_minima_that_equal_their_parents_are_accepted() -> None:
    children = [pool("a", "research", least=70_000), pool("b", "research", least=30_000)]
    assert set(found(RESEARCH, *children).values()) == {ACCEPTED}


def percent(number: float) -> PoolAmounts:
    return PoolAmounts(percent=number)


def test_a_percentage_is_of_what_the_parent_may_hold() -> None:
    lab = pool("lab", least=50_000, most=100_000)
    seen = found(lab, pool("a", "lab", least=percent(40)), pool("b", "lab", least=11_000))
    text = "the minima of the children of lab add up to 51 cpu, lab has a minimum of 50 cpu"
    assert seen["a"] == seen["b"] == Finding("MinimaExceedParent", text)
    assert set(found(lab, pool("a", "lab", least=percent(40)), pool("b", "lab", least=10_000)).values()) == {
        ACCEPTED
    }


def test_percentages_of_more_than_all_are_found_at_the_top_too() -> None:
    top = found(pool("a", least=percent(60)), pool("b", least=percent(60)), pool("c"))
    text = "the minima of the pools at the top add up to 120 percent of the cluster"
    assert top == {"a": Finding("MinimaExceedParent", text), "b": top["a"], "c": ACCEPTED}
    half = pool("lab", most=percent(50))
    below = found(half, pool("a", "lab", least=percent(60)), pool("b", "lab", least=percent(60)))
    text = "the minima of the children of lab add up to 60 percent of the cluster, lab may hold 50 percent of"
    assert below["a"].message == f"{text} the cluster"


def test_a_named_resource_is_compared_beside_all_others() -> None:
    lab = pool("lab", least=PoolAmounts((("cpu", 10_000),), 50.0))
    few = PoolAmounts((("cpu", 1000),), 60.0)
    message = found(lab, pool("a", "lab", least=few))["a"].message
    assert message.startswith(
        "the minima of the children of lab add up to 60 percent of the cluster, lab has a"
    )
    many = PoolAmounts((("cpu", 11_000),), 40.0)
    text = "the minima of the children of lab add up to 11 cpu, lab has a minimum of 10 cpu"
    assert found(lab, pool("a", "lab", least=many))["a"].message == text


def test_amounts_and_parts_of_a_cluster_of_unknown_size_are_not_compared() -> None:
    lab = pool("lab", least=percent(10))
    assert set(found(lab, pool("a", "lab", least=10**12)).values()) == {ACCEPTED}
    fixed = pool("lab", least=1000)
    assert set(found(fixed, pool("a", "lab", least=percent(100))).values()) == {ACCEPTED}


def test_thirds_are_no_more_than_all() -> None:
    assert set(found(*(pool(name, least=percent(100 / 3)) for name in "abc")).values()) == {ACCEPTED}


def test_a_maximum_above_bounds_minima_where_the_parent_has_none() -> None:
    seen = found(pool("lab", most=1000), pool("a", "lab", least=600), pool("b", "lab", least=600))
    assert seen["a"].message.endswith("add up to 1.2 cpu, lab may hold 1 cpu")
    seen = found(pool("lab", most=1000), pool("in", "lab"), pool("a", "in", least=1200))
    assert seen["a"].message.endswith("add up to 1.2 cpu, in may hold 1 cpu")


def test_without_any_bound_above_nothing_is_exceeded() -> None:
    assert set(found(pool("lab"), pool("a", "lab", least=10**12)).values()) == {ACCEPTED}


NAMES = [f"p{at}" for at in range(8)]


@given(st.dictionaries(st.sampled_from(NAMES), st.sampled_from(["", "gone", *NAMES])))
def test_exactly_those_that_do_not_reach_the_top_are_lost(parents: dict[str, str]) -> None:
    def is_lost(name: str) -> bool:
        for _ in NAMES:
            parent = parents[name]
            if not parent:
                return False
            if parent not in parents:
                return True
            name = parent
        return True

    seen = reasons(*(pool(name, parent) for name, parent in parents.items()))
    lost = {name for name, reason in seen.items() if reason in ("Cycle", "NoSuchParent")}
    assert lost == {name for name in parents if is_lost(name)}


NOW = "2026-03-01T12:00:00Z"
LATER = "2026-03-01T12:01:00Z"


def test_a_condition_is_written_once() -> None:
    first = updated((), ACCEPTED, 1, NOW)
    assert first == (Condition("Ready", "True", "Accepted", NOW, ACCEPTED.message, 1),)
    assert updated(first, ACCEPTED, 1, LATER) is None


def test_the_moment_is_that_of_the_last_change_of_the_status() -> None:
    first = updated((), Finding("Cycle", "a -> b"), 1, NOW)
    assert first is not None
    other = updated(first, Finding("Cycle", "a -> c"), 1, LATER)
    assert other is not None
    assert (other[0].message, other[0].last_transition_time) == ("a -> c", NOW)
    ready = updated(other, ACCEPTED, 2, LATER)
    assert ready is not None
    assert ready[0].last_transition_time == LATER


def test_conditions_of_others_stay_and_messages_are_bounded() -> None:
    others = (Condition("Audited", "True", "ByHand", NOW), Condition("Zoned", "True", "ByHand", NOW))
    found = updated(others, Finding("InvalidSpec", "x" * 10**5), 1, NOW)
    assert found is not None
    assert [each.type for each in found] == ["Audited", "Ready", "Zoned"]
    assert len(found[1].message) == MESSAGE_CHARACTERS


def on(*kinds: tuple[str, int]) -> PoolAmounts:
    """Thousandths of cpu by the value of a label."""
    return PoolAmounts(by_node=tuple(NodeAmounts("gpu", value, (("cpu", cpu),)) for value, cpu in kinds))


def test_minima_by_kind_of_node_are_compared_with_maxima_of_that_kind() -> None:
    seen = found(
        pool("a", least=on(("a100", 2000), ("h100", 9000)), most=on(("a100", 1000))),
        pool("b", least=on(("a100", 1000)), most=on(("a100", 1000), ("h100", 0))),
    )
    text = "it has a minimum of 2 cpu on nodes with gpu=a100, but a maximum of 1 cpu"
    assert seen == {"a": Finding("MinimumAboveMaximum", text), "b": ACCEPTED}


def test_minima_by_kind_of_node_are_compared_with_what_the_parent_has_of_that_kind() -> None:
    seen = found(
        pool("top", most=on(("a100", 3000), ("h100", 9000))),
        pool("mid", "top", least=on(("h100", 1000))),
        pool("a", "mid", least=on(("a100", 2000))),
        pool("b", "mid", least=on(("a100", 2000), ("h100", 2000))),
        pool("c", "mid", least=on(("other", 9000))),
    )
    both = "the minima of the children of mid on nodes with gpu=a100 add up to 4 cpu, mid may hold 3 cpu"
    more = (
        "the minima of the children of mid on nodes with gpu=h100 add up to 2 cpu, mid has a minimum of 1 cpu"
    )
    assert seen["a"] == Finding("MinimaExceedParent", both)
    assert seen["b"] == Finding("MinimaExceedParent", f"{both}; {more}")
    assert {seen[name] for name in ("top", "mid", "c")} == {ACCEPTED}
