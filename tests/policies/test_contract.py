"""What every policy of every role must keep, whatever it is: asked of each entry of the table.

A policy joins by standing in the table; the last part shows that each check can fail.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from builders import make_engine, make_node, make_task
from eclectus.engine.engine import Engine
from eclectus.framework import Action, Enqueue, Place, PlacePolicy, Reason, Unschedulable, View
from eclectus.model.commands import Bind, Fault, Report
from eclectus.model.events import BindRefused, NodeGone, NodeSeen, Resumed, TaskGone, TaskSeen
from eclectus.model.objects import Task
from eclectus.policies import table
from eclectus.policies.place.allocation import LeastAllocated
from judge import refusal
from stories import Story, digest
from tamper import bent, watch
from ways import Way, every_way

WAYS = list(every_way())
SUPPORT = Path(__file__).parent.parent / "support"

every = pytest.mark.parametrize("way", WAYS, ids=str)


def test_no_policy_of_the_table_is_left_out() -> None:
    asked = {(way.role, way.name.split()[0]) for way in WAYS}
    assert asked == {(role, name) for role, policies in table.ROLES.items() for name in policies}


# -- the promises ----------------------------------------------------------------------------------


def binds_only_what_fits(make: Callable[[], Engine]) -> None:
    """The story judges each bind as it is asked for, and the engine had nothing to refuse."""
    for seed in range(2):
        story = Story(make(), seed).run(80)
        assert [command for command in story.commands if isinstance(command, Fault)] == []


def decides_alike(make: Callable[[], Engine]) -> None:
    assert digest(make()) == digest(make())


def loses_nobody(make: Callable[[], Engine]) -> None:
    """Once quiet comes, who still waits could run nowhere, and has been told why."""
    story = Story(make(), seed=7).run(100).drain()
    told = {command.uid for command in story.commands if isinstance(command, Report) and command.message}
    for task in story.waiting():
        refusals = [refusal(task, node, story._on(node.name)) for node in story.nodes.values()]
        assert task.gates or all(refusals), f"{task} could run"
        assert task.gates or task.uid in told, f"{task} was told nothing"


def writes_nothing(make: Callable[[], Engine]) -> None:
    engine = watch(make())
    story = Story(engine, seed=3).run(60)
    assert [command for command in story.commands if isinstance(command, Fault)] == []
    assert bent(engine) == ""


def survives_what_vanishes(make: Callable[[], Engine]) -> None:
    """Before there is any node; gone in the very step; gone between a bind and its answer."""
    engine = make()
    commands = engine.step([Resumed(), TaskSeen(make_task("early", cpu=99))], 0.0)
    nodes = [NodeSeen(make_node(f"n{at}", cpu=2)) for at in range(3)]
    tasks = [TaskSeen(make_task(f"t{at}")) for at in range(9)]
    commands += engine.step([*nodes, *tasks, NodeGone("n0"), TaskGone("uid-t0")], 0.0)
    asked = [command for command in commands if isinstance(command, Bind)]
    gone = [TaskGone(f"uid-t{at}") for at in range(5)]
    commands += engine.step([NodeGone("n1"), NodeGone("n2"), *gone], 1.0)
    commands += engine.step([BindRefused(bind.uid, bind.node, "gone") for bind in asked], 2.0)
    commands += engine.step([NodeSeen(make_node("m", cpu=20))], 30.0)
    assert [command for command in commands if isinstance(command, Fault)] == []
    assert engine.queue_counts().binding == 4
    assert engine._state.cluster.used[:, 1].sum() == 4000.0


@every
def test_every_bind_fits(way: Way) -> None:
    binds_only_what_fits(way.engine)


@every
def test_equal_seeds_decide_alike(way: Way) -> None:
    decides_alike(way.engine)


@every
def test_nobody_is_lost_and_whoever_waits_is_told_why(way: Way) -> None:
    loses_nobody(way.engine)


@every
def test_nothing_is_written_to_what_may_only_be_read(way: Way) -> None:
    writes_nothing(way.engine)


@every
def test_nodes_and_pods_may_vanish_at_any_moment(way: Way) -> None:
    survives_what_vanishes(way.engine)


def test_no_decision_hangs_on_the_hash_seed_of_the_process() -> None:
    told = [_run(["-m", "stories"], hash_seed) for hash_seed in ("1", "2")]
    assert told[0] == told[1]
    assert len(told[0].splitlines()) == len(WAYS)


def _run(arguments: list[str], hash_seed: str) -> str:
    path = os.pathsep.join((str(SUPPORT), str(Path(__file__).parent)))
    env = os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": path}
    command = [sys.executable, *arguments]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=True, timeout=120).stdout


def test_another_seed_decides_otherwise_where_chance_plays() -> None:
    way = next(way for way in WAYS if "view=sample" in way.name)
    assert digest(way.engine(seed=1)) != digest(way.engine(seed=2))


# -- a new policy that breaks a promise is found ---------------------------------------------------


class Bad(LeastAllocated):
    """Does one forbidden thing."""

    def __init__(self, sin: Callable[[View, Task], Action | None]) -> None:
        self._sin = sin

    def place(self, view: View, turns: Iterator[Task]) -> Iterator[Action]:
        for task in turns:
            action = self._sin(view, task)
            if action is None:
                yield from super().place(view, iter([task]))
            else:
                yield action


def _writes_the_ledger(view: View, task: Task) -> None:
    view.cluster.used[0, 0] += 1


def _bends_its_class(view: View, task: Task) -> None:
    view.task_class(task).preference_score[:] = 0.5


def _goes_anywhere(view: View, task: Task) -> Action:
    return Place(task, 0)


def _forgets(view: View, task: Task) -> Action:
    return Unschedulable(task, Reason("come back never"))


def _hashes(view: View, task: Task) -> Action:
    rows = view.task_class(task).fits_now_rows
    return Place(task, int(rows[hash(task.name) % len(rows)])) if len(rows) else Unschedulable(task)


def _joins_what_is_closed(view: View, task: Task) -> Action:
    return Enqueue(task, len(view.cluster.names) - 1)


PLANTED = [
    (binds_only_what_fits, _goes_anywhere),
    (binds_only_what_fits, _joins_what_is_closed),
    (loses_nobody, _forgets),
    (writes_nothing, _writes_the_ledger),
    (writes_nothing, _bends_its_class),
    (survives_what_vanishes, _goes_anywhere),
]


@pytest.mark.parametrize(("promise", "sin"), PLANTED, ids=lambda part: part.__name__)
def test_a_policy_that_breaks_a_promise_is_found(promise: Any, sin: Any) -> None:
    with pytest.raises(AssertionError):
        promise(lambda: make_engine(Bad(sin)))


def test_a_policy_with_chance_of_its_own_is_found() -> None:
    from random import SystemRandom

    def rolls(view: View, task: Task) -> Action:
        rows = view.task_class(task).fits_now_rows
        return Place(task, int(SystemRandom().choice(rows))) if len(rows) else Unschedulable(task)

    with pytest.raises(AssertionError):
        decides_alike(lambda: make_engine(Bad(rolls)))


def test_a_policy_that_hangs_on_the_hash_seed_is_found() -> None:
    code = "import test_contract as c, stories; print(stories.digest(c.make_engine(c.Bad(c._hashes))))"
    assert len({_run(["-c", code], hash_seed) for hash_seed in "123"}) > 1


def test_the_good_one_of_the_planted_breaks_nothing() -> None:
    def good() -> Engine:
        return make_engine(Bad(lambda view, task: None))

    for promise in (decides_alike, *dict(PLANTED)):
        promise(good)


def test_policies_are_made_for_their_roles() -> None:
    assert all(issubclass(policy, PlacePolicy) for policy in table.PLACE.values())
