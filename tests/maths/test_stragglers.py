"""Golden cases of LATE, Hadoop 0.21, Spark and Mantri: by the papers, and by the tests of that Hadoop."""

from __future__ import annotations

from math import inf

import pytest

from eclectus.maths.stragglers import (
    copies_help,
    copies_most,
    copies_of_job_most,
    is_behind,
    is_slow,
    is_slowest,
    is_worth_restarting,
    overdue_after,
    percentile,
    progress_of_phases,
    saves_machine_time,
    time_left,
)
from eclectus.policies.speculate.late_hadoop import LateOfHadoop

# progress and age of eight tasks
TASKS = {
    "t1": (0.9, 300.0),
    "t2": (0.66, 100.0),
    "t3": (0.30, 100.0),
    "t4": (0.05, 40.0),
    "t5": (0.5, 100.0),
    "t6": (0.45, 100.0),
    "t7": (0.6, 100.0),
    "t8": (0.2, 100.0),
}


@pytest.mark.parametrize(
    ("progress", "age", "left"),
    [(0.5, 100.0, 100.0), (0.2, 100.0, 400.0), (0.9, 300.0, 33.333), (0.0, 60.0, inf)],
)
def test_the_time_left_is_what_is_left_over_the_rate(progress: float, age: float, left: float) -> None:
    assert time_left(progress, age) == pytest.approx(left, rel=1e-4)


@pytest.mark.parametrize(("left", "is_worth"), [(86.0, False), (86.1, True), (inf, True), (0.0, False)])
def test_a_restart_is_worth_it_above_twice_the_time_elsewhere_and_a_start(
    left: float, is_worth: bool
) -> None:
    """Work of 42 s elsewhere and a start of 2 s."""
    assert is_worth_restarting(left, 42.0, 2.0) is is_worth


@pytest.mark.parametrize(("phases", "progress"), [((0.5, 0.0, 0.0), 1 / 6), ((1.0, 1.0, 0.5), 5 / 6)])
def test_each_of_the_three_phases_of_a_reduce_counts_a_third(phases: list[float], progress: float) -> None:
    """The paper's own examples: half of the copies, and half of the reduction."""
    assert progress_of_phases(phases, (1.0, 1.0, 1.0)) == pytest.approx(progress)


def test_with_weights_as_the_times_of_phases_the_time_left_is_right() -> None:
    """After 20 of 100 s, which the first two of the three phases take; by thirds it would be 10 s."""
    assert time_left(progress_of_phases((1.0, 1.0, 0.0), (1.0, 1.0, 8.0)), 20.0) == pytest.approx(80.0)
    assert time_left(progress_of_phases((1.0, 1.0, 0.0), (1.0, 1.0, 1.0)), 20.0) == pytest.approx(10.0)


def test_a_faster_task_that_began_later_may_end_last() -> None:
    """Hadoop 0.21's own test: the fourth, although its rate is higher."""
    third, fourth = (0.85, 312.0), (0.20, 60.0)
    assert time_left(*third) == pytest.approx(55.06, abs=0.01)
    assert time_left(*fourth) == 240.0
    assert third[0] / third[1] < fourth[0] / fourth[1]


def test_of_eight_tasks_one_is_slow_and_it_has_the_most_time_left() -> None:
    """The fourth is too young to be judged; the percentile of the others' rates is .003, strictly."""
    rates = {name: score / age for name, (score, age) in TASKS.items() if age >= 60.0}
    assert percentile(list(rates.values()), 0.25) == pytest.approx(0.003)
    slow = [name for name, rate in rates.items() if is_slowest(rate, list(rates.values()), 0.25)]
    assert slow == ["t8"]
    assert time_left(*TASKS["t8"]) == pytest.approx(400.0)


def test_hadoops_own_rule_takes_whoever_is_behind() -> None:
    scores = [0.9, 0.66, 0.7, 0.5, 0.24, 0.4]  # mean .5667
    assert [score for score in scores if is_behind(score, scores)] == [0.24]
    assert not is_behind(0.4, scores)


def test_of_seven_tasks_one_is_behind_the_mean_by_a_fifth() -> None:
    """The mean is .4857: t6 is behind it as well, by less."""
    scores = {"t1": 0.9, "t2": 0.66, "t3": 0.54, "t4": 0.5, "t5": 0.05, "t6": 0.3, "t7": 0.45}
    assert sum(scores.values()) / 7 == pytest.approx(0.4857, abs=1e-4)
    behind = [name for name, score in scores.items() if is_behind(score, list(scores.values()), 0.2)]
    assert behind == ["t5"]


@pytest.mark.parametrize(
    ("slots", "most"), [(50, 5), (105, 10), (9, 1), (5, 1), (4, 0), (0, 0)], ids="{}".format
)
def test_a_pool_has_a_tenth_of_its_slots_and_one_of_five(slots: int, most: int) -> None:
    assert copies_most(slots, 0.1) == most


@pytest.mark.parametrize(("running", "most"), [(1, 1), (19, 1), (20, 2), (105, 10)])
def test_a_job_has_a_tenth_of_what_runs_and_one_in_any_case(running: int, most: int) -> None:
    assert copies_of_job_most(running, 0.1) == most


@pytest.mark.parametrize(("running", "slots", "most"), [(400, 20, 40), (50, 20, 10), (50, 2000, 20)])
def test_a_job_of_hadoop_has_ten_a_hundredth_of_the_slots_or_a_tenth_of_what_runs(
    running: int, slots: int, most: int
) -> None:
    """Hadoop 0.21's own test, of slots of one kind."""
    traits = LateOfHadoop().traits
    found = copies_of_job_most(
        running, traits.job_share, least=traits.job_least, slots=slots, slots_share=traits.slots_share
    )
    assert found == most


def test_a_standard_deviation_is_that_of_all() -> None:
    """Of nodes with tasks of 1, 2 and 102 s, three of each, the third is slow: 67 above the mean of 47.4."""
    times = [1.0] * 3 + [2.0] * 3 + [102.0] * 3
    assert is_slow(-102.0, [-each for each in times])
    assert not is_slow(-1.0, [-each for each in times])


def test_sparks_rule_multiplies_the_median() -> None:
    assert overdue_after([10.0] * 9, 3.0, 0.1) == 30.0
    assert overdue_after([1.0, 10.0, 11.0], 1.5, 0.1) == 15.0
    assert overdue_after([0.01] * 9, 3.0, 0.1) == 0.1


def test_mantri_asks_for_a_copy_that_probably_takes_less_than_half() -> None:
    taken = [10.0, 20.0, 30.0, 40.0]
    assert saves_machine_time(taken, 41.0)  # two of four below 20.5
    assert not saves_machine_time(taken, 40.0)  # one of four is not more than a quarter
    assert not saves_machine_time([], 1000.0)


def test_a_job_whose_copies_lose_gets_no_more() -> None:
    assert copies_help(19, 0)
    assert not copies_help(20, 3)
    assert copies_help(20, 4)
