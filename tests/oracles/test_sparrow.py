"""Batch sampling's closed form: the probability that all tasks of a job start at once.

Ousterhout and others, "Sparrow", SOSP 2013, section 3: on nodes of one slot, a share r of them busy, m
tasks all start at once with probability (1 - r)^m if each takes one node at random, (1 - r^d)^m if each
takes the better of d, and if the job shares its d m probes, when at least m of those find an idle node.
"""

from __future__ import annotations

from math import comb

import pytest

from builders import make_engine, make_task
from eclectus.framework import Place
from eclectus.model.events import TaskGone
from eclectus.policies.place.power_of_two import PowerOfTwo, Uniform
from eclectus.policies.place.sparrow import Sparrow
from short_scenarios import agree
from worlds import World, small_world

NODES = 1000


def batch(tasks: int, busy: float, ratio: int = 2) -> float:
    """With independent probes."""
    probes = ratio * tasks
    found = range(tasks, probes + 1)
    return sum(comb(probes, i) * (1 - busy) ** i * busy ** (probes - i) for i in found)


def batch_distinct(tasks: int, busy: float, nodes: int, ratio: int = 2) -> float:
    """With probes of distinct nodes, of which an exact share is busy."""
    probes, idle = ratio * tasks, round(nodes * (1 - busy))
    ways = sum(comb(idle, i) * comb(nodes - idle, probes - i) for i in range(tasks, probes + 1))
    return ways / comb(nodes, probes)


def test_the_formulas_are_those_of_the_tables() -> None:
    assert [batch(10, busy) for busy in (0.5, 0.7)] == pytest.approx([0.588, 0.0480], rel=1e-3)
    assert [(1 - busy**2) ** 10 for busy in (0.5, 0.7)] == pytest.approx([0.0563, 0.00119], rel=3e-3)
    assert batch_distinct(10, 0.5, 10**6) == pytest.approx(batch(10, 0.5), rel=1e-5)


def batches(busy: float) -> tuple[Place, int, float, float]:
    return Sparrow(), 10, busy, batch_distinct(10, busy, NODES)


@pytest.mark.parametrize(
    ("policy", "tasks", "busy", "expected", "jobs"),
    [
        (*batches(0.5), 120),
        (*batches(0.7), 120),
        (Uniform("lines"), 3, 0.5, 0.5**3, 120),
        (PowerOfTwo("lines"), 10, 0.5, 0.75**10, 120),
        pytest.param(*batches(0.5), 1000, marks=pytest.mark.slow),
        pytest.param(*batches(0.7), 1000, marks=pytest.mark.slow),
    ],
)
def test_all_tasks_of_a_job_start_at_once(
    policy: Place, tasks: int, busy: float, expected: float, jobs: int
) -> None:
    shares = [started_at_once(policy, tasks, busy, jobs, seed) for seed in range(6)]
    what = f"{type(policy).__name__}, {tasks} tasks, {busy:.0%} busy: all start at once"
    assert agree(what, shares, expected, within=0.03)


def started_at_once(policy: Place, tasks: int, busy: float, jobs: int, seed: int) -> float:
    """Share of jobs that start at once, one job after the other; the first nodes stay busy."""
    world = small_world(make_engine(policy, seed=seed), nodes=NODES, cpu=1)
    count = round(busy * NODES)
    world.add(*(make_task(f"busy{at}", node=f"n{at}") for at in range(count)))
    return sum(_one_job(world, number, tasks) for number in range(jobs)) / jobs


def _one_job(world: World, number: int, tasks: int) -> bool:
    names = [f"{number}-{at}" for at in range(tasks)]
    world.add(*(make_task(name, job=f"job{number}", created=number) for name in names))
    started = all(world.node_of(name) for name in names)
    world.step(*(TaskGone(world.tasks.pop(name).uid) for name in names))
    return started
