"""Shared devices: a share fits one device, whole ones are untouched, and what was taken is given back."""

from __future__ import annotations

from itertools import permutations
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from builders import make_cluster, make_node, make_task
from eclectus.core.cluster import Cluster
from eclectus.core.devices import Devices
from eclectus.core.model import Node, Spec, Task

FREE = st.lists(st.integers(0, 10).map(lambda tenth: 100 * tenth), max_size=4)
MILLI = st.integers(1, 35).map(lambda tenths: 100 * tenths)


def sharing(name: str, milli: int, **fields: object) -> Task:
    """A pod that asks for so many thousandths of devices and nothing else."""
    return make_task(name, spec=Spec(requests=(("gpu-milli", milli),)), **fields)  # type: ignore[arg-type]


def equipped(name: str, milli: int) -> Node:
    node = make_node(name)
    return replace(node, allocatable=tuple(sorted((*node.allocatable, ("gpu-milli", milli)))))


def filled(free: list[int]) -> Devices:
    devices = Devices(1)
    devices.free = np.array([free], dtype=float)
    return devices


def packs(free: list[int], milli: int) -> bool:
    """Tried out, every device for every part: whole ones of 1000, then the rest."""
    parts = [1000] * (milli // 1000) + ([milli % 1000] if milli % 1000 else [])
    return any(
        all(left >= part for left, part in zip(order, parts, strict=False))
        for order in permutations(free)
        if len(order) >= len(parts)
    )


@given(FREE, MILLI)
def test_there_is_room_just_when_some_devices_admit_the_task(free: list[int], milli: int) -> None:
    devices = filled(free)
    room = bool(devices.room(np.array([0]), milli)[0])
    assert room == packs(free, milli)
    for rng in (None, Random(1)):
        assert devices.admits(0, milli, devices.choose(0, milli, rng)) == room


def test_a_share_takes_the_fullest_device_that_has_room_and_whole_ones_the_untouched() -> None:
    devices = filled([1000, 200, 600, 1000])
    assert devices.choose(0, 300) == (2,)
    assert devices.choose(0, 200) == (1,)
    assert devices.choose(0, 700) == (0,)
    assert devices.choose(0, 2000) == (0, 3)
    assert devices.choose(0, 1500) == (0, 2)


def test_chance_takes_any_device_that_has_room() -> None:
    devices, rng = filled([1000, 200, 600, 1000]), Random(1)
    assert {devices.choose(0, 300, rng) for _ in range(50)} == {(0,), (2,), (3,)}
    assert {devices.choose(0, 1000, rng) for _ in range(50)} == {(0,), (3,)}


@pytest.mark.parametrize("devices", [(), (1,), (0, 0), (0, 1), (0, 4), (-1, 2), (0, 2, 3)])
def test_devices_that_do_not_fit_are_not_admitted(devices: tuple[int, ...]) -> None:
    page = filled([1000, 200, 600, 1000])
    assert page.admits(0, 1500, (0, 2))
    assert not page.admits(0, 1500, devices)


def test_a_task_gives_back_the_very_devices_it_took() -> None:
    cluster = make_cluster(equipped("n", 2000))
    cluster.hold(0, sharing("named", 400, devices=(1,)))
    cluster.hold(0, sharing("unnamed", 300))
    assert free(cluster) == [1000, 300]
    cluster.hold(0, sharing("large", 600))
    cluster.release(0, sharing("unnamed", 300))
    assert free(cluster) == [400, 600]
    cluster.release(0, sharing("named", 400, devices=(1,)))
    assert free(cluster) == [400, 1000]


def test_tasks_without_devices_leave_them_alone() -> None:
    cluster = make_cluster(equipped("n", 1000))
    cluster.hold(0, make_task("plain"))
    cluster.release(0, make_task("plain"))
    assert free(cluster) == [1000]
    assert make_cluster(make_node("n")).devices is None


def test_a_node_may_lose_its_devices_and_get_them_back_while_they_are_held() -> None:
    cluster = make_cluster(equipped("n", 2500))
    assert free(cluster) == [1000, 1000, 500]
    cluster.hold(0, sharing("a", 1200))
    cluster.put_node(make_node("n"))
    assert free(cluster) == [-1000, 0, -200]
    cluster.put_node(equipped("n", 2500))
    assert free(cluster) == [0, 1000, 300]
    cluster.release(0, sharing("a", 1200))
    cluster.drop_node("n")
    assert free(cluster) == [0, 0, 0]


def test_what_the_api_server_says_is_counted_even_where_there_is_no_room() -> None:
    cluster = make_cluster(equipped("n", 1000))
    for name in ("a", "b"):
        cluster.hold(0, sharing(name, 700))
    cluster.hold(0, sharing("far", 100, devices=(2,)))
    cluster.hold(0, sharing("many", 4000))
    assert free(cluster) == [-1400, -1000, -1100]
    for name, milli in (("a", 700), ("b", 700), ("far", 100), ("many", 4000)):
        cluster.release(0, sharing(name, milli))
    assert free(cluster) == [1000, 0, 0]


def test_rows_that_come_later_have_devices_too() -> None:
    cluster = Cluster(rows=1)
    for at in range(3):
        cluster.put_node(equipped(f"n{at}", 1000 * at))
    assert cluster.devices is not None
    assert cluster.devices.free[:3].tolist() == [[0, 0], [1000, 0], [1000, 1000]]


def free(cluster: Cluster) -> list[float]:
    assert cluster.devices is not None
    return cluster.devices.free[0].tolist()
