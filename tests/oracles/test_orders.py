"""Orders of work: waits with non-preemptive priorities, and the conservation law.

Cobham, 1954: waits by priority class. Kleinrock's conservation law: on a work-conserving non-preemptive
server sum of rho_i W_i = rho W0 / (1 - rho), W0 = sum of lambda_i E[S_i^2] / 2, under every order that
knows the class of a task but not its true size. Per task it holds under every order: the sum of size times
wait depends only on the arrivals, because the remaining work does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from statistics import fmean
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace as replaced

from eclectus.model.commands import Command
from eclectus.model.events import Event, TaskSeen
from eclectus.sim.base.work import Arrival
from eclectus.sim.runs import build_world
from eclectus.sim.scenario import Scenario
from short_scenarios import agree, poisson, runs, scenario

SMALL, LARGE = 0.5, 2.0  # mean sizes, seconds
LOADS = {"small": 0.5, "large": 0.3}
FIFO: dict[str, Any] = {"place": {"policy": "uniform"}}
LINES: dict[str, Any] = {"place": {"policy": "uniform", "queue": "lines"}}
ORDERS: dict[str, dict[str, Any]] = {
    "first come": FIFO,
    "small first": {**FIFO, "order": {"policy": "sjf"}},
    "shortest job first, in line": {**LINES, "line": {"policy": "srpt", "slack": 1e9}},
    "the same, with slack": {**LINES, "line": {"policy": "srpt"}},
}


def two_classes(profile: dict[str, Any], tasks: int, *, prior: str = "", warm_up: float = 0.3) -> Scenario:
    """Small and large tasks of exponential size on one server, load .5 + .3."""
    rates = {"small": LOADS["small"] / SMALL, "large": LOADS["large"] / LARGE}
    means = {"small": SMALL, "large": LARGE}
    classes = [
        {
            "name": name,
            "share": rate,
            "size": {"mean": means[name]},
            "estimate": means[name],
            "priority": int(name == prior),
        }
        for name, rate in rates.items()
    ]
    return scenario(
        workload=poisson(0.8) | {"poisson": {"load": 0.8, "classes": classes}},
        profiles=[{"schedulerName": "it", "learn": {"policy": "none"}, **profile}],
        measure={"tasks": tasks, "warmUp": warm_up},
    )


def with_true_sizes(asked: Scenario) -> Scenario:
    """The same arrivals, but each task's estimate is its true size."""

    def arrivals(seed: int) -> Iterator[Arrival]:
        for job in asked.plan.arrivals(seed):
            yield replaced(job, estimate=job.sizes[0])

    return replace(asked, plan=replace(asked.plan, arrivals=arrivals))


class Served(NamedTuple):
    """One task."""

    kind: str
    size: float
    wait: float


def served(asked: Scenario, seed: int) -> list[Served]:
    world = build_world(asked, asked.profiles[0], seed)
    found: list[Served] = []

    def hear(now: float, events: list[Event], commands: list[Command]) -> None:
        for event in events:
            if isinstance(event, TaskSeen) and event.task.finished is not None:
                task = event.task
                found.append(Served(task.workload, task.finished - task.started, task.started - task.created))

    world.on_step = hear
    world.run()
    return found


# -- priorities ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seeds", "tasks", "within"), [(5, 1500, 0.1), pytest.param(16, 9000, 0.02, marks=pytest.mark.slow)]
)
def test_who_has_priority_waits_for_its_like_and_the_others_for_all(
    seeds: int, tasks: int, within: float
) -> None:
    """exp(1), loads .5 and .3: W0 = .8, waits .8 / .5 and .8 / (.5 * .2), .5 * 1.6 + .3 * 8 = 3.2."""
    classes = [{"name": "first", "share": 5, "priority": 1}, {"name": "last", "share": 3}]
    asked = scenario(
        workload={"poisson": {"load": 0.8, "classes": classes}},
        measure={"tasks": tasks, "groups": ["class"]},
    )
    done = [run.groups["class"] for run in runs(asked, range(1, seeds + 1))]
    waits = [(each["first"].wait.mean, each["last"].wait.mean) for each in done]
    assert agree("priority, load .5 and .3: wait of the first", [first for first, _ in waits], 1.6, within)
    assert agree("priority, load .5 and .3: wait of the last", [last for _, last in waits], 8.0, within)
    law = [0.5 * first + 0.3 * last for first, last in waits]
    assert agree("priority, load .5 and .3: conservation", law, 3.2, within)


# -- the conservation law ------------------------------------------------------------------------


@pytest.mark.parametrize("true_sizes", [False, True])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("prior", ["", "large"])
def test_size_times_wait_is_conserved_on_every_stream(order: str, prior: str, true_sizes: bool) -> None:
    """An identity of every run, up to rounding."""

    def total(name: str, prior: str, true_sizes: bool) -> float:
        asked = two_classes(ORDERS[name], 600, prior=prior, warm_up=0)
        return sum(
            task.size * task.wait for task in served(with_true_sizes(asked) if true_sizes else asked, 1)
        )

    assert total(order, prior, true_sizes) == pytest.approx(total("first come", "", False), rel=1e-9)


def test_orders_differ_all_the_same() -> None:
    """Otherwise the identity would be trivial."""
    means = {
        name: round(fmean(task.wait for task in served(two_classes(profile, 600, warm_up=0), 1)), 9)
        for name, profile in ORDERS.items()
    }
    assert len(set(means.values())) == len(ORDERS) - 1, (
        means
    )  # shortest first is the same with and without a node queue
    assert max(means, key=lambda name: means[name]) == "first come"


def weighted_waits(asked: Scenario, seed: int) -> float:
    """Sum of rho_i W_i: loads of classes times their mean waits, without the first third of the run."""
    tasks = served(asked, seed)
    tasks = tasks[len(tasks) // 3 :]
    return sum(load * fmean(task.wait for task in tasks if task.kind == name) for name, load in LOADS.items())


LAW = 0.8 / (1 - 0.8) * (1.0 * 2 * SMALL**2 / 2 + 0.15 * 2 * LARGE**2 / 2)


@pytest.mark.slow
@pytest.mark.parametrize("order", ["small first", "the same, with slack"])
def test_loads_times_waits_are_conserved_by_orders_that_know_classes(order: str) -> None:
    asked = two_classes(ORDERS[order], 8000)
    values = [weighted_waits(asked, seed) for seed in range(1, 9)]
    assert agree(f"conservation, {order}: sum of loads times waits", values, LAW)


def test_an_order_that_knows_true_sizes_breaks_that_law() -> None:
    """It serves small tasks first at the expense of large ones of the same class."""
    asked = with_true_sizes(two_classes(ORDERS["small first"], 1500))
    values = [weighted_waits(asked, seed) for seed in range(1, 5)]
    assert not agree("conservation, by true sizes, on purpose", values, LAW)
    assert fmean(values) < 0.8 * LAW
