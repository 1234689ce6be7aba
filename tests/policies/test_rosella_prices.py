"""Re-planning leaves scarce nodes to those who need them, as far as that is worth the time."""

from __future__ import annotations

from typing import Any

import pytest

from builders import ExactSpeeds, make_engine, make_node, make_task
from eclectus.model.objects import Preference, Requirement, Term
from eclectus.policies.rosella import Rosella
from eclectus.policies.rosella.costs import MAX_SURCHARGE, scarcity_factor
from worlds import World

ARM = (("arch", "arm"),)
PREFERS_ARM = (Preference(1, Term((Requirement("arch", "In", ("arm",)),))),)


def scarce_arm(need: int = 3, **speeds: float) -> World:
    """Two arm nodes, a0 and a1, of whose four cores so many are needed; p0 and p1 are plain."""
    nodes = [make_node(f"a{at}", cpu=2, labels=dict(ARM)) for at in range(2)]
    nodes += [make_node(f"p{at}", cpu=2) for at in range(2)]
    found = World(make_engine(Rosella(), ExactSpeeds(speeds, otherwise=1.0)), *nodes)
    found.add(*(make_task(f"need{at}", node_selector=ARM) for at in range(need)))
    found.step(after=10.0)
    return found


def test_flexible_pods_leave_scarce_nodes_to_those_that_need_them() -> None:
    found = scarce_arm()
    for at in range(4):
        found.add(make_task(f"any{at}"))
    assert {found.node_of(f"any{at}")[:1] for at in range(4)} == {"p"}


@pytest.mark.parametrize(("speed", "taken"), [(1.25, "p"), (4.0, "a")])
def test_speed_and_price_are_weighed(speed: float, taken: str) -> None:
    """The price is .75 here and 0 there, so a task counts as running 1.75 times as long."""
    found = scarce_arm(a0=speed, a1=speed)
    found.add(make_task("any"))
    assert found.node_of("any")[0] == taken


def test_the_price_that_a_task_pays_everywhere_changes_nothing() -> None:
    found = scarce_arm(need=2)
    found.add(make_task("needs", node_selector=ARM))
    assert found.node_of("needs")[0] == "a"
    assert factors(found, node_selector=ARM) is None


def test_preferring_pods_are_not_pushed_away_by_what_they_ask_for_themselves() -> None:
    found = scarce_arm()
    found.add(make_task("fan", preferences=PREFERS_ARM))
    assert found.node_of("fan")[0] == "a"
    assert factors(found, preferences=PREFERS_ARM) is None


def test_what_others_state_makes_no_node_worse_than_bounded() -> None:
    keys = [f"k{at}" for at in range(9)]
    found = scarce_arm()
    for at in range(2):
        found.put_node(make_node(f"a{at}", cpu=2, labels=dict(ARM) | dict.fromkeys(keys, "v")))
    found.add(*(make_task(f"liar-{key}", cpu=1000, node_selector=((key, "v"),)) for key in keys))
    for _ in range(9):
        found.step(after=60.0)
    factor = factors(found)
    assert factor is not None
    assert factor.max() == 1.0 + MAX_SURCHARGE


def test_new_prices_are_a_reason_to_ask_about_deferred_pods_again() -> None:
    found, policy = scarce_arm(), Rosella(theta=4)
    before = policy.epoch(found.engine._state.view)
    found.add(*(make_task(f"more{at}", node_selector=ARM) for at in range(9)))
    assert policy.epoch(found.engine._state.view) == before
    found.step(after=60.0)
    found.step()
    assert policy.epoch(found.engine._state.view) > before


def factors(world: World, **fields: Any) -> Any:
    """By row, for a class of tasks; None for 1 everywhere."""
    view = world.engine._state.view
    return scarcity_factor(view, view.task_class(make_task("asks", **fields)))
