"""H-DRF against the worked examples of its paper: what fills the cluster under `order: h-drf`."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from builders import make_engine, make_node, make_spec, make_task
from eclectus.framework import Order, Task
from eclectus.policies.carbyne import Carbyne
from eclectus.policies.order.drf import DominantShare
from eclectus.policies.order.h_drf import HierarchicalShare
from eclectus.policies.place.fit import BestFit
from worlds import World, numbered, small_world


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


def one_pod_jobs(namespace: str, count: int, since: float) -> list[Task]:
    return [
        replace(task, namespace=namespace, created=since + at * 1e-3)
        for at, task in enumerate(numbered(count, namespace))
    ]


@pytest.mark.parametrize("order", [DominantShare, HierarchicalShare, Carbyne])
@pytest.mark.parametrize("eldest", ["a", "b"])
def test_two_namespaces_of_equal_jobs_get_equal_parts_whichever_is_older(
    order: type[Order], eldest: str
) -> None:
    """A hundred jobs of one pod each on eighty slots, and again when half of the pods have ended."""
    world = small_world(make_engine(BestFit(), order=order()), nodes=10, cpu=8)
    world.add(*one_pod_jobs("a", 100, 2.0), *one_pod_jobs("b", 100, 1.0 if eldest == "b" else 3.0))
    assert Counter(name[0] for name in world.placed()) == {"a": 40, "b": 40}
    for name in [name for name in world.placed() if name[0] == eldest]:
        world.end(name)
    held = Counter(name[0] for name in world.placed())
    assert held.total() == 80
    assert abs(held["a"] - held["b"]) <= 1


@pytest.mark.parametrize("order", [DominantShare, HierarchicalShare, Carbyne])
def test_three_hundred_kinds_of_pods_get_no_more_than_a_hundred_equal_ones(order: type[Order]) -> None:
    """More kinds than a step asks about, on eighty slots, though they are older."""
    world = small_world(make_engine(BestFit(), order=order()), nodes=10, cpu=8)
    kinds = [
        replace(task, spec=make_spec(1, memory=0.001 * (at + 1)))
        for at, task in enumerate(one_pod_jobs("a", 300, 1.0))
    ]
    world.add(*kinds, *one_pod_jobs("b", 100, 2.0))
    world.sleep(1.0)
    assert Counter(name[0] for name in world.placed()) == {"a": 40, "b": 40}


def test_a_sibling_that_holds_another_resource_takes_nothing_away() -> None:
    """The CPUs that the first job of n2 holds do not count where GPUs are shared, though GPU pods use CPU."""
    world = World(make_engine(BestFit(), order=HierarchicalShare()), make_node(cpu=24, gpus=24, pods=500))
    held = [replace(task, namespace="n2", job="a") for task in numbered(12, "held")]
    wanted = [
        replace(task, namespace=namespace, job=f"{namespace}b")
        for namespace in ("n1", "n2")
        for task in numbered(30, f"{namespace}-", cpu=0.1, gpus=1)
    ]
    world.add(*held)
    world.add(*wanted)
    assert Counter(name[:2] for name in world.placed()) == {"he": 12, "n1": 12, "n2": 12}


@pytest.mark.parametrize("seed", range(5))
def test_pods_are_placed_in_the_order_of_a_plain_comparison_from_the_root_down(seed: int) -> None:
    """All fit, so the order of the binds is that of the Order alone; by looking at every pod each time."""
    random, weights = Random(seed), {"b": 3.0}
    tasks = [
        replace(
            task,
            namespace=random.choice("abc"),
            job=f"j{random.randrange(6)}",
            priority=random.choice((0, 0, 1)),
            created=float(random.randrange(20)),
        )
        for at in range(60)
        for task in numbered(1, f"t{at}.", cpu=random.choice((1, 1, 2)), gpus=random.choice((0, 0, 1)))
    ]
    world = World(
        make_engine(BestFit(), order=HierarchicalShare(weights=weights)),
        make_node(cpu=200, gpus=90, pods=500),
    )
    world.add(*tasks)
    by_age = sorted(tasks, key=lambda task: (-task.priority, task.created))  # within a job
    totals = {"cpu": 200_000, "gpu": 90, "pods": 500}
    held: dict[str, Counter[str]] = {}

    def share(name: str, resource: str) -> float:
        return held.get(name, Counter())[resource] / (totals[resource] * weights.get(name, 1.0))

    def value(task: Task) -> tuple[object, ...]:
        parts = {name: amount / totals[name] for name, amount in task.spec.requests if name in totals}
        dominant, group = max(parts, key=lambda name: (parts[name], name)), f"{task.namespace}/{task.job}"
        job = max(share(group, name) for name in totals)
        return -task.priority, share(task.namespace, dominant), job, task.created, tasks.index(task)

    for bind in world.binds:
        waiting = [task for task in by_age if task.uid not in held]
        heads = {(task.namespace, task.job): task for task in reversed(waiting)}
        first = min(heads.values(), key=value)
        assert first.name == bind.name
        for name in (first.namespace, f"{first.namespace}/{first.job}"):
            held.setdefault(name, Counter()).update({**dict(first.spec.requests), "pods": 1})
        held[first.uid] = Counter()
    assert len(world.binds) == len(tasks)
