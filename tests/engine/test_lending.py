"""What DAG jobs have lent and borrowed is added up over time, by job and of all."""

from __future__ import annotations

from eclectus.engine.counters import PlanCounters
from eclectus.engine.plan_records import Lending
from eclectus.model.job import Job, JobPlan
from eclectus.model.objects import Amounts


def plan(lent: Amounts = (), borrowed: Amounts = (), **fields: float) -> JobPlan:
    return JobPlan((("cpu", 2000),), 9.0, 9.0, lent=lent, borrowed=borrowed, **fields)  # type: ignore[arg-type]


def job(name: str = "j", **fields: object) -> Job:
    return Job(name, "default", name, (), **fields)  # type: ignore[arg-type]


def test_a_plan_is_in_force_until_the_next() -> None:
    lending = Lending(PlanCounters())
    lending.note(job(), plan(lent=(("cpu", 500),)), 10.0)
    lending.note(job(), plan(lent=(("cpu", 100), ("memory", 7)), borrowed=(("cpu", 1),)), 14.0)
    found = lending.with_totals("j", plan(), 24.0)
    assert found.lent_seconds == (("cpu", 4 * 500 + 10 * 100), ("memory", 70))
    assert found.borrowed_seconds == (("cpu", 10),)
    lending.note(job(), plan(), 25.0)
    assert lending.with_totals("j", plan(), 99.0).borrowed_seconds == (("cpu", 11),)


def test_a_job_goes_on_from_what_was_written_before_a_restart_and_counters_begin_anew() -> None:
    counters = PlanCounters()
    lending = Lending(counters)
    before = job(lent_seconds=(("cpu", 5000),), slips=2, slip_seconds=3.0)
    lending.note(before, plan(lent=(("cpu", 100),), slips=2, slip_seconds=3.0), 0.0)
    lending.note(before, plan(slips=3, slip_seconds=4.5), 10.0)
    assert lending.with_totals("j", plan(), 10.0).lent_seconds == (("cpu", 6000),)
    assert (counters.slips, counters.slip_seconds, counters.made) == (1, 1.5, 2)
    assert counters.lent_seconds == {"cpu": 1000.0}


def test_counters_have_the_sum_of_all_jobs_up_to_now() -> None:
    counters = PlanCounters()
    lending = Lending(counters)
    lending.note(job("a"), plan(lent=(("cpu", 100),)), 0.0)
    lending.note(job("b"), plan(lent=(("cpu", 20),), borrowed=(("cpu", 3),)), 5.0)
    lending.advance(10.0)
    assert (counters.lent_seconds, counters.borrowed_seconds) == ({"cpu": 1100.0}, {"cpu": 15.0})
    lending.advance(9.0)
    assert counters.lent_seconds == {"cpu": 1100.0}, "a clock that goes back adds nothing"


def test_a_job_that_is_gone_lends_nothing_any_more() -> None:
    counters = PlanCounters()
    lending = Lending(counters)
    lending.note(job("a"), plan(lent=(("cpu", 100),)), 0.0)
    lending.keep((), 2.0)
    lending.advance(50.0)
    assert (counters.lent_seconds, len(lending)) == ({"cpu": 200.0}, 0)
