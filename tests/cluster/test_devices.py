"""Shared devices: a share fits on one device, whole devices are unused, and what was taken is given back."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from builders import make_cluster, make_engine, make_node, make_task
from eclectus.cluster.devices import Devices
from eclectus.cluster.nodes import Cluster
from eclectus.framework import Action, Bind, Place, Unschedulable, View
from eclectus.model.objects import Amounts, Grant, Node, Spec, Task
from eclectus.policies.place.allocation import LeastAllocated
from eclectus.policies.place.power_of_two import Uniform
from eclectus.policies.relieve.preemption import Preemption
from worlds import World

FREE = st.lists(st.integers(0, 10).map(lambda tenth: 100 * tenth), max_size=4)
MILLI = st.integers(1, 35).map(lambda tenths: 100 * tenths)


def sharing(name: str, milli: int, devices: tuple[int, ...] = (), **fields: Any) -> Task:
    """A pod that requests `milli` thousandths of devices and nothing else, and has these."""
    return make_task(name, spec=Spec(requests=(("gpu-milli", milli),)), grant=Grant(devices), **fields)


def node_with(name: str, milli: int) -> Node:
    node = make_node(name)
    return replace(node, allocatable=tuple(sorted((*node.allocatable, ("gpu-milli", milli)))))


def filled(free: list[int]) -> Devices:
    devices = Devices(1)
    devices._free = np.array([free], dtype=float)
    return devices


def packs(free: list[int], milli: int) -> bool:
    """By brute force, every device for every part: whole devices of 1000, then the rest."""
    parts = [1000] * (milli // 1000) + ([milli % 1000] if milli % 1000 else [])
    return any(
        all(left >= part for left, part in zip(order, parts, strict=False))
        for order in permutations(free)
        if len(order) >= len(parts)
    )


def asked(milli: int) -> Amounts:
    return (("gpu-milli", milli),)


@given(FREE, MILLI)
def test_there_is_room_if_and_only_if_some_devices_admit_the_task(free: list[int], milli: int) -> None:
    devices = filled(free)
    room = bool(devices.has_room(np.array([0]), asked(milli))[0])
    assert room == packs(free, milli)
    for rng in (None, Random(1)):
        assert devices.admits(0, asked(milli), devices.choose(0, asked(milli), rng)) == room


def test_a_share_takes_the_fullest_device_with_room_and_whole_devices_are_unused_ones() -> None:
    devices = filled([1000, 200, 600, 1000])
    assert devices.choose(0, asked(300)).devices == (2,)
    assert devices.choose(0, asked(200)).devices == (1,)
    assert devices.choose(0, asked(700)).devices == (0,)
    assert devices.choose(0, asked(2000)).devices == (0, 3)
    assert devices.choose(0, asked(1500)).devices == (0, 2)


def test_a_random_choice_takes_any_device_with_room() -> None:
    devices, rng = filled([1000, 200, 600, 1000]), Random(1)
    assert {devices.choose(0, asked(300), rng).devices for _ in range(50)} == {(0,), (2,), (3,)}
    assert {devices.choose(0, asked(1000), rng).devices for _ in range(50)} == {(0,), (3,)}


@pytest.mark.parametrize("devices", [(), (1,), (0, 0), (0, 1), (0, 4), (-1, 2), (0, 2, 3)])
def test_devices_that_do_not_fit_are_not_admitted(devices: tuple[int, ...]) -> None:
    free_devices = filled([1000, 200, 600, 1000])
    assert free_devices.admits(0, asked(1500), Grant((0, 2)))
    assert not free_devices.admits(0, asked(1500), Grant(devices))


def test_a_task_gives_back_the_devices_it_took() -> None:
    cluster = make_cluster(node_with("n", 2000))
    cluster.hold(0, sharing("named", 400, devices=(1,)))
    cluster.hold(0, sharing("unnamed", 300))
    assert free(cluster) == [1000, 300]
    cluster.hold(0, sharing("large", 600))
    cluster.release(0, sharing("unnamed", 300))
    assert free(cluster) == [400, 600]
    cluster.release(0, sharing("named", 400, devices=(1,)))
    assert free(cluster) == [400, 1000]


def test_tasks_without_devices_change_nothing() -> None:
    cluster = make_cluster(node_with("n", 1000))
    cluster.hold(0, make_task("plain"))
    cluster.release(0, make_task("plain"))
    assert free(cluster) == [1000]
    assert make_cluster(make_node("n")).devices is None


def test_a_node_can_lose_devices_and_get_them_back_while_they_are_held() -> None:
    cluster = make_cluster(node_with("n", 2500))
    assert free(cluster) == [1000, 1000, 500]
    cluster.hold(0, sharing("a", 1200))
    cluster.set_node(make_node("n"))
    assert free(cluster) == [-1000, 0, -200]
    cluster.set_node(node_with("n", 2500))
    assert free(cluster) == [0, 1000, 300]
    cluster.release(0, sharing("a", 1200))
    cluster.drop_node("n")
    assert free(cluster) == [0, 0, 0]


def test_what_the_api_server_reports_counts_even_without_room() -> None:
    cluster = make_cluster(node_with("n", 1000))
    for name in ("a", "b"):
        cluster.hold(0, sharing(name, 700))
    cluster.hold(0, sharing("far", 100, devices=(2,)))
    cluster.hold(0, sharing("many", 4000))
    assert free(cluster) == [-1400, -1000, -1100]
    for name, milli in (("a", 700), ("b", 700), ("far", 100), ("many", 4000)):
        cluster.release(0, sharing(name, milli))
    assert free(cluster) == [1000, 0, 0]


def test_new_rows_have_devices_too() -> None:
    cluster = Cluster(rows=1)
    for at in range(3):
        cluster.set_node(node_with(f"n{at}", 1000 * at))
    assert cluster.devices is not None
    assert cluster.devices.free[:3].tolist() == [[0, 0], [1000, 0], [1000, 1000]]


def free(cluster: Cluster) -> list[float]:
    assert cluster.devices is not None
    return cluster.devices.free[0].tolist()


# -- in the engine -------------------------------------------------------------------------------


class Named(Place):
    """Places every task on row 0, with the grant of the devices given."""

    def __init__(self, *devices: int) -> None:
        self.grant: Any = Grant(devices)

    def place(self, view: View, turns: Iterator[Task]) -> Iterator[Action]:
        for task in turns:
            fits = view.task_class(task).fits_now_count
            yield Bind(task, 0, self.grant) if fits else Unschedulable(task)


def test_shares_fill_a_device_before_they_use_another() -> None:
    world = World(make_engine(Uniform(devices="fullest")), node_with("n", 3000))
    world.add(*(sharing(f"t{at}", 400) for at in range(3)), sharing("w", 1000))
    assert [bind.grant.devices for bind in world.binds] == [(0,), (0,), (1,), (2,)]


def test_random_placement_draws_devices() -> None:
    world = World(make_engine(Uniform()), node_with("n", 4000))
    world.add(*(sharing(f"t{at}", 100) for at in range(12)))
    drawn = [bind.grant.devices for bind in world.binds]
    assert set(drawn) == {(0,), (1,), (2,), (3,)}
    assert free(world.engine._state.cluster) == [1000 - 100 * drawn.count((at,)) for at in range(4)]


def test_a_share_waits_although_the_total_is_enough_and_its_message_says_so() -> None:
    world = World(make_engine(Named()), node_with("n", 2000))
    world.add(sharing("a", 600), sharing("b", 600), sharing("c", 500))
    world.sleep(2)
    assert world.node_of("c") == ""
    reason = "1 node(s) had enough gpu-milli in all, but not on single devices"
    assert world.messages("c")[-1] == ("Unschedulable", f"0/1 nodes are available: {reason}.")
    world.end("b")
    assert world.node_of("c") == "n"
    assert world.binds[-1].grant.devices == (1,)


def test_the_device_that_the_policy_chose_is_given_back() -> None:
    world = World(make_engine(Named(2)), node_with("n", 3000))
    world.add(sharing("a", 600), sharing("b", 300))
    assert [bind.grant.devices for bind in world.binds] == [(2,), (2,)]
    assert free(world.engine._state.cluster) == [1000, 1000, 100]
    world.end("a")
    assert free(world.engine._state.cluster) == [1000, 1000, 700]


def test_a_refused_bind_gives_its_devices_back() -> None:
    world = World(make_engine(Named(1)), node_with("n", 2000))
    world.refuse = lambda bind: "no"
    world.add(sharing("a", 600))
    assert free(world.engine._state.cluster) == [1000, 1000]


@pytest.mark.parametrize("devices", [(1,), (7,), (0, 1)])
def test_a_policy_that_chooses_devices_without_room_is_a_fault(devices: tuple[int, ...]) -> None:
    world = World(make_engine(Named(*devices)), node_with("n", 2000))
    world.put(replace(sharing("held", 900, devices=(1,)), node="n", profile="other"))
    world.add(sharing("a", 600))
    assert world.placed() == {"held": "n"}
    assert "have no room for the 600 of default/a" in world.faults[0].message


NO_DEVICES = [None, [0], ("0",), 0, np.array([0, 1])]


@pytest.mark.parametrize(
    ("grant", "words"),
    [
        *((Grant(devices), f"{devices!r} are no devices for default/a on node n") for devices in NO_DEVICES),
        *((grant, f"{grant!r} is no grant for default/a on node n") for grant in (None, (0,))),
    ],
)
def test_a_value_that_is_no_grant_of_devices_is_a_fault(grant: Any, words: str) -> None:
    policy = Named()
    policy.grant = grant
    world = World(make_engine(policy), node_with("n", 2000))
    world.add(sharing("a", 600))
    assert world.faults[0].message == words


def test_a_policy_must_not_give_devices_to_a_task_that_requests_none() -> None:
    world = World(make_engine(Named(0)), make_node("n"))
    world.add(make_task("a"))
    assert "have no room" in world.faults[0].message


def test_after_a_restart_the_devices_that_pods_name_are_counted() -> None:
    world = World(make_engine(Named()), node_with("n", 2000))
    pods = [sharing("a", 300, devices=(1,)), sharing("b", 700, devices=(1,)), sharing("c", 100)]
    for task in pods:
        world.put(replace(task, node="n"))
    assert free(world.engine._state.cluster) == [900, 0]
    world.put(replace(sharing("a", 300, devices=(0,)), node="n"))
    assert free(world.engine._state.cluster) == [600, 300]


def test_devices_come_back_with_a_node_that_was_gone() -> None:
    world = World(make_engine(Named(1)), node_with("n", 2000))
    world.add(sharing("a", 600))
    world.drop_node("n")
    world.put_node(node_with("n", 2000))
    assert free(world.engine._state.cluster) == [1000, 400]


def test_a_nominated_pod_gets_the_device_of_its_victim() -> None:
    """Its room is held before any device has room, so which device it will be is not known then."""
    world = World(make_engine(LeastAllocated(), relieve=Preemption()), node_with("n", 2000))
    world.put(replace(sharing("low", 600, devices=(0,)), node="n"))
    world.put(replace(sharing("other", 600, devices=(1,), priority=9), node="n"))
    world.add(sharing("high", 1000, priority=5))
    assert (world.victims(), world.binds[-1].grant.devices) == (["low"], (0,))
    assert free(world.engine._state.cluster) == [0, 400]
