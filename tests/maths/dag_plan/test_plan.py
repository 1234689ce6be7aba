"""Plans of DAG jobs: critical paths, a dumb twin, bounds, and what must hold of every plan."""

from __future__ import annotations

from math import inf, nan

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from dumb_plan import Run, justified, list_schedule, running
from eclectus.maths.dag_plan import (
    GRAINS,
    TICKS_A_SECOND,
    Plan,
    StageLeft,
    packed,
    planned,
    remaining,
    units_of,
)

MUCH = (10**6, 10**6)


def stage(waiting: int, seconds: float, *parents: int, demand: tuple[int, int] = (1, 1)) -> StageLeft:
    return StageLeft(waiting, demand, seconds, parents)


def latest(plan: Plan) -> dict[int, float]:
    """The one latest start of each stage, where all of its tasks have the same."""
    starts = {chunk.stage: chunk.start for chunk in plan.latest}
    assert len(starts) == len(plan.latest)
    return starts


@st.composite
def jobs(draw: st.DrawFn, *, with_running: bool = True) -> list[StageLeft]:
    """Small jobs in whole seconds; the stages of which tasks run have no parents that wait."""
    found: list[StageLeft] = []
    for at in range(draw(st.integers(1, 5))):
        parents = tuple(sorted(draw(st.sets(st.integers(0, at - 1), max_size=2)))) if at else ()
        demand = draw(st.tuples(st.integers(0, 4), st.integers(0, 4)))
        ends = st.lists(st.tuples(st.integers(1, 6).map(float), st.integers(1, 2)), max_size=2)
        started = tuple(draw(ends)) if with_running and not parents else ()
        found.append(
            StageLeft(draw(st.integers(0, 4)), demand, float(draw(st.integers(1, 5))), parents, started)
        )
    return found


def room(job: list[StageLeft], share: tuple[int, int]) -> tuple[int, int]:
    """The share, and at least one task of each stage that waits."""
    first, second = (max([0, *(each.demand[r] for each in job if each.waiting)]) for r in range(2))
    return max(share[0], first), max(share[1], second)


def tasks(plan: Plan) -> list[Run]:
    return sorted(
        Run(int(chunk.end), int(chunk.start), chunk.stage)
        for chunk in plan.latest
        for _ in range(chunk.tasks)
    )


SHARES = st.tuples(st.integers(0, 9), st.integers(0, 9))


@given(jobs(), SHARES, st.booleans())
@settings(deadline=None, max_examples=200)
def test_plans_equal_those_of_single_tasks(
    job: list[StageLeft], share: tuple[int, int], by_alignment: bool
) -> None:
    plan, quota = planned(job, share, by_alignment=by_alignment), room(job, share)
    twin, held = list_schedule(job, quota, by_alignment=by_alignment), running(job)
    length = max([0, *(run.end for run in twin + held)])
    late = justified(job, quota, twin, length)
    spare = 0 if held or not late else min(run.start for run in late)
    assert plan.finish_seconds == length - spare
    assert tasks(plan) == sorted(Run(run.end - spare, run.start - spare, run.stage) for run in late)


@given(jobs(), SHARES)
@settings(deadline=None, max_examples=200)
def test_no_plan_is_shorter_than_its_lower_bound(job: list[StageLeft], share: tuple[int, int]) -> None:
    """C6."""
    plan = planned(job, share)
    assert plan.finish_seconds >= plan.least_seconds * (1 - 1e-9)


@given(jobs(with_running=False), SHARES)
@settings(deadline=None)
def test_a_job_of_which_nothing_runs_has_something_due(job: list[StageLeft], share: tuple[int, int]) -> None:
    plan = planned(job, share)
    assert bool(plan.due()) == any(each.waiting for each in job)


@given(jobs(), SHARES)
@settings(deadline=None)
def test_what_is_due_fits_into_the_share(job: list[StageLeft], share: tuple[int, int]) -> None:
    quota, due = room(job, share), planned(job, share).due()
    held = running(job)
    for r in range(2):
        used = sum(job[run.stage].demand[r] for run in held)
        more = sum(count * job[at].demand[r] for at, count in due.items())
        assert more <= max(0, quota[r] - used)


@given(jobs(), SHARES, st.floats(0.0, 60.0))
@settings(deadline=None)
def test_everything_is_due_in_the_end_and_nothing_between_two_starts(
    job: list[StageLeft], share: tuple[int, int], after: float
) -> None:
    plan = planned(job, share)
    assert plan.due(plan.finish_seconds) == {at: each.waiting for at, each in enumerate(job) if each.waiting}
    upcoming = plan.next_start(after)
    if upcoming is None:
        assert plan.due(after) == plan.due(plan.finish_seconds)
    else:
        assert plan.due(after) == plan.due((after + upcoming) / 2) != plan.due(upcoming)


# C5: with more room than is needed, latest starts are those of the critical path method.


@given(jobs(with_running=False))
@settings(deadline=None, max_examples=200)
def test_latest_starts_are_those_of_the_critical_path_method(some: list[StageLeft]) -> None:
    job = [replace(each, waiting=each.waiting + 1) for each in some]
    plan, finish = planned(job, MUCH), [0.0] * len(job)
    for at, each in enumerate(job):
        finish[at] = each.seconds + max((finish[of] for of in each.parents), default=0.0)
    ends = [max(finish)] * len(job)
    for at in reversed(range(len(job))):
        for of in job[at].parents:
            ends[of] = min(ends[of], ends[at] - job[at].seconds)
    assert plan.finish_seconds == max(finish)
    assert latest(plan) == {at: ends[at] - each.seconds for at, each in enumerate(job)}


def test_a_chain_has_no_slack() -> None:
    plan = planned([stage(3, 2), stage(5, 4, 0), stage(1, 1, 1)], MUCH)
    assert plan.finish_seconds == plan.least_seconds == 7
    assert latest(plan) == {0: 0, 1: 2, 2: 6}


def test_the_short_side_of_a_diamond_may_wait() -> None:
    plan = planned([stage(1, 1), stage(1, 5, 0), stage(9, 2, 0), stage(1, 1, 1, 2)], MUCH)
    assert latest(plan) == {0: 0, 1: 1, 2: 4, 3: 6}


def test_a_fork_joins_when_its_longest_branch_ends() -> None:
    plan = planned([stage(1, 1), stage(1, 2, 0), stage(1, 3, 0), stage(1, 4, 0), stage(1, 1, 1, 2, 3)], MUCH)
    assert latest(plan) == {0: 0, 1: 3, 2: 2, 3: 1, 4: 5}


def test_stages_that_have_ended_hold_nobody_up() -> None:
    plan = planned([stage(0, 9), stage(0, 9, 0), stage(2, 1, 0, 1)], MUCH)
    assert (plan.finish_seconds, plan.due()) == (1, {2: 2})
    empty = planned([stage(0, 9)], MUCH)
    assert (empty.finish_seconds, empty.due(), empty.next_start()) == (0, {}, None)
    assert planned([], MUCH).finish_seconds == 0


def test_running_tasks_hold_their_part_of_the_share_until_they_end() -> None:
    job = [StageLeft(1, (1, 1), 4.0, (), ((3.0, 1),))]
    assert planned(job, (2, 2)).finish_seconds == 4
    assert planned(job, (1, 1)).finish_seconds == 7
    assert planned(job, (1, 1)).due() == {}
    assert planned(job, (1, 1)).next_start() == 3


def test_a_job_above_its_share_starts_nothing_until_it_is_below() -> None:
    job = [StageLeft(1, (1, 1), 4.0, (), ((3.0, 2), (5.0, 2)))]
    assert planned(job, (2, 2)).finish_seconds == 5 + 4
    assert planned(job, (3, 3)).finish_seconds == 3 + 4


def test_a_task_that_exceeds_the_share_is_planned_alone() -> None:
    plan = planned([stage(3, 2, demand=(7, 1)), stage(4, 1, demand=(1, 1))], (2, 0))
    assert plan.finish_seconds == 3 * 2 + 4 * 1
    assert plan.due() == {0: 1}


def test_a_share_that_is_less_by_rounding_holds_its_tasks() -> None:
    assert planned([stage(2, 1, demand=(3, 0))], (6 * (1 - 1e-12), 0.0)).finish_seconds == 1


def test_what_takes_no_time_and_no_resources_is_planned_too() -> None:
    plan = planned([stage(5, 0.0, demand=(0, 0)), stage(1, 1, 0)], MUCH)
    assert plan.finish_seconds == pytest.approx(1, abs=0.01)
    assert plan.due() == {0: 5}


def test_ranks_decide_what_is_packed_first() -> None:
    job = [stage(1, 1), stage(1, 5)]
    assert [chunk.stage for chunk in planned(job, (1, 1)).latest] == [1, 0]
    assert [chunk.stage for chunk in planned(job, (1, 1), ranks=(0, 1)).latest] == [0, 1]


def test_what_is_aligned_with_the_free_room_is_packed_first() -> None:
    """Paths are equal. Both of stage 0 first leave (2, 6), which holds none of stage 1: 3 s.

    Alignments with (10, 10) are .6 and 1.4, so stage 1 is first; (4, 2) is free then, which stage 0 fills.
    """
    job = [stage(2, 1, demand=(4, 2)), stage(2, 1, demand=(6, 8))]
    units = units_of(remaining(job, (10, 10)), GRAINS[0])
    for by_alignment, end in ((False, 3), (True, 2)):
        starts = packed(units, (0, 1), inf, by_alignment=by_alignment) or []
        assert max(each.end for each in starts) == end * TICKS_A_SECOND
    plan = planned(job, (10, 10), by_alignment=True)
    assert plan.finish_seconds == plan.least_seconds == 2
    assert plan.due() == {0: 1, 1: 1}


def test_alignment_follows_what_is_free_task_by_task() -> None:
    """By the list three tasks of (3, 1) leave (1, 7) of (10, 10), so one of (1, 4) fits.

    Alignments are .4 and .5, so one of (1, 4) is first. With (9, 6) free both have .33, and whichever is
    next, the other one follows: (6, 5) has .23 and .26, (8, 2) has .26 and too little. Two of each fit.
    """
    job = [stage(3, 1, demand=(3, 1)), stage(3, 1, demand=(1, 4))]
    units = units_of(remaining(job, (10, 10)), GRAINS[0])
    for by_alignment, first in ((False, [(0, 3), (1, 1)]), (True, [(0, 2), (1, 2)])):
        starts = packed(units, (0, 1), inf, by_alignment=by_alignment) or []
        assert [(each.stage, each.units) for each in starts if each.start == 0] == first


def test_a_larger_share_may_make_a_packing_longer_and_justification_mends_it() -> None:
    """Graham's anomaly: lists end at 12 on three machines and at 15 on four."""
    seconds, parents = (3, 2, 2, 2, 4, 4, 4, 4, 9), {4: (3,), 5: (3,), 6: (3,), 7: (3,), 8: (0,)}
    job = [stage(1, each, *parents.get(at, ())) for at, each in enumerate(seconds)]
    for machines, end in ((3, 12), (4, 15)):
        work = remaining(job, (machines, machines))
        starts = packed(units_of(work, GRAINS[0]), range(9), inf)
        assert starts is not None
        assert max(each.end for each in starts) == end * TICKS_A_SECOND
        assert planned(job, (machines, machines), range(9)).finish_seconds == 12


@pytest.mark.parametrize(
    ("job", "share"),
    [
        ([stage(1, nan)], MUCH),
        ([stage(1, inf)], MUCH),
        ([stage(1, -1.0)], MUCH),
        ([stage(-1, 1.0)], MUCH),
        ([stage(1, 1.0, demand=(-1, 0))], MUCH),
        ([stage(1, 1.0)], (1.0,)),
        ([stage(1, 1.0)], (1.0, nan)),
        ([stage(1, 1.0)], (1.0, inf)),
        ([stage(1, 1.0)], (1.0, -1.0)),
        ([stage(1, 1.0, 0)], MUCH),
        ([stage(1, 1.0), stage(1, 1.0, -1)], MUCH),
        ([StageLeft(1, (1, 1), 1.0, (), ((nan, 1),))], MUCH),
        ([StageLeft(1, (1, 1), 1.0, (), ((1.0, 0),))], MUCH),
    ],
)
def test_numbers_that_mean_nothing_are_refused(job: list[StageLeft], share: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match=r"share|stage"):
        planned(job, share)
