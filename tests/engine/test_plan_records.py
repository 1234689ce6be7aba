"""Plans of DAG jobs are written when something of note has changed, and not too often."""

from __future__ import annotations

from collections.abc import Iterable

from builders import make_engine
from eclectus.framework import JobPlanner, OrderTraits, View
from eclectus.model.commands import Command, Fault, RecordPlan
from eclectus.model.events import JobGone, JobSeen, Resumed
from eclectus.model.job import Job, JobPlan
from eclectus.policies.order.fifo import FifoOrder

PLAN = JobPlan(share=(("cpu", 1000),), finish_seconds=9.0, deadline=9.0)


class Planning(FifoOrder, JobPlanner):
    """Answers with the plan that the test has set."""

    plan = PLAN
    traits = OrderTraits(needs=frozenset({"jobs"}))

    def plans(self, view: View) -> Iterable[tuple[str, JobPlan]]:
        return [(uid, self.plan) for uid in ("u1", "unknown")]


class _Case:
    def __init__(self) -> None:
        self.order = Planning()
        self.engine = make_engine(order=self.order)
        self.first = self.engine.step([Resumed(), JobSeen(Job("u1", "default", "j", ()))], 0.0)

    def step(self, now: float, plan: JobPlan = PLAN) -> list[Command]:
        object.__setattr__(self.order, "plan", plan)
        return self.engine.step([], now)


def changed(deadline: float) -> JobPlan:
    return JobPlan(PLAN.share, PLAN.finish_seconds, deadline)


def test_a_plan_is_written_once_for_a_job_that_is_known() -> None:
    case = _Case()
    assert case.first == [RecordPlan("u1", "default", "j", PLAN)]
    assert case.step(19.0) == []


def test_the_clock_alone_is_no_change() -> None:
    assert _Case().step(19.0, JobPlan(PLAN.share, 1.0, PLAN.deadline)) == []


def test_a_change_is_written_when_the_last_write_is_long_enough_ago() -> None:
    case = _Case()
    assert case.step(1.0, changed(20.0)) == []
    assert case.engine.next_step_at() == 15.0
    assert case.step(15.0, changed(21.0)) == [RecordPlan("u1", "default", "j", changed(21.0))]
    assert case.engine.next_step_at() is None


def test_what_a_job_has_lent_in_all_is_written_with_the_rest_and_the_last_plan_at_once() -> None:
    case = _Case()
    lends = JobPlan(PLAN.share, 1.0, PLAN.deadline, lent=(("cpu", 250),))
    assert case.step(15.0, lends) == [RecordPlan("u1", "default", "j", lends)]
    assert case.step(17.0, lends) == [], "what it has lent so far is no change by itself"
    (last,) = case.step(19.0, JobPlan((), 0.0, PLAN.deadline))
    assert isinstance(last, RecordPlan)
    assert (last.plan.share, last.plan.lent, last.plan.lent_seconds) == ((), (), (("cpu", 1000),))
    counters = case.engine.queue_counts().counters.plans
    assert counters.lent_seconds == {"cpu": 1000.0}


def test_a_change_that_is_taken_back_is_not_written() -> None:
    case = _Case()
    case.step(1.0, changed(20.0))
    assert case.step(2.0) == []
    assert case.step(19.0) == []


def test_nothing_is_written_for_a_job_that_is_gone() -> None:
    case = _Case()
    case.step(1.0, changed(20.0))
    assert case.engine.step([JobGone("u1")], 16.0) == []
    assert case.engine.next_step_at() is None


def test_an_order_that_fails_to_plan_is_a_fault() -> None:
    class Failing(Planning):
        def plans(self, view: View) -> Iterable[tuple[str, JobPlan]]:
            raise RuntimeError("no plan")

    engine = make_engine(order=Failing())
    assert engine.step([Resumed()], 0.0) == [Fault("Failing", "RuntimeError: no plan")]
