"""Scaled best fit and dot product, each checked by its definition."""

from __future__ import annotations

import pytest

from builders import make_engine, make_node, make_task
from eclectus.framework import Place
from eclectus.model.objects import Node, Task
from eclectus.policies.place.scaled_fit import DotProduct, ScaledBestFit
from worlds import World


def chosen(policy: Place, task: Task, *nodes: Node) -> str:
    world = World(make_engine(policy), *nodes)
    world.add(task)
    return world.node_of(task.name)


def test_best_fit_takes_the_node_with_the_least_of_cpu_and_gpus_left() -> None:
    nodes = [
        make_node("cores", cpu=96, devices=2),  # 0.5 * 95 / 128 + 0.5 * 1 / 8 are left
        make_node("gpus", cpu=16, devices=8),  # 0.5 * 15 / 128 + 0.5 * 7 / 8
        make_node("both", cpu=32, devices=4),  # 0.5 * 31 / 128 + 0.5 * 3 / 8
    ]
    assert chosen(ScaledBestFit(), make_task("t", device_milli=1000), *nodes) == "both"
    assert chosen(ScaledBestFit(largest_devices=80), make_task("t", device_milli=1000), *nodes) == "gpus"
    assert chosen(ScaledBestFit(largest_cpu=1280), make_task("t", device_milli=1000), *nodes) == "cores"


def test_memory_is_not_considered() -> None:
    nodes = [make_node("a", cpu=8, memory=900, devices=1), make_node("b", cpu=8, memory=1, devices=1)]
    assert chosen(ScaledBestFit(), make_task("t", memory=1), *nodes) == "a"


@pytest.mark.parametrize("policy", [ScaledBestFit, DotProduct])
def test_scores_are_integers_and_the_first_of_equals_wins(policy: type[ScaledBestFit]) -> None:
    nodes = [make_node("a", cpu=66, devices=1), make_node("b", cpu=65, devices=1)]
    assert chosen(policy(), make_task("t"), *nodes) == "a"
    assert chosen(policy(), make_task("t"), *reversed(nodes)) == "b"


def test_dot_product_considers_only_requested_resources() -> None:
    nodes = [make_node("gpus", cpu=32, devices=8), make_node("cores", cpu=128, devices=1)]
    few_cores, many_cores = make_task("t", device_milli=1000), make_task("u", cpu=32)
    assert chosen(DotProduct(), few_cores, *nodes) == "cores"
    assert chosen(DotProduct(), many_cores, *nodes) == "gpus"


def test_they_work_without_gpus_and_place_nothing_without_room() -> None:
    nodes = [make_node("loose", cpu=64), make_node("tight", cpu=8)]
    for policy in (ScaledBestFit, DotProduct):
        assert chosen(policy(), make_task("t", cpu=8), *nodes) == "tight"
        assert chosen(policy(), make_task("u", cpu=99), *nodes) == ""
