"""Requirements on every policy of the table, alone and in pairs with policies of other roles.

A new entry of the table is included automatically; policy_choices.py says in which company. The last part
shows that each check can fail.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any
from zlib import crc32

import numpy as np
import pytest

from builders import make_engine, make_node, make_task
from changed_arrays import changed_array
from eclectus.engine.engine import Engine
from eclectus.framework import (
    Action,
    Bind,
    Completion,
    Enqueue,
    Learn,
    LearnedCell,
    Place,
    Reason,
    Speeds,
    Unschedulable,
    View,
)
from eclectus.model.commands import Bind as BindCommand
from eclectus.model.commands import Command, Fault, Report
from eclectus.model.events import (
    BindRefused,
    Event,
    NodeGone,
    NodeSeen,
    PoolSeen,
    Resumed,
    TaskGone,
    TaskSeen,
)
from eclectus.model.objects import Task
from eclectus.policies import table
from eclectus.policies.order.pools import FairPools
from eclectus.policies.place.allocation import LeastAllocated
from judge import refusal
from policy_choices import Choice, Way, Ways, every_way
from random_stories import Story, digest

WAYS = every_way()
SUPPORT = Path(__file__).parent.parent / "support"
REST_SECONDS = 1500.0  # the limit, and again for pods whose binds are refused

every = pytest.mark.parametrize("way", WAYS, ids=str)


def test_every_policy_of_the_table_is_checked() -> None:
    asked = {(role, choice.name) for way in WAYS for role, choice in way.choices.items()}
    assert asked == {(role, name) for role, policies in table.ROLES.items() for name in policies}


def test_every_pair_of_policies_is_checked_unless_it_is_refused_in_any_company() -> None:
    ways = Ways()
    checked = {_names(pair) for way in WAYS for pair in way.pairs}
    every = [choice for known in ways.representatives.values() for choice in known]
    for one, other in combinations(every, 2):
        if one.role != other.role and _names((one, other)) not in checked:
            assert not any(ways.accepted([one, other])), f"{one.role}: {one}, {other.role}: {other}"


def _names(pair: Iterable[Choice]) -> frozenset[tuple[str, str]]:
    return frozenset((choice.role, str(choice)) for choice in pair)


# -- the requirements ----------------------------------------------------------------------------------


def binds_only_what_fits_and_writes_nothing(make: Callable[[], Engine]) -> None:
    """The story checks each Bind; the engine found no invalid action, and all arrays are as it wrote them."""
    engine = make()
    story = Story(engine, seed=3).run(50)
    assert [command for command in story.commands if isinstance(command, Fault)] == []
    assert changed_array(engine) == ""


def decides_equally(make: Callable[[], Engine]) -> None:
    assert digest(make()) == digest(make())


def loses_no_task(make: Callable[[], Engine]) -> None:
    """When nothing more happens, a task that waits has a message, and fits nowhere or is looked at again."""
    story = Story(make(), seed=7).run(60).drain()
    reports = {command.uid: command for command in story.commands if isinstance(command, Report)}
    for task in story.waiting():
        report = reports.get(task.uid)
        assert task.gates or (report and report.message), f"{task} has no message"
        refusals = [refusal(task, node, story._on(node.name)) for node in story.nodes.values()]
        has_room = not all(refusals) and not story.is_limited(task)
        assert task.gates or not has_room or _waits_by_choice(story, report), f"{task} could run"


def _waits_by_choice(story: Story, report: Report | None) -> bool:
    """Whether the task waits for a node, not refused, and the engine looks at it again if nothing happens."""
    if report is None or report.reason != "WaitingForNode":
        return False
    queued, at = story.engine._state.places.queued(report.uid), story.engine.next_step_at()
    is_refused = queued is not None and queued.pending.unschedulable_since is not None
    return not is_refused and at is not None and at > story.now


def conserves_work(make: Callable[[], Engine], seed: int = 5) -> None:
    """Whatever is believed: after its profile's limit no pod waits while a feasible node has room for it."""
    story = Story(make(), seed).run(30).rest(REST_SECONDS)
    for task in story.waiting():
        refusals = [refusal(task, node, story._on(node.name)) for node in story.nodes.values()]
        has_room = not all(refusals) and not story.is_limited(task)
        assert task.gates or not has_room, f"{task} waits beside room: {refusals}"


class Beliefs(Learn):
    """Rates that have nothing to do with the nodes, some 0, others anew with every completed task."""

    def __init__(self, seed: int) -> None:
        self._random, self._epoch, self._rate = Random(f"beliefs {seed}"), 0, np.zeros(0)

    def add_node(self, row: int, node: str, capacity: int) -> None:
        self._rate = np.pad(self._rate, (0, capacity - len(self._rate)))
        self._believe()

    def remove_node(self, row: int) -> None:
        self._believe()

    def observe(self, done: Completion) -> None:
        self._believe()

    def speeds(self, workload: str) -> Speeds:
        return Speeds(self._rate, 1e3, self._epoch)

    def learned_cells(self, after: str = "") -> Iterator[LearnedCell]:
        return iter(())

    def _believe(self) -> None:
        rates = (0.0, 0.0, 1e-6, 1.0, 1e3)
        self._rate = np.array([self._random.choice(rates) for _ in self._rate])
        self._epoch += 1


def survives_disappearance(make: Callable[[], Engine]) -> None:
    """Events before there is a node; nodes and pods gone in the same step, and between bind and answer."""
    engine = make()
    commands = engine.step([Resumed(), TaskSeen(make_task("early", cpu=99))], 0.0)
    nodes = [NodeSeen(make_node(f"n{at}", cpu=2)) for at in range(3)]
    tasks = [TaskSeen(make_task(f"t{at}")) for at in range(9)]
    commands += engine.step([*nodes, *tasks, NodeGone("n0"), TaskGone("uid-t0")], 0.0)
    asked = [command for command in commands if isinstance(command, BindCommand)]
    gone = [TaskGone(f"uid-t{at}") for at in range(5)]
    commands += engine.step([NodeGone("n1"), NodeGone("n2"), *gone], 1.0)
    commands += engine.step([BindRefused(bind.uid, bind.node, "gone") for bind in asked], 2.0)
    commands += engine.step([NodeSeen(make_node("m", cpu=20))], 30.0)
    assert [command for command in commands if isinstance(command, Fault)] == []
    assert engine.queue_counts().binding == 4
    assert engine._state.cluster.used[:, 1].sum() == 4000.0


@every
def test_every_bind_fits_and_no_policy_writes_to_the_view(way: Way) -> None:
    binds_only_what_fits_and_writes_nothing(way.engine)


@every
def test_no_task_is_lost_and_every_pending_task_has_a_message(way: Way) -> None:
    loses_no_task(way.engine)


@every
def test_no_pod_waits_beside_room_for_longer_than_the_limit_whatever_is_believed(way: Way) -> None:
    # A story of its own for each way, because one meets what another does not.
    conserves_work(lambda: way.engine(learner=Beliefs(1)), seed=crc32(str(way).encode()))


@every
def test_nodes_and_pods_may_disappear_at_any_time(way: Way) -> None:
    survives_disappearance(way.engine)


@pytest.mark.long
def test_equal_seeds_decide_alike_whatever_the_hash_seed_of_the_process() -> None:
    printed = [_run(["-m", "random_stories"], hash_seed) for hash_seed in ("1", "2")]
    assert printed[0] == printed[1]
    assert len(printed[0].splitlines()) == len(WAYS)


def _run(arguments: list[str], hash_seed: str) -> str:
    folders = (SUPPORT, *filter(Path.is_dir, SUPPORT.iterdir()), Path(__file__).parent)
    path = os.pathsep.join(map(str, folders))
    env = os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": path}
    command = [sys.executable, *arguments]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=True, timeout=120).stdout


def test_another_seed_gives_other_decisions_where_draws_are_random() -> None:
    way = next(way for way in WAYS if "view=sample" in str(way))
    assert digest(way.engine(seed=1)) != digest(way.engine(seed=2))


# -- a policy that violates a requirement is found ---------------------------------------------------


class Violating(LeastAllocated):
    """Violates one requirement."""

    def __init__(self, violation: Callable[[View, Task], Action | None]) -> None:
        super().__init__()
        self._violation = violation

    def place(self, view: View, pending: Iterator[Task]) -> Iterator[Action]:
        for task in pending:
            action = self._violation(view, task)
            if action is None:
                yield from super().place(view, iter([task]))
            else:
                yield action


def _writes_to_the_table(view: View, task: Task) -> None:
    view.cluster.used[0, 0] += 1


def _changes_its_class(view: View, task: Task) -> None:
    view.task_class(task).preference_score[:] = 0.5


def _goes_anywhere(view: View, task: Task) -> Action:
    return Bind(task, 0)


def _forgets(view: View, task: Task) -> Action:
    return Unschedulable(task, Reason("come back never"))


def _hashes(view: View, task: Task) -> Action:
    rows = view.task_class(task).fits_now_rows
    return Bind(task, int(rows[hash(task.name) % len(rows)])) if len(rows) else Unschedulable(task)


def _enqueues_at_an_unsuitable_node(view: View, task: Task) -> Action:
    return Enqueue(task, len(view.cluster.names) - 1)


PLANTED = [
    (binds_only_what_fits_and_writes_nothing, _goes_anywhere),
    (binds_only_what_fits_and_writes_nothing, _enqueues_at_an_unsuitable_node),
    (loses_no_task, _forgets),
    (conserves_work, _forgets),
    (binds_only_what_fits_and_writes_nothing, _writes_to_the_table),
    (binds_only_what_fits_and_writes_nothing, _changes_its_class),
    (survives_disappearance, _goes_anywhere),
]


@pytest.mark.parametrize(("requirement", "violation"), PLANTED, ids=lambda part: part.__name__)
def test_a_policy_that_violates_a_requirement_is_found(requirement: Any, violation: Any) -> None:
    with pytest.raises(AssertionError):
        requirement(lambda: make_engine(Violating(violation), wait_limit=None))


def test_an_engine_that_passes_a_limit_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = make_engine(LeastAllocated(), order=FairPools())
    step = engine.step

    def without_pools(events: list[Event], now: float) -> list[Command]:
        return step([each for each in events if not isinstance(each, PoolSeen)], now)

    monkeypatch.setattr(engine, "step", without_pools)
    with pytest.raises(AssertionError, match="beyond the limit of capped"):
        binds_only_what_fits_and_writes_nothing(lambda: engine)


def test_a_policy_with_a_random_source_of_its_own_is_found() -> None:
    from random import SystemRandom

    def rolls(view: View, task: Task) -> Action:
        rows = view.task_class(task).fits_now_rows
        return Bind(task, int(SystemRandom().choice(rows))) if len(rows) else Unschedulable(task)

    with pytest.raises(AssertionError):
        decides_equally(lambda: make_engine(Violating(rolls)))


@pytest.mark.long
def test_a_policy_that_depends_on_the_hash_seed_is_found() -> None:
    code = "import test_contract as c; print(c.digest(c.make_engine(c.Violating(c._hashes))))"
    assert len({_run(["-c", code], hash_seed) for hash_seed in "123"}) > 1


def test_the_same_policy_without_a_violation_passes() -> None:
    def valid() -> Engine:
        return make_engine(Violating(lambda view, task: None))

    for requirement in (decides_equally, *dict(PLANTED)):
        requirement(valid)


def test_place_policies_have_the_role_s_type() -> None:
    assert all(issubclass(policy, Place) for policy in table.PLACE.values())
