"""Whatever happens in whatever order: no pod bound twice, none lost, no node over-filled, no drift.

Hypothesis drives an engine against a model of the API server (tests/support/model_server.py), with
late, repeated and batched events, lost and refused binds, foreign pods, crashes and lost watches.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from msgspec.structs import replace

from builders import ExactSpeeds, amounts, make_engine, make_node, make_task
from eclectus.engine.engine import Engine
from eclectus.framework import Learn, PlacePolicy
from eclectus.model.events import Event, Paused, Resumed, TaskSeen
from eclectus.model.objects import HostPort, Taint, Task, Toleration
from eclectus.policies.place.allocation import LeastAllocated
from eclectus.policies.place.power_of_two import PowerOfTwo
from eclectus.policies.rosella import Rosella, RosellaLearn
from judge import refusal
from model_server import ModelServer

KINDS = st.sampled_from(
    [
        {"cpu": 1},
        {"cpu": 1},
        {"cpu": 2, "workload": "sort"},
        {"cpu": 3},
        {"cpu": 1, "node_selector": (("zone", "z1"),)},
        {"cpu": 1, "tolerations": (Toleration("t", "Exists"),)},
        {"cpu": 1, "gpus": 1},
        {"cpu": 0, "host_ports": (HostPort(80),)},
        {"cpu": 1, "long_running": True},
        {"cpu": 0, "notional_requests": amounts(1)},
        {"cpu": 9},
    ]
)
SHAPES = st.fixed_dictionaries(
    {
        "cpu": st.sampled_from([1, 2, 4]),
        "pods": st.sampled_from([2, 10]),
        "gpus": st.sampled_from([0, 0, 1]),
        "labels": st.sampled_from([{"zone": "z1"}, {"zone": "z2"}, {}]),
        "taints": st.sampled_from([(), (), (Taint("t"),)]),
        "unschedulable": st.sampled_from([False, False, False, True]),
    }
)
PICK = st.integers(0, 1000)


class Life(RuleBasedStateMachine):
    """One engine, one server, and everything between them."""

    policy: Callable[[], PlacePolicy] = Rosella
    learn: Callable[[], Learn] = RosellaLearn
    central = True  # a waiting pod takes any node with room, sooner or later

    @initialize()
    def begin(self) -> None:
        self.server, self.now, self.serial, self.paused = ModelServer(), 0.0, 0, False
        self.server.put_node(make_node("first", cpu=2))
        self.start()

    # -- the cluster -----------------------------------------------------------------------------

    @rule(kind=KINDS, priority=st.sampled_from([0, 0, 1]), gated=st.booleans())
    def create(self, kind: dict[str, object], priority: int, gated: bool) -> None:
        self.serial += 1
        gates = ("gate",) if gated and priority else ()
        name = f"t{self.serial}"
        self.server.put_task(make_task(name, created=self.now, priority=priority, gates=gates, **kind))

    @rule(kind=KINDS, count=st.integers(2, 6))
    def create_many(self, kind: dict[str, object], count: int) -> None:
        for _ in range(count):
            self.create(kind, 0, False)

    @rule(pick=PICK)
    def delete(self, pick: int) -> None:
        if uid := self._some(self.server.tasks, pick):
            self.server.drop_task(uid)

    @rule(pick=PICK, change=st.sampled_from(["priority", "gates", "deleting", "tolerations", "held"]))
    def update(self, pick: int, change: str) -> None:
        if uid := self._some(self.server.tasks, pick):
            self.server.put_task(self._changed(self.server.tasks[uid], change))

    @rule(pick=PICK, seconds=st.sampled_from([1.0, 5.0, 40.0]))
    def end(self, pick: int, seconds: float) -> None:
        running = [uid for uid, task in self.server.tasks.items() if task.node and not task.spec.long_running]
        if uid := self._some(running, pick):
            self.server.end_task(uid, self.now, seconds)

    @rule(shape=SHAPES)
    def add_node(self, shape: dict[str, object]) -> None:
        if len(self.server.nodes) < 6:
            self.serial += 1
            self.server.put_node(make_node(f"n{self.serial}", **shape))

    @rule(pick=PICK, shape=SHAPES)
    def alter_node(self, pick: int, shape: dict[str, object]) -> None:
        if name := self._some(self.server.nodes, pick):
            self.server.put_node(make_node(name, **shape))

    @rule(pick=PICK)
    def drop_node(self, pick: int) -> None:
        if name := self._some(self.server.nodes, pick):
            self.server.drop_node(name)

    @rule(pick=PICK)
    def bring_node_back(self, pick: int) -> None:
        if name := self._some(self.server.nodes, pick):
            node = self.server.nodes[name]
            self.server.drop_node(name)
            self.server.put_node(node)

    @rule(pick=PICK, kind=KINDS, promised=st.booleans())
    def foreign(self, pick: int, kind: dict[str, object], promised: bool) -> None:
        """Another scheduler takes room that it sees, whatever we have asked for meanwhile."""
        name = self._some(self.server.nodes, pick)
        self.serial += 1
        task = make_task(f"f{self.serial}", profile="other", **kind)
        if name and not refusal(task, self.server.nodes[name], self.server.on(name)):
            self.server.put_task(replace(task, nominated=name) if promised else replace(task, node=name))

    # -- between -----------------------------------------------------------------------------------

    @rule(nodes=st.integers(0, 9), tasks=st.integers(0, 9), after=st.sampled_from([0.0, 0.1, 1.0, 30.0]))
    def deliver(self, nodes: int, tasks: int, after: float) -> None:
        self.step(self.server.deliver(nodes, tasks), after)

    @rule()
    def deliver_all(self) -> None:
        self.step(self.server.deliver(999, 999))

    @rule(pick=PICK, how=st.sampled_from(["answer", "answer", "answer", "refuse", "lose", "lose late"]))
    @precondition(lambda self: self.server.binds_in_flight)
    def settle_bind(self, pick: int, how: str) -> None:
        at = pick % len(self.server.binds_in_flight)
        if how.startswith("lose"):
            self.server.lose(at, before=how == "lose")
        else:
            self.step([self.server.answer(at) if how == "answer" else self.server.refuse(at)])

    @rule()
    def look_for_lost(self) -> None:
        self.step(list(self.server.resolve_lost_binds()))

    @rule(pick=PICK)
    def repeat(self, pick: int) -> None:
        """The newest word on a pod once more; and, of one that is bound, an older one."""
        known = self.server.delivered.tasks
        if uid := self._some(known, pick):
            self.step([TaskSeen(known[uid])])
            if known[uid].node:
                self.engine_only([TaskSeen(replace(known[uid], node=""))])

    @rule(pick=PICK)
    def come_late(self, pick: int) -> None:
        """A word on a pod that the engine knows to be gone."""
        if self.gone:
            self.engine_only([TaskSeen(self.gone[pick % len(self.gone)])])

    @rule()
    def wake(self) -> None:
        at = self.engine.next_step_at()
        if at is not None:
            self.step([], max(0.0, at - self.now))

    @rule()
    def pause_or_resume(self) -> None:
        self.paused = not self.paused
        self.step([Paused() if self.paused else Resumed()])

    @rule()
    def lose_the_watch(self) -> None:
        self.step([Paused()])
        self.step([*self.server.relist(), Resumed()])
        self.paused = False

    @rule(applied=st.booleans())
    def crash(self, applied: bool) -> None:
        """The process dies; what it had asked for is done or not, and another begins from the store alone."""
        while self.server.binds_in_flight:
            self.server.lose(0, before=not applied)
        self.server.lost_binds = []
        self.start()

    # -- promises ----------------------------------------------------------------------------------

    @invariant()
    def everybody_stands_in_one_queue(self) -> None:
        state, known = self.engine._state, self.server.delivered
        for task in known.waiting():
            places = [
                task.uid in each
                for each in (state.class_queues, state.node_queues, state.backoff, state._gated)
            ]
            assert sum(places) == 1, f"{task}: {places}"
        standing = len(state.class_queues) + len(state.node_queues) + len(state.backoff) + len(state._gated)
        assert standing == len(known.waiting())
        assert self.engine.queue_counts().counters.missed_activations == 0

    @invariant()
    def the_picture_is_what_was_delivered(self) -> None:
        cluster, known = self.engine._state.cluster, self.server.delivered
        assert set(cluster.rows) == set(known.nodes)
        for name, node in known.nodes.items():
            row, residents = cluster.rows[name], known.on(name)
            lasting = [task for task in residents if task.spec.long_running]
            _same(cluster, cluster.allocatable[row], [dict(node.allocatable)])
            _same(cluster, cluster.used[row], [{"pods": 1, **dict(task.holding)} for task in residents])
            _same(cluster, cluster.long_running[row], [{"pods": 1, **dict(task.holding)} for task in lasting])
            scored = np.array([task.spec.score_requests for task in residents]).reshape(-1, 2).sum(axis=0)
            assert tuple(cluster.scored[row]) == tuple(scored)
            assert bool(cluster.cordoned[row]) == node.unschedulable
        ports = sum(len(task.spec.host_ports) for name in known.nodes for task in known.on(name))
        assert sum(sum(rows.values()) for rows in cluster.port_rows.values()) == ports

    @invariant()
    def meant_room_is_that_of_lines_and_plans(self) -> None:
        state = self.engine._state
        meant = [*state.deferrals._rows.values()]
        for row, line in state.node_queues.by_row.items():
            assert all(claim.tasks and claim.rows.count(row) == line.count(claim) for claim in line)
            meant += [(claim.head, row) for claim in line if claim.is_tentative]
        expected = np.zeros_like(state.cluster.tentative)
        for task, row in meant:
            expected[row] += state.cluster.task_vector(task.spec.requests)
        assert np.array_equal(state.cluster.tentative, expected)

    def teardown(self) -> None:
        if not hasattr(self, "server"):
            return
        self.paused = False
        self.step([Resumed()])
        self.quiet()
        for uid in [uid for uid, task in self.server.tasks.items() if task.nominated and not task.node]:
            self.server.drop_task(uid)
        self.quiet()
        for _ in range(len(self.server.tasks)):  # each round ends one of them
            running = [
                uid for uid, task in self.server.tasks.items() if task.node and not task.spec.long_running
            ]
            if not running:
                break
            self.server.end_task(running[0], self.now, 5.0)
            self.quiet()
        self.nobody_is_lost(all_bound=True)

    def quiet(self) -> None:
        """Everything is delivered and answered, until the engine has nothing more to do for minutes."""
        calm = 0
        while calm < 12:
            self.step([*self.server.resolve_lost_binds(), *self.server.deliver(999, 999)])
            while self.server.binds_in_flight:
                self.step([self.server.answer(0)])
            calm = 0 if self.server.task_watch or self.server.node_watch else calm + 1
            if calm:
                at = self.engine.next_step_at()
                self.step([], max(0.0, min(40.0, at - self.now)) if at is not None else 0.0)
        self.nobody_is_lost(all_bound=self.central)

    def nobody_is_lost(self, all_bound: bool) -> None:
        server = self.server
        for task in server.delivered.waiting():
            if task.gates:
                continue
            assert task.reported, f"{task} waits and was told nothing"
            refusals = [refusal(task, node, server.delivered.on(name)) for name, node in server.nodes.items()]
            assert not all_bound or all(refusals), f"{task} could run: {refusals}"

    # -- within --------------------------------------------------------------------------------------

    def start(self) -> None:
        self.engine: Engine = make_engine(self.policy(), self.learn(), seed=7)
        self.gone: list[Task] = []
        self.server.delivered = type(self.server.delivered)()
        self.paused = False
        self.step([*self.server.relist(), Resumed()])

    def step(self, events: list[Event], after: float = 0.0) -> None:
        self.now += after
        known = self.server.delivered
        for event in events:
            before = dict(known.tasks)
            known.apply(event)
            self.gone += [before[uid] for uid in before.keys() - known.tasks.keys()]
        self.engine_only(events)

    def engine_only(self, events: list[Event]) -> None:
        self.server.accept(self.engine.step(events, self.now))

    def _some(self, things: object, pick: int) -> str:
        names = list(things)  # type: ignore[call-overload]
        return names[pick % len(names)] if names else ""

    def _changed(self, task: Task, change: str) -> Task:
        match change:
            case "priority":
                return replace(task, priority=task.priority + 1)
            case "gates" if not task.node and task.profile == "eclectus":
                return replace(task, gates=() if task.gates else ("gate",))
            case "deleting":
                return replace(task, deleting=True)
            case "tolerations" if not task.node:
                return replace(task, spec=replace(task.spec, tolerations=(Toleration("t", "Exists"),)))
            case "held" if task.node:
                return replace(task, held=None if task.held else amounts(cpu=2))
        return task


def _same(cluster: object, row: object, parts: list[dict[str, int]]) -> None:
    total = {name: sum(part.get(name, 0) for part in parts) for name in cluster.columns}  # type: ignore[attr-defined]
    counted = {name: row[column] for name, column in cluster.columns.items()}  # type: ignore[attr-defined,index]
    assert counted == total


UNEQUAL = {f"n{serial}": 1.0 if serial % 2 else 0.125 for serial in range(1000)}  # rates, tasks a second
KNOWN = partial(ExactSpeeds, UNEQUAL, otherwise=0.125)
LEARNED = partial(RosellaLearn, window=8)
WAYS = {
    "replan": (Rosella, KNOWN, True),
    "replan-learned": (Rosella, LEARNED, True),
    "replan-selfish": (partial(Rosella, theta=1), KNOWN, True),
    "sampled-lines": (partial(Rosella, view="sample"), LEARNED, False),
    "committed-lines": (partial(Rosella, replan=False, compare="sed"), KNOWN, False),
    "least-allocated": (LeastAllocated, LEARNED, True),
    "two-choices": (PowerOfTwo, LEARNED, True),
}


def live(way: str, examples: int, steps: int, derandomize: bool) -> None:
    policy, learn, central = WAYS[way]
    ways = {"policy": staticmethod(policy), "learn": staticmethod(learn), "central": central}
    how = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        derandomize=derandomize,
        print_blob=False,
    )
    run_state_machine_as_test(type(f"Life_{way}", (Life,), ways), settings=how)


@pytest.mark.parametrize("way", WAYS)
def test_promises_hold_whatever_happens(way: str) -> None:
    live(way, examples=60, steps=40, derandomize=True)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_promises_hold_in_many_more_lives(way: str) -> None:
    live(way, examples=300, steps=60, derandomize=False)
