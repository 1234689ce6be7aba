"""H-DRF against the worked examples of its paper: what fills the cluster under `order: h-drf`."""

from __future__ import annotations

from collections import Counter
from typing import Any

from msgspec.structs import replace

from builders import make_engine, make_node, make_task
from eclectus.policies.order.h_drf import HierarchicalShare
from eclectus.policies.place.fit import BestFit
from worlds import World


def filled(demands: dict[tuple[str, str], str], **settings: Any) -> Counter[tuple[str, str]]:
    """How many pods of each namespace and job, each for one unit, are placed on 24 cores and 24 GPUs."""
    node = make_node(cpu=24, gpus=24, pods=500)
    world = World(make_engine(BestFit(), order=HierarchicalShare(**settings)), node)
    tasks = []
    for (namespace, job), kind in demands.items():
        for at in range(30):
            name = f"{namespace}-{job}-{at}"
            task = make_task(name, cpu=int(kind == "cpu"), gpus=int(kind == "gpu"), job=f"{namespace}{job}")
            tasks.append(replace(task, namespace=namespace))
    world.add(*tasks)
    placed = [world.tasks[name] for name in world.placed()]
    return Counter((task.namespace, task.job.removeprefix(task.namespace)) for task in placed)


def test_a_pool_of_two_jobs_with_different_resources_counts_as_one_of_them() -> None:
    found = filled({("n1", "a"): "gpu", ("n2", "a"): "cpu", ("n2", "b"): "gpu"})
    assert found == {("n1", "a"): 12, ("n2", "a"): 24, ("n2", "b"): 12}


def test_a_saturated_resource_does_not_starve_the_sibling_that_needs_another() -> None:
    found = filled(
        {("n1", "a"): "cpu", ("n2", "a"): "cpu", ("n3", "a"): "cpu", ("n3", "b"): "gpu", ("n4", "a"): "gpu"}
    )
    assert found == {("n1", "a"): 8, ("n2", "a"): 8, ("n3", "a"): 8, ("n3", "b"): 12, ("n4", "a"): 12}


def test_weights_are_those_of_namespaces() -> None:
    found = filled({("n1", "a"): "cpu", ("n1", "b"): "cpu", ("n2", "a"): "cpu"}, weights={"n2": 3.0})
    assert found == {("n1", "a"): 3, ("n1", "b"): 3, ("n2", "a"): 18}


def test_a_namespace_gains_nothing_by_more_jobs() -> None:
    found = filled({**{("n1", f"j{at}"): "cpu" for at in range(4)}, ("n2", "a"): "cpu"})
    assert found["n2", "a"] == 12
