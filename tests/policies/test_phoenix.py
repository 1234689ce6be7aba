"""`place: phoenix`: scarce nodes are left to those who need them, and how long long pods wait for others."""

from __future__ import annotations

from typing import Any

import pytest

from builders import make_engine, make_node, make_task
from eclectus.model.objects import Preference, Requirement, Task, Term
from eclectus.policies.place.phoenix import ScarceNodesLast
from worlds import World

ARM = (("arch", "arm"),)
LONG, SHORT = 60.0, 5.0  # estimates, seconds


def world(arm: int = 2, plain: int = 2, place: ScarceNodesLast | None = None, **profile: Any) -> World:
    """Nodes of two cores each; the arm nodes, a0 and so on, come first."""
    nodes = [make_node(f"a{at}", cpu=2, labels=dict(ARM)) for at in range(arm)]
    nodes += [make_node(f"p{at}", cpu=2) for at in range(plain)]
    return World(make_engine(place or ScarceNodesLast(), **profile), *nodes)


def pods(name: str, count: int, **fields: Any) -> list[Task]:
    return [make_task(f"{name}{at}", **{"estimate": SHORT, **fields}) for at in range(count)]


def scarce_arm(**settings: Any) -> World:
    """Three of four arm slots are held by pods that need them, and prices know it."""
    found = world(**settings)
    found.add(*pods("need", 3, node_selector=ARM))
    found.step(after=10.0)
    return found


def add_long(found: World, name: str = "long", **fields: Any) -> None:
    found.add(make_task(name, estimate=LONG, created=found.now, **fields))


def test_without_constraints_pods_go_to_the_emptiest_node() -> None:
    found = world(arm=0, plain=3)
    found.add(*pods("t", 3))
    assert sorted(found.placed().values()) == ["p0", "p1", "p2"]


def test_flexible_pods_leave_scarce_nodes_to_those_that_need_them() -> None:
    found = scarce_arm()
    for at in range(4):
        found.add(make_task(f"any{at}"))
    assert {found.node_of(f"any{at}")[0] for at in range(4)} == {"p"}


def test_flexible_pods_take_scarce_nodes_where_no_other_has_room() -> None:
    found = scarce_arm()
    found.add(*pods("any", 5))
    assert sorted(found.node_of(f"any{at}")[0] for at in range(5)) == ["a", "p", "p", "p", "p"]


def test_pods_go_where_their_preferences_are_met_however_dear_that_is() -> None:
    found = scarce_arm()
    prefers = Preference(1, Term((Requirement("arch", "In", ("arm",)),)))
    found.add(make_task("fan", preferences=(prefers,), estimate=LONG))
    assert found.node_of("fan")[0] == "a"


# -- long pods -------------------------------------------------------------------------------------


def full_but_scarce(**settings: Any) -> World:
    """One arm slot is free, and no other."""
    found = scarce_arm(**settings)
    found.add(*pods("any", 4, created=found.now))
    return found


def test_a_long_pod_waits_for_a_cheap_node() -> None:
    found = full_but_scarce()
    add_long(found)
    assert found.node_of("long") == ""
    found.end("any0")
    assert found.node_of("long")[0] == "p"


def test_no_longer_than_it_is_expected_to_run() -> None:
    found = full_but_scarce()
    add_long(found)
    found.sleep(LONG - 1.0)
    assert found.node_of("long") == ""
    found.sleep(1.0)
    assert found.node_of("long")[0] == "a"


def test_it_says_what_it_waits_for() -> None:
    found = full_but_scarce()
    add_long(found)
    found.sleep(5.0)
    assert found.messages("long") == [
        ("WaitingForNode", "waiting for a node other than the 1 with room, which others need")
    ]


def test_nothing_is_held_for_it_meanwhile() -> None:
    found = full_but_scarce()
    add_long(found)
    assert not found.engine._state.cluster.tentative.any()
    found.add(make_task("needs", node_selector=ARM))
    assert found.node_of("needs")[0] == "a"


@pytest.mark.parametrize(
    "fields",
    [
        {"estimate": SHORT},
        {"estimate": None},
        {"node_selector": ARM},
    ],
)
def test_other_pods_do_not_wait(fields: dict[str, Any]) -> None:
    found = full_but_scarce()
    found.add(make_task("other", **{"estimate": LONG, "created": found.now, **fields}))
    assert found.node_of("other")[0] == "a"


def test_a_pod_that_has_waited_for_so_long_already_does_not_wait() -> None:
    found = full_but_scarce()
    found.add(make_task("old", estimate=LONG, created=found.now - LONG))
    assert found.node_of("old")[0] == "a"


def test_long_pods_do_not_wait_where_less_than_half_of_their_nodes_are_cheap() -> None:
    found = world(arm=3)
    found.add(*pods("need", 5, node_selector=ARM))
    found.step(after=10.0)
    found.add(*pods("any", 4, created=found.now))
    add_long(found)
    assert found.node_of("long")[0] == "a"


def test_nor_where_prices_hardly_differ() -> None:
    found = world(arm=20, plain=20)
    found.add(*pods("need", 5, node_selector=ARM))
    found.step(after=10.0)
    found.add(*pods("any", 40, created=found.now))
    add_long(found)
    assert found.node_of("long")[0] == "a"


def test_nor_where_it_is_switched_off() -> None:
    found = full_but_scarce(place=ScarceNodesLast(spare_dear=False))
    add_long(found)
    assert found.node_of("long")[0] == "a"


def test_the_wait_limit_ends_such_waits_too() -> None:
    found = full_but_scarce(wait_limit=60.0)
    found.add(make_task("endless", estimate=1e6, created=found.now))
    found.sleep(59.0)
    assert found.node_of("endless")[0] == "a"
    assert found.engine.queue_counts().counters.placed_by_limit == 1


def test_of_very_many_long_pods_the_others_wait_behind_the_first() -> None:
    found = full_but_scarce()
    found.add(*pods("long", 200, estimate=LONG, created=found.now))
    assert sum(not found.node_of(f"long{at}") for at in range(200)) >= 199
    assert found.faults == []
