"""The two laws of Rosella's paper: how the longest queue grows with the machines, and what learning takes.

Wu, Liu, "Rosella" (arXiv 2010.15206): two choices in proportion to speed reduce the longest queue from O(log
n) to O(log log n); the window of a learner follows from load and number of machines. `make rosella` measures
both with ten seeds; these are shorter runs of the same.
"""

from __future__ import annotations

from statistics import fmean

import pytest

from eclectus.maths.load import error_aimed
from eclectus_bench.rosella.learning import (
    LEARNERS,
    LearningCase,
    exponent_of_load,
    exponent_of_nodes,
    learn,
)
from eclectus_bench.rosella.queues import (
    CONTESTANTS,
    ONE,
    QueueCase,
    expected_longest,
    exponent,
    growth,
    longest_queue,
    one_choice,
    two_choices,
)
from short_scenarios import agree, near

NODES = 25, 100, 400
SEEDS = range(1, 4)


def test_the_longest_of_independent_queues_grows_as_the_logarithm_or_as_that_of_it() -> None:
    many = 10**3, 10**6, 10**9
    one, two = ([expected_longest(tail, each) for each in many] for tail in (one_choice, two_choices))
    assert growth(ONE, one, many) == pytest.approx(1.958, abs=0.01)  # 1 / ln(1 / .6)
    assert one[-1] - one[0] > 10 * (two[-1] - two[0])
    assert two == pytest.approx([3.375, 4.124, 5.0], abs=0.005)  # 3 + (1 - (1 - .6^15)^1000), and so on


@pytest.mark.parametrize("policy", [pytest.param(each, marks=pytest.mark.slow) for each in CONTESTANTS])
def test_the_longest_queue_follows_its_law(policy: str) -> None:
    contestant = CONTESTANTS[policy]
    runs = [
        [longest_queue(QueueCase(policy, nodes, seed, tasks_least=10_000)) for nodes in NODES]
        for seed in SEEDS
    ]
    law = [expected_longest(contestant.law.tail, nodes) for nodes in NODES]
    close = [
        agree(f"longest queue of {policy}, n = {nodes}", [run[at] for run in runs], law[at], 0.08)
        for at, nodes in enumerate(NODES)
        if contestant.knows_speeds  # uniform choices load slow machines more: the same growth, from more
    ]
    found, expected = [exponent(run, NODES) for run in runs], exponent(law, NODES)
    near(f"longest queue of {policy}: b of c (ln n)^b", found, expected, 0.0)
    assert all(close)
    assert fmean(found) == pytest.approx(expected, abs=0.15)


def test_a_short_run_of_two_choices_has_a_shorter_longest_queue() -> None:
    one, two = (longest_queue(QueueCase(each, 100, 1, tasks_least=8000)) for each in ("pss", "paper"))
    assert one > 2.5 * two


@pytest.mark.slow
def test_learning_takes_as_long_as_the_papers_window_says() -> None:
    by_load = {load: learned("paper", 10, load) for load in (0.3, 0.5, 0.7)}
    by_nodes = {nodes: learned("paper", nodes, 0.3) for nodes in (10, 30)}
    of_load = [exponent_of_load(run, list(by_load)) for run in zip(*by_load.values(), strict=True)]
    of_nodes = [exponent_of_nodes(run, list(by_nodes)) for run in zip(*by_nodes.values(), strict=True)]
    assert agree("learning time x a, paper's window: b of c (1 - a)^-b", of_load, 2.0, 0.05)
    assert agree("learning time, paper's window: b of c (ln n)^b", of_nodes, 1.0, 0.2)


@pytest.mark.slow
def test_with_the_default_window_it_depends_on_neither() -> None:
    by_load = {load: learned("eclectus", 10, load) for load in (0.3, 0.5, 0.8)}
    of_load = [exponent_of_load(run, list(by_load)) for run in zip(*by_load.values(), strict=True)]
    near("learning time x a, default window: b of c (1 - a)^-b", of_load, 0.0, 0.0)
    assert fmean(of_load) == pytest.approx(0.0, abs=0.3)


def learned(learner: str, nodes: int, load: float) -> list[float]:
    """Learning time of each seed. All rates then have the error that is aimed at, or about a third."""
    found = [learn(LearningCase(learner, nodes, load, seed)) for seed in SEEDS]
    most = error_aimed(load) if learner == "paper" else 0.5
    assert max(each.error for each in found) <= most
    return [each.times for each in found]


def test_windows_are_those_of_the_paper_or_the_cap() -> None:
    assert LearningCase("paper", 10, 0.5, 1).window == 410  # 4 ln 10 / .15^2
    assert LearningCase("eclectus", 10, 0.5, 1).window == LEARNERS["eclectus"].most == 64
