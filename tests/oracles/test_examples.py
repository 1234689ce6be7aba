"""The three examples of the Rosella paper (Wu, Liu, 2020), each as a figure or a slope.

1. Nine machines of speed 1 and one of 6, 14 tasks per second: one uniform choice sends 1.4 to each slow one.
2. The same with two uniform choices: both are slow with probability .81, and 11.34 per second exceed 9.
3. One machine of speed m and m of speed 1, load .75: two choices in proportion, compared by expected delay,
   send 1.5 m * 3/4 = 9/8 m to the fast one, more than it serves, until about m tasks are queued there.
"""

from __future__ import annotations

from statistics import fmean
from typing import Any

import pytest

from eclectus.model.commands import Bind
from eclectus.sim.runs import build_world
from eclectus.sim.scenario import Scenario
from published_clusters import EXAMPLE_1, example_3, means
from short_scenarios import agree, place, poisson, runs, scenario

TWO_BY_DELAY = place("rosella", learn="truth", view="sample", compare="sed")
ALL_BY_DELAY = place("rosella", learn="truth", view="full", replan=False, compare="sed")


def grown(profiles: list[dict[str, Any]], horizon: float, seeds: int) -> list[float]:
    asked = scenario(
        cluster=EXAMPLE_1,
        workload=poisson(rate=14),
        profiles=profiles,
        measure={"horizon": horizon},
        allowUnstable=True,
    )
    return [run.growth for run in runs(asked, range(1, seeds + 1))]


# -- examples 1 and 2 ------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "slope"), [("uniform", 9 * (1.4 - 1)), ("pot", 14 * 0.81 - 9)], ids=["uniform", "two choices"]
)
def test_what_is_unstable_grows_with_the_slope_of_its_examples(policy: str, slope: float) -> None:
    profiles = place(policy, learn="none", queue="lines")
    assert agree(f"Example 1, {policy}: growth, tasks/s", grown(profiles, 500, 4), slope, within=0.1)


def test_two_proportional_choices_are_stable_there() -> None:
    ppot = place("rosella", learn="truth", view="sample", compare="sq")
    assert max(grown(ppot, 300, 3)) < 0.2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "profile", "mean", "tasks", "seeds"),
    [
        ("PSS", place("pss", learn="truth"), 10.0, 20_000, 20),
        ("JSQ over all", place("jsq", learn="truth"), 2.07, 20_000, 5),
        ("SED over all", place("sed", learn="truth"), 1.82, 20_000, 5),
    ],
)
def test_mean_responses_of_example_1(
    what: str, profile: list[dict[str, Any]], mean: float, tasks: int, seeds: int
) -> None:
    """PSS is ten independent queues: n / (mu - lambda). The other two figures are from another simulation."""
    asked = scenario(cluster=EXAMPLE_1, workload=poisson(rate=14), profiles=profile, measure={"tasks": tasks})
    done = runs(asked, range(1, seeds + 1))
    assert agree(f"Example 1, {what}: mean response", means(done), mean, 0.03, tasks)


# -- example 3 -------------------------------------------------------------------------------------


def flooding(m: int, profiles: list[dict[str, Any]], tasks: int) -> Scenario:
    return scenario(cluster=example_3(m), workload=poisson(0.75), profiles=profiles, measure={"tasks": tasks})


def test_the_one_fast_machine_is_sent_more_than_it_serves() -> None:
    """It is drawn with probability 3/4, and then chosen while its queue is short."""
    m, first = 200, 200  # in this many arrivals about 25 tasks gather there, far below m
    asked = flooding(m, TWO_BY_DELAY, first)
    inflow = [1.5 * m * _sent_to(asked, "one-0", seed) / first for seed in range(12)]
    assert agree("Example 3, m = 200: first inflow of the fast machine", inflow, 9 / 8 * m)
    assert fmean(inflow) > m


def _sent_to(asked: Scenario, node: str, seed: int) -> int:
    world = build_world(asked, asked.profiles[0], seed)
    binds: list[Bind] = []
    world.on_step = lambda now, events, commands: binds.extend(c for c in commands if isinstance(c, Bind))
    world.run()
    return sum(bind.node == node for bind in binds)


@pytest.mark.parametrize(
    ("profiles", "tasks"), [(ALL_BY_DELAY, 6000), (TWO_BY_DELAY, 9000)], ids=["all", "two choices"]
)
def test_until_about_m_tasks_stand_there(profiles: list[dict[str, Any]], tasks: int) -> None:
    """An idle slow machine is as good from m - 1 on; an independent simulation had at most 135."""
    m = 100
    assert m - 10 <= _longest_line(flooding(m, profiles, tasks), "one-0") <= 1.6 * m


def _longest_line(asked: Scenario, node: str) -> int:
    """The largest number of tasks at a node, waiting or running."""
    world = build_world(asked, asked.profiles[0], seed=1)
    longest = 0
    lines = world.engine._state.node_queues.by_row

    def look(now: float, events: object, commands: object) -> None:
        nonlocal longest
        row = world.engine._state.cluster.rows[node]
        longest = max(longest, len(lines.get(row, ())) + len(world.machines[node].running))

    world.on_step = look
    world.run()
    return longest
