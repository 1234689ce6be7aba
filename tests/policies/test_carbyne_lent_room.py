"""Jobs of Carbyne that lend by chance: what is lent stays lent, and what becomes free is drawn for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random

import pytest

from builders import make_engine, make_node
from carbyne_cases import Case, tree
from dag_world import DagWorld, job, stage
from eclectus import tape
from eclectus.accounts.known_jobs import KnownJob
from eclectus.engine.engine import Engine
from eclectus.maths.stage_rank_rules import STAGE_ORDERS
from eclectus.model.commands import Bind, Command
from eclectus.model.events import Event
from eclectus.model.job import Job, JobStage
from eclectus.policies.carbyne import Carbyne
from eclectus.policies.carbyne.lent_room import LentRoom
from eclectus.policies.carbyne.planned_job import PlannedJob
from eclectus.policies.place.fit import BestFit

LENDS, KEEPS = 0.0, 0.99  # what chance says at an altruism of a half


def holder(altruism: float, share: float, usage: float = 0.0) -> PlannedJob:
    """A job with tasks of one core."""
    known = KnownJob(job("j", stage("s", 8, 1, 1.0)))
    found = PlannedJob(known, (8.0,), lambda amounts: (float(dict(amounts)["cpu"]),), STAGE_ORDERS["cp"])
    found.share, found.usage = (share,), (usage,)
    found.lent_room.set_altruism(altruism)
    return found


def test_without_altruism_all_that_the_share_holds_is_kept_and_with_all_of_it_nothing() -> None:
    assert holder(0.0, share=2.0, usage=1.0).keeps_room_for(0)
    assert not holder(0.0, share=2.0, usage=2.0).keeps_room_for(0)
    assert not holder(1.0, share=2.0).keeps_room_for(0)
    assert [holder(altruism, 2.0).lent_room.is_all for altruism in (0.0, 0.5, 1.0)] == [False, False, True]


def test_a_first_task_that_is_larger_than_the_share_is_kept_until_something_is_lent() -> None:
    each = holder(0.5, share=0.5)
    assert each.keeps_room_for(0)
    each.lent_room.lend(each.free)
    assert not each.keeps_room_for(0)


def test_what_is_lent_stays_lent_and_what_becomes_free_is_kept_until_it_is_lent_too() -> None:
    each = holder(0.5, share=4.0, usage=2.0)
    each.lent_room.lend(each.free)
    assert not each.keeps_room_for(0)
    each.usage = (1.0,)
    assert each.keeps_room_for(0)
    each.usage = (2.0,)
    assert not each.keeps_room_for(0)


def test_what_is_used_of_lent_room_is_not_lent_any_more() -> None:
    each = holder(0.5, share=4.0)
    each.lent_room.lend(each.free)
    each.usage = (3.0,)
    each.lent_room.keep_within(each.free)
    assert each.lent_room.amounts == (1.0,)
    each.usage = (0.0,)
    each.lent_room.keep_within(each.free)
    assert each.lent_room.amounts == (1.0,)


def test_with_another_altruism_nothing_is_lent_until_it_is_drawn_for_again() -> None:
    room = LentRoom()
    assert room.set_altruism(0.5)
    room.lend((3.0,))
    assert not room.set_altruism(0.5)
    assert room.amounts == (3.0,)
    assert room.set_altruism(0.25)
    assert room.amounts == ()


class Run(DagWorld):
    """A node of four cores, shared by a job that lends with a probability of one half and one that always
    does.

    `draws`: how often chance was asked. `chance`: what it says then.
    """

    def __init__(self, chance: Callable[[int], float], cpu: float = 4.0) -> None:
        self.order = Carbyne()
        engine = make_engine(BestFit(), order=self.order)
        self.draws = 0

        def drawn() -> float:
            self.draws += 1
            return chance(self.draws)

        engine._state.view.rng.random = drawn  # type: ignore[method-assign]
        super().__init__(engine, [make_node("n", cpu=cpu)])

    def starts_of(self, name: str) -> list[float]:
        """When the tasks of a stage start."""
        return [at for at, _, of in self.starts if of == name]


CHAIN = stage("chain", 1, 1000, 510.0)
WAIT = stage("wait", 1, 1000, 500.0)  # is due at 10 s
OTHER = job("b", stage("short", 100, 1000, 1.0))  # has less work, so what is left over goes to it first


def lender(*stages: JobStage) -> Job:
    return job("a", *stages, altruism=0.5)


def test_a_job_that_keeps_its_share_starts_what_it_holds_and_one_that_lends_what_is_due() -> None:
    keeps, lends = Run(lambda _: KEEPS), Run(lambda _: LENDS)
    for run in (keeps, lends):
        run.submit(lender(CHAIN, WAIT), OTHER)
        run.run(until=12.0)
    assert (keeps.starts_of("wait"), lends.starts_of("wait")) == ([0.0], [10.0])


def test_events_of_others_ask_nobody_who_has_lent_and_what_is_due_gets_the_room_back() -> None:
    run = Run(lambda draws: LENDS if draws == 1 else KEEPS)
    run.submit(lender(CHAIN, WAIT), OTHER)
    run.run(until=9.0)
    assert len(run.starts_of("short")) == 30
    assert (run.draws, run.starts_of("wait")) == (1, [])
    run.run(until=10.0)
    assert (run.draws, run.starts_of("wait")) == (1, [10.0])


def test_room_that_becomes_free_is_drawn_for_and_what_was_lent_before_stays_lent() -> None:
    """At 5 s a task ends. The draw keeps its room, and what is due goes first."""
    run = Run(lambda draws: LENDS if draws == 1 else KEEPS, cpu=8.0)
    first = stage("first", 1, 1000, 5.0)
    run.submit(lender(CHAIN, first, stage("after", 1, 1000, 505.0, 1), stage("wait", 2, 1000, 400.0)), OTHER)
    run.run(until=6.0)
    assert run.starts_of("chain") == [0.0]
    assert (run.draws, run.starts_of("after"), run.starts_of("wait")) == (2, [5.0], [])


def test_a_job_draws_once_in_a_step_however_many_of_its_tasks_start_in_it() -> None:
    run = Run(lambda _: KEEPS, cpu=16.0)
    run.submit(lender(stage("many", 12, 1000, 60.0)), OTHER)
    assert len(run.starts_of("many")) == 8
    assert run.draws == 1


def test_nothing_is_drawn_while_no_task_waits_that_could_start() -> None:
    run = Run(lambda _: KEEPS)
    run.submit(lender(CHAIN), OTHER)
    draws = run.draws
    run.run(until=30.0)
    assert (draws, run.draws) == (1, 1)


@pytest.mark.parametrize("altruism", [0.0, 1.0])
def test_without_altruism_and_with_all_of_it_nothing_is_drawn(altruism: float) -> None:
    run = Run(lambda _: pytest.fail("drawn"))
    run.submit(job("a", CHAIN, WAIT, altruism=altruism), OTHER)
    run.run()


def run_by_chance(seed: int, *jobs: Job) -> Run:
    random = Random(seed)
    run = Run(lambda _: random.random())
    run.submit(*jobs)
    return run


def test_the_more_altruistic_a_job_the_more_often_others_have_its_room() -> None:
    lent = []
    for altruism in (0.0, 0.25, 0.5, 0.75, 1.0):
        runs = [run_by_chance(seed, job("a", CHAIN, WAIT, altruism=altruism), OTHER) for seed in range(24)]
        lent.append(sum(not run.starts_of("wait") for run in runs))
    assert lent == sorted(set(lent))
    assert (lent[0], lent[-1]) == (0, 24)


class Taped(Engine):
    """Writes down what it is asked and answers."""

    def __init__(self, seed: int) -> None:
        made = make_engine(BestFit(), order=Carbyne(altruism=0.5))
        super().__init__([*made._state.profiles.values()], made._state.learn, seed)
        self.steps: list[tape.Step] = []

    def step(self, events: Iterable[Event], now: float) -> list[Command]:
        commands = super().step(events, now)
        self.steps.append(tape.Step(now, tuple(events), tuple(commands)))
        return commands


@pytest.mark.parametrize("in_pools", [False, True])
def test_a_tape_replays_where_jobs_lend_by_chance(in_pools: bool, tmp_path: Path) -> None:
    case, engine = Case(3, in_pools), Taped(seed=7)
    run = DagWorld(engine, [make_node("n", cpu=8, pods=500)], pools=tree(3) if in_pools else [])
    run.submit(*case.jobs(6))
    run.run()
    with tape.TapeWriter(tmp_path / "tape", tape.Header("0", "", 7)) as writer:
        for each in engine.steps:
            writer.step(each.now, each.events, each.commands)
    replayed = Taped(seed=7)
    for each in tape.read(tmp_path / "tape")[1]:
        assert tuple(replayed.step(each.events, each.now)) == each.commands
    assert sum(isinstance(each, Bind) for step in replayed.steps for each in step.commands) == len(run.starts)
