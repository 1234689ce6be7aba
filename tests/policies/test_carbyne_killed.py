"""The scheduler is killed at each of its requests, which arrives or does not; another process goes on."""

from __future__ import annotations

from collections import Counter

import pytest

from builders import make_engine, make_node
from dag_world import DagWorld, job, stage
from eclectus.engine.engine import Engine
from eclectus.model.commands import Bind, Command, RecordPlan
from eclectus.model.events import Event
from eclectus.model.job import Job
from eclectus.policies.carbyne import Carbyne
from eclectus.policies.place.fit import BestFit

REQUESTS = Bind, RecordPlan


class KilledError(Exception):
    """The process has ended."""


class KilledOnce(DagWorld):
    """The world of a process that is killed at one request; `arrives`: whether that one has an effect."""

    kill_at, arrives, requests = 0, False, 0

    def _answer(self, command: Command) -> list[Event]:
        if isinstance(command, REQUESTS):
            self.requests += 1
            if self.requests == self.kill_at:
                if self.arrives:
                    super()._answer(command)
                raise KilledError
        return super()._answer(command)


def engine() -> Engine:
    return make_engine(BestFit(), order=Carbyne())


def jobs() -> list[Job]:
    """Two jobs that compete: one has a long chain beside a wide stage, and lends."""
    chain = stage("a", 1, 500, 1.0), stage("b", 2, 500, 2.0, 0), stage("wide", 4, 500, 1.0)
    return [job("deep", *chain), job("flat", stage("s", 6, 500, 1.0), stage("end", 1, 1000, 0.5, 0))]


def run_killed_at(request: int, *, arrives: bool) -> KilledOnce:
    run = KilledOnce(engine(), [make_node("n", cpu=2, pods=500)])
    run.kill_at, run.arrives = request, arrives
    todo = iter([lambda: run.submit(*jobs()), run.run])
    for part in todo:
        try:
            part()
        except KilledError:
            run.restart(engine())
    return run if len(run.ends) == 2 else run.run()  # type: ignore[return-value]


UNDISTURBED = run_killed_at(0, arrives=True)


@pytest.mark.parametrize("arrives", [False, True], ids=["lost", "unanswered"])
@pytest.mark.parametrize("request_number", range(1, UNDISTURBED.requests + 1))
def test_nothing_is_lost_and_nothing_runs_twice(request_number: int, arrives: bool) -> None:
    run = run_killed_at(request_number, arrives=arrives)
    started = Counter((name, of) for _, name, of in run.starts)
    assert started == {(each.name, of.name): of.tasks for each in jobs() for of in each.stages}
    assert run.ends == pytest.approx(UNDISTURBED.ends)
    assert all(plan.slips == 0 for plans in run.plans.values() for plan in plans)
