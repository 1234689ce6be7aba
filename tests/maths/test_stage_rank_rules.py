"""Ranks of stages: the longest path first, breadth first, and troublesome stages first."""

from __future__ import annotations

from math import inf, nan

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eclectus.maths.dag_plan import GRAINS, TICKS_A_SECOND, StageLeft, packed, remaining, units_of
from eclectus.maths.stage_rank_rules import (
    MOST_STAGES,
    STAGE_RANKS,
    StageRanks,
    bottom_level,
    breadth_first,
    dagps,
    divisions,
)

SHARE = (10.0, 10.0)
EVERY_RULE = pytest.mark.parametrize("rule", STAGE_RANKS.values(), ids=list(STAGE_RANKS))


def stage(waiting: int, seconds: float, *parents: int, demand: tuple[int, int] = (1, 1)) -> StageLeft:
    return StageLeft(waiting, demand, seconds, parents)


@st.composite
def jobs(draw: st.DrawFn) -> list[StageLeft]:
    found: list[StageLeft] = []
    for at in range(draw(st.integers(1, 7))):
        parents = draw(st.sets(st.integers(0, at - 1), max_size=2)) if at else set()
        demand = draw(st.tuples(st.integers(0, 12), st.integers(0, 12)))
        waiting, seconds = draw(st.integers(0, 4)), draw(st.integers(1, 9))
        found.append(StageLeft(waiting, demand, float(seconds), tuple(sorted(parents))))
    return found


def length(job: list[StageLeft], ranks: list[float]) -> float:
    """Of the list schedule by these ranks, seconds."""
    positions = sorted(range(len(job)), key=lambda at: (ranks[at], at))
    starts = packed(
        units_of(remaining(job, SHARE), GRAINS[0]), [positions.index(at) for at in range(len(job))], inf
    )
    return max((each.end for each in starts or []), default=0) / TICKS_A_SECOND


def test_the_longest_path_is_first() -> None:
    job = [stage(1, 1), stage(1, 2), stage(1, 5, 0), stage(1, 1, 1)]
    assert bottom_level(job, SHARE) == [-6e6, -3e6, -5e6, -1e6]


def test_stages_with_the_same_number_of_stages_before_them_are_equal() -> None:
    job = [stage(1, 9), stage(1, 1), stage(1, 5, 0), stage(1, 1, 1), stage(1, 1, 1, 2)]
    assert breadth_first(job, SHARE) == [0, 0, 1, 1, 2]
    assert breadth_first([stage(0, 9), *job[1:]], SHARE) == [0, 0, 0, 1, 1]


def test_troublesome_stages_are_divided_from_what_goes_before_and_after() -> None:
    """The long stage 2 alone is a set."""
    job = [stage(2, 1), stage(2, 1), stage(1, 9, 0), stage(2, 1, 1), stage(2, 1, 2, 3)]
    parts = {tuple(each.troublesome): each for each in divisions(remaining(job, (4.0, 4.0)))}
    assert (parts[2,].parents, parts[2,].children, parts[2,].others) == ([0], [4], [1, 3])


def test_what_lies_between_troublesome_stages_is_troublesome() -> None:
    job = [stage(1, 9), stage(1, 1, 0), stage(1, 9, 1), stage(1, 1, 2), stage(1, 2)]
    assert [0, 1, 2] in [each.troublesome for each in divisions(remaining(job, SHARE))]


def test_what_a_long_task_would_keep_waiting_goes_first() -> None:
    """Stage 0 needs 7 of 10, and all but the long stage 2 wait for it. By paths it starts after stage 2."""
    job = [stage(1, 1, demand=(7, 1)), stage(2, 2, 0, demand=(6, 1)), stage(1, 8, demand=(4, 1))]
    job.append(stage(1, 2, 0, demand=(6, 1)))
    assert length(job, bottom_level(job, SHARE)) == 15
    assert length(job, dagps(job, SHARE)) == 9


@given(jobs())
@settings(deadline=None, max_examples=60)
def test_the_packing_by_dagps_is_never_longer_than_by_bottom_levels(job: list[StageLeft]) -> None:
    assert length(job, dagps(job, SHARE)) <= length(job, bottom_level(job, SHARE))


@EVERY_RULE
@given(job=jobs())
@settings(deadline=None, max_examples=40)
def test_each_stage_has_a_rank_and_parents_are_not_after_their_children(
    rule: StageRanks, job: list[StageLeft]
) -> None:
    ranks = rule(job, SHARE)
    assert len(ranks) == len(job)
    for at, each in enumerate(job):
        for parent in each.parents:
            if each.waiting and job[parent].waiting:
                assert ranks[parent] < ranks[at]


@EVERY_RULE
def test_jobs_without_stages_and_very_large_ones_have_ranks(rule: StageRanks) -> None:
    assert rule([], SHARE) == []
    many = [stage(3, 1 + at % 7, *([at - 1] if at % 3 else [])) for at in range(MOST_STAGES + 1)]
    assert len(rule(many, SHARE)) == len(many)


@EVERY_RULE
def test_numbers_that_mean_nothing_are_refused(rule: StageRanks) -> None:
    with pytest.raises(ValueError, match="stage 0"):
        rule([stage(1, nan)], SHARE)
