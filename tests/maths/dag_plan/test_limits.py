"""Plans of jobs of which only so many tasks may run at a time."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from eclectus.maths.dag_plan import GRAINS, StageLeft, planned, remaining, units_of

SHARE = (9, 9)


def stage(waiting: int, seconds: float, *parents: int, most: int | None = None) -> StageLeft:
    return StageLeft(waiting, (1, 1), seconds, parents, most=most)


def test_a_stage_takes_as_many_waves_as_its_limit_makes() -> None:
    assert planned([stage(6, 2)], SHARE).finish_seconds == 2
    assert planned([stage(6, 2, most=4)], SHARE).finish_seconds == 4
    assert planned([stage(6, 2, most=1)], SHARE).finish_seconds == 12
    assert planned([stage(6, 2)], SHARE, most=2).finish_seconds == 6


def test_a_job_lends_no_time_that_its_limit_takes() -> None:
    """Without the limit the first stage would start 8 s later: then the job would end 8 s late."""
    job = [stage(10, 1.0, most=1), stage(1, 9.0)]
    plan = planned(job, SHARE)
    assert (plan.finish_seconds, plan.due()) == (10, {0: 1})
    assert planned([replace(job[0], most=None), job[1]], SHARE).due() == {1: 1}


def test_what_runs_takes_a_place() -> None:
    job = [StageLeft(1, (1, 1), 4.0, (), ((3.0, 2),), 2)]
    assert planned(job, SHARE).finish_seconds == 7
    lowered = [replace(job[0], most=1)]
    assert planned(lowered, SHARE).finish_seconds == 7, "more run than may: they go on"


@st.composite
def jobs(draw: st.DrawFn) -> list[StageLeft]:
    found: list[StageLeft] = []
    for at in range(draw(st.integers(1, 4))):
        parents = tuple(sorted(draw(st.sets(st.integers(0, at - 1), max_size=2)))) if at else ()
        seconds, waiting = float(draw(st.integers(1, 5))), draw(st.integers(0, 5))
        demand = draw(st.tuples(st.integers(0, 4), st.integers(0, 4)))
        running = ((float(draw(st.integers(1, 6))), 1),) if not parents and draw(st.booleans()) else ()
        found.append(StageLeft(waiting, demand, seconds, parents, running))
    return found


@given(jobs(), st.integers(1, 4), st.integers(1, 3))
@settings(deadline=None, max_examples=100)
def test_a_limit_is_a_resource_of_which_a_task_needs_one(job: list[StageLeft], most: int, first: int) -> None:
    limited = planned([replace(job[0], most=first), *job[1:]], SHARE, most=most)
    demands = [(*each.demand, 1, int(each is job[0])) for each in job]
    as_resources = [replace(each, demand=demand) for each, demand in zip(job, demands, strict=True)]
    as_resource = planned(as_resources, (*SHARE, most, first))
    assert limited.latest == as_resource.latest
    assert limited.finish_seconds == as_resource.finish_seconds
    assert limited.finish_seconds >= limited.least_seconds * (1 - 1e-9)


@pytest.mark.parametrize("grain", GRAINS)
def test_the_coarse_units_of_a_large_stage_keep_to_the_limit(grain: tuple[int, int, int]) -> None:
    work = remaining([stage(1000, 1.0, most=7)], (10**6, 10**6))
    units = units_of(work, GRAINS[GRAINS.index(grain)])  # type: ignore[arg-type]
    ((limit, place),) = [need for need in units.needs[0] if need[0] == len(work.quota) - 1]
    assert units.quota[limit] // place * units.tasks[0] <= 7
    assert planned([stage(1000, 1.0, most=7)], (10**6, 10**6)).finish_seconds >= 142
