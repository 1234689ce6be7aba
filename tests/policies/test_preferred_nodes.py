"""`place: phoenix`: a pod waits for preferred nodes only for what its work gains there, as learned."""

from __future__ import annotations

from typing import Any

import pytest

from builders import ExactSpeeds, make_engine, make_node, make_task
from eclectus.model.objects import Preference, Requirement, Task, Term
from eclectus.policies.place.phoenix import MAX_WAITING, ScarceNodesLast
from worlds import World

SSD = Preference(1, Term((Requirement("disk", "In", ("ssd",)),)))


def world(gain: float, slots: int = 1, plain: int = 9) -> World:
    """One node with the disk that pods prefer, on which work takes 10 s, and others where it takes longer."""
    speeds = ExactSpeeds({"ssd": 0.1}, otherwise=0.1 / gain)
    nodes = [make_node("ssd", cpu=slots, labels={"disk": "ssd"})]
    nodes += [make_node(f"p{at}", cpu=1) for at in range(plain)]
    return World(make_engine(ScarceNodesLast(), speeds), *nodes)


def fans(count: int, **fields: Any) -> list[Task]:
    return [make_task(f"fan{at}", preferences=(SSD,), **fields) for at in range(count)]


def waiting(found: World) -> list[str]:
    return [name for name, task in found.tasks.items() if not task.node]


@pytest.mark.parametrize("gain", [0.5, 1.0, 1.9])
def test_without_a_sufficient_gain_a_pod_starts_elsewhere_at_once(gain: float) -> None:
    found = world(gain)
    found.add(*fans(3))
    assert found.node_of("fan0") == "ssd"
    assert waiting(found) == []


def test_pods_wait_while_they_end_sooner_on_the_preferred_node() -> None:
    found = world(gain=4.0)
    found.add(*fans(6))
    # 40 s elsewhere: the next pods would end there after 20 and 30 s, the third after 40.
    assert waiting(found) == ["fan1", "fan2"]
    found.end("fan0", 10)
    assert found.node_of("fan1") == "ssd"
    assert waiting(found) == ["fan2"]


def test_the_wait_ends_when_what_is_gained_is_used_up() -> None:
    found = world(gain=2.5)
    found.add(*fans(2))
    assert waiting(found) == ["fan1"]
    found.sleep(14.9)
    assert waiting(found) == ["fan1"]
    found.sleep(0.2)
    assert found.node_of("fan1")[0] == "p"


def test_it_says_what_it_waits_for() -> None:
    found = world(gain=4.0)
    found.add(*fans(2))
    found.sleep(2)
    assert found.messages("fan1") == [
        (
            "WaitingForNode",
            "waiting for a node that meets its preferences: expected to end sooner there than on any of "
            "9 nodes with room",
        )
    ]


@pytest.mark.parametrize("fields", [{"long_running": True}, {"node_selector": (("disk", "hdd"),)}])
def test_services_do_not_wait_and_no_hard_constraint_is_given_up(fields: dict[str, Any]) -> None:
    found = world(gain=4.0)
    found.add(*fans(3, **fields))
    assert {found.node_of(f"fan{at}")[:1] for at in range(1, 3)} == (
        {"p"} if "long_running" in fields else {""}
    )


def test_of_very_many_pods_the_others_start_elsewhere() -> None:
    found = world(gain=1000.0, plain=200)
    found.add(*fans(150))
    assert len(waiting(found)) == MAX_WAITING
    assert found.faults == []
