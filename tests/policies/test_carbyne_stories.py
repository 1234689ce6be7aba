"""Whatever happens to jobs and pods, Carbyne makes no fault, and what it keeps is what asking anew gives."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest

from builders import ExactSpeeds, make_engine
from dag_stories import DagStory, PoolStory
from eclectus.engine.engine import Engine
from eclectus.framework import Place, View
from eclectus.model.commands import Bind, Fault, RecordPlan
from eclectus.policies.carbyne import Carbyne
from eclectus.policies.carbyne.planner import Planner
from eclectus.policies.carbyne.shares_by_pool import SharesByPool
from eclectus.policies.place.fit import BestFit
from eclectus.policies.rosella import Rosella
from random_stories import Story

SETTINGS: list[dict[str, Any]] = [
    {},
    {"altruism": 0.5},
    {"overhang": "bounded", "by": "job"},
    {"leftover": "none"},
]


def engine(place: Place, settings: dict[str, Any], kind: type[Engine] = Engine) -> Engine:
    made = make_engine(place, order=Carbyne(**settings), learn=ExactSpeeds({}))
    return made if kind is Engine else kind([*made._state.profiles.values()], made._state.learn)


class Forgetful(Engine):
    """Keeps no ranks from one step to the next, and asks about every withheld class."""

    def step(self, events, now):  # type: ignore[no-untyped-def]
        queues = self._state.class_queues
        for pending in list(queues):
            pending._ranks = pending._ages = None
            pending._heaps = ()
            if pending.is_withheld:
                queues.activate(pending)
        return super().step(events, now)


def decisions(story: Story) -> list[object]:
    return [command for command in story.commands if not isinstance(command, RecordPlan)]


@pytest.mark.parametrize(("story", "place"), [(DagStory, BestFit), (DagStory, Rosella), (PoolStory, BestFit)])
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_kept_ranks_give_the_same_order_as_ranks_asked_anew(
    story: type[DagStory], place: type[Place], settings: dict[str, Any], seed: int
) -> None:
    kept = story(engine(place(), settings), seed).run(60)
    anew = story(engine(place(), settings, Forgetful), seed).run(60)
    assert [each for each in kept.commands if isinstance(each, Fault)] == []
    assert any(isinstance(each, Bind) for each in kept.commands)
    assert decisions(kept) == decisions(anew)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_what_is_kept_of_jobs_is_bounded_by_what_exists(settings: dict[str, Any], seed: int) -> None:
    made = engine(BestFit(), settings)
    story = DagStory(made, seed).run(80)
    state = made._state
    jobs, planner = state.accounts.jobs, state.profiles["eclectus"].order._planner  # type: ignore[attr-defined]
    assert jobs is not None
    assert planner.jobs.keys() <= jobs.keys()
    assert jobs._pods.keys() <= story.tasks.keys()
    assert planner.bookings._changes.keys() <= {*planner.jobs, *planner.plain.by_path}
    assert planner._wanting <= planner.jobs.keys()


@pytest.mark.parametrize("settings", SETTINGS[:2], ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_shares_that_are_kept_by_pool_are_those_that_are_computed_anew(
    settings: dict[str, Any], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    share, compared = Planner._share, list[int]()

    def checked(self: Planner, view: View) -> Collection[str]:
        found = share(self, view)
        if self.by_pool is not None:
            plain = self.plain.by_path
            kept = {uid: (job.share, job.may_exceed) for uid, job in self.jobs.items()}
            of_plain = {path: pods.share for path, pods in plain.items()}
            SharesByPool(view.pools, self.offered).update(self.jobs, plain, [*self.jobs, *plain])
            assert {uid: (job.share, job.may_exceed) for uid, job in self.jobs.items()} == kept
            assert {path: pods.share for path, pods in plain.items()} == of_plain
            compared.append(len(kept))
        return found

    monkeypatch.setattr(Planner, "_share", checked)
    PoolStory(engine(BestFit(), settings), seed).run(60)
    assert len(compared) > 10
    assert max(compared) >= 3
