"""Invariants under random events: no pod bound twice or lost, no node overcommitted, correct arrays.

Hypothesis drives an engine against a model of the API server (tests/support/model_server.py), with late,
repeated and batched events, lost and refused binds, foreign pods, crashes and lost watches.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

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

from builders import ExactSpeeds, amounts, make_engine, make_node, make_profile, make_task
from eclectus.engine.engine import Engine
from eclectus.framework import Learn, PlacePolicy, Relieve
from eclectus.model.events import BudgetSeen, Event, Paused, Resumed, TaskSeen
from eclectus.model.objects import Budget, HostPort, Requirement, Taint, Task, Toleration
from eclectus.policies.place.allocation import LeastAllocated
from eclectus.policies.place.power_of_two import PowerOfTwo
from eclectus.policies.relieve.none import NoRelief
from eclectus.policies.relieve.preemption import Preemption
from eclectus.policies.rosella import Rosella, RosellaLearn
from judge import refusal
from model_server import ModelServer

POD_FIELDS = st.sampled_from(
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
NODE_FIELDS = st.fixed_dictionaries(
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
LIMIT_SECONDS = make_profile().settings.wait_limit or 0.0


class EngineMachine(RuleBasedStateMachine):
    """One engine, one server, and the watches and answers between them."""

    policy: Callable[[], PlacePolicy] = Rosella
    learn: Callable[[], Learn] = RosellaLearn
    relieve: Callable[[], Relieve] = Preemption

    @initialize()
    def initialise(self) -> None:
        self.server, self.now, self.serial, self.paused = ModelServer(), 0.0, 0, False
        self.server.put_node(make_node("first", cpu=2))
        self.start()

    # -- the cluster -----------------------------------------------------------------------------

    @rule(fields=POD_FIELDS, priority=st.sampled_from([0, 0, 1, 2]), gated=st.booleans())
    def create(self, fields: dict[str, object], priority: int, gated: bool) -> None:
        self.serial += 1
        gates = ("gate",) if gated and priority else ()
        name, labels = f"t{self.serial}", (("app", f"a{self.serial % 3}"),)
        self.server.put_task(
            make_task(name, created=self.now, priority=priority, gates=gates, labels=labels, **fields)
        )

    @rule(fields=POD_FIELDS, count=st.integers(2, 6))
    def create_many(self, fields: dict[str, object], count: int) -> None:
        for _ in range(count):
            self.create(fields, 0, False)

    @rule(pick=PICK)
    def delete(self, pick: int) -> None:
        if uid := self._pick(self.server.tasks, pick):
            self.server.drop_task(uid)

    @rule(pick=PICK, change=st.sampled_from(["priority", "gates", "deleting", "tolerations", "held"]))
    def update(self, pick: int, change: str) -> None:
        if uid := self._pick(self.server.tasks, pick):
            self.server.put_task(self._changed(self.server.tasks[uid], change))

    @rule(pick=PICK, seconds=st.sampled_from([1.0, 5.0, 40.0]))
    def end(self, pick: int, seconds: float) -> None:
        running = [uid for uid, task in self.server.tasks.items() if task.node and not task.spec.long_running]
        if uid := self._pick(running, pick):
            self.server.end_task(uid, self.now, seconds)

    @rule(fields=NODE_FIELDS)
    def add_node(self, fields: dict[str, object]) -> None:
        if len(self.server.nodes) < 6:
            self.serial += 1
            self.server.put_node(make_node(f"n{self.serial}", **fields))

    @rule(pick=PICK, fields=NODE_FIELDS)
    def update_node(self, pick: int, fields: dict[str, object]) -> None:
        if name := self._pick(self.server.nodes, pick):
            self.server.put_node(make_node(name, **fields))

    @rule(pick=PICK)
    def drop_node(self, pick: int) -> None:
        if name := self._pick(self.server.nodes, pick):
            self.server.drop_node(name)

    @rule(pick=PICK)
    def recreate_node(self, pick: int) -> None:
        if name := self._pick(self.server.nodes, pick):
            node = self.server.nodes[name]
            self.server.drop_node(name)
            self.server.put_node(node)

    @rule(pick=PICK, fields=POD_FIELDS, nominated=st.booleans())
    def create_foreign(self, pick: int, fields: dict[str, object], nominated: bool) -> None:
        """Another scheduler takes room that it sees free, though binds of ours may be in flight."""
        name = self._pick(self.server.nodes, pick)
        self.serial += 1
        task = make_task(f"f{self.serial}", profile="other", **fields)
        if name and not refusal(task, self.server.nodes[name], self.server.on(name)):
            self.server.put_task(replace(task, nominated=name) if nominated else replace(task, node=name))

    # -- delivery ----------------------------------------------------------------------------------

    @rule(nodes=st.integers(0, 9), tasks=st.integers(0, 9), after=st.sampled_from([0.0, 0.1, 1.0, 30.0]))
    def deliver(self, nodes: int, tasks: int, after: float) -> None:
        self.step(self.server.deliver(nodes, tasks), after)

    @rule()
    def deliver_all(self) -> None:
        self.step(self.server.deliver(999, 999))

    @rule(pick=PICK, how=st.sampled_from(["answer", "answer", "answer", "refuse", "lose", "lose late"]))
    @precondition(lambda self: self.server.binds_in_flight)
    def answer_bind(self, pick: int, how: str) -> None:
        at = pick % len(self.server.binds_in_flight)
        if how.startswith("lose"):
            self.server.lose(at, before=how == "lose")
        else:
            self.step([self.server.answer(at) if how == "answer" else self.server.refuse(at)])

    @rule(refused=st.sampled_from([False, False, False, True]))
    @precondition(lambda self: self.server.reliefs_in_flight)
    def write_relief(self, refused: bool) -> None:
        self.step(self.server.write_relief(refused))

    @rule(pick=PICK)
    def end_termination(self, pick: int) -> None:
        terminating = [uid for uid, task in self.server.tasks.items() if task.deleting]
        if uid := self._pick(terminating, pick):
            self.server.drop_task(uid)

    @rule(pick=PICK, allowed=st.integers(0, 2))
    def put_budget(self, pick: int, allowed: int) -> None:
        selector = (Requirement("app", "In", (f"a{pick % 2}",)),)
        self.step([BudgetSeen(Budget("default", f"b{pick % 2}", selector, allowed))])

    @rule()
    def resolve_lost_binds(self) -> None:
        self.step(list(self.server.resolve_lost_binds()))

    @rule(pick=PICK)
    def repeat_event(self, pick: int) -> None:
        """The newest event of a pod again; for a bound pod also an older one."""
        known = self.server.delivered.tasks
        if uid := self._pick(known, pick):
            self.step([TaskSeen(known[uid])])
            if known[uid].node:
                self.engine_only([TaskSeen(replace(known[uid], node=""))])

    @rule(pick=PICK)
    def deliver_late_event(self, pick: int) -> None:
        """An event of a pod that the engine knows to be gone."""
        if self.gone:
            self.engine_only([TaskSeen(self.gone[pick % len(self.gone)])])

    @rule()
    def step_when_due(self) -> None:
        at = self.engine.next_step_at()
        if at is not None:
            self.step([], max(0.0, at - self.now))

    @rule()
    @precondition(lambda self: not self.paused)
    def wait_beyond_the_limit(self) -> None:
        self.run_until_idle()

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
        """The process dies; its binds have reached the store or not. A new one starts from the store."""
        while self.server.binds_in_flight:
            self.server.lose(0, before=not applied)
        while applied and self.server.reliefs_in_flight:
            self.server.write_relief(refused=False)
        self.server.lost_binds, self.server.reliefs_in_flight = [], []
        self.start()

    # -- invariants --------------------------------------------------------------------------------

    @invariant()
    def every_waiting_pod_is_in_one_queue(self) -> None:
        state, known = self.engine._state, self.server.delivered
        for task in known.waiting():
            places = [
                task.uid in each
                for each in (state.class_queues, state.node_queues, state.backoff, state._gated)
            ]
            assert sum(places) == 1, f"{task}: {places}"
        queued = len(state.class_queues) + len(state.node_queues) + len(state.backoff) + len(state._gated)
        assert queued == len(known.waiting())
        assert self.engine.queue_counts().counters.missed_activations == 0

    @invariant()
    def the_arrays_match_the_delivered_events(self) -> None:
        cluster, known = self.engine._state.cluster, self.server.delivered
        assert set(cluster.rows) == set(known.nodes)
        for name, node in known.nodes.items():
            row, placed = cluster.rows[name], known.on(name)
            _same(cluster, cluster.allocatable[row], [dict(node.allocatable)])
            _same(cluster, cluster.used[row], [_held(task) for task in placed])
            services = [task for task in placed if task.spec.long_running]
            _same(cluster, cluster.long_running[row], [_held(task) for task in services])
            scored = np.array([task.spec.score_requests for task in placed]).reshape(-1, 2).sum(axis=0)
            assert tuple(cluster.scored[row]) == tuple(scored)
            assert bool(cluster.cordoned[row]) == node.unschedulable
        for name, row in cluster.rows.items():
            ports = [port for task in known.on(name) for port in task.spec.host_ports]
            assert cluster.host_ports.count(HostPort(80), row) == len(ports)

    @invariant()
    def tentative_room_is_that_of_node_queues_and_deferrals(self) -> None:
        state = self.engine._state
        tentative = [*state.deferrals._rows.values()]
        for row, queue in state.node_queues.by_row.items():
            assert all(each.tasks and each.rows.count(row) == queue.count(each) for each in queue)
            tentative += [(each.head, row) for each in queue if each.is_tentative]
        expected = np.zeros_like(state.cluster.tentative)
        for task, row in tentative:
            expected[row] += state.cluster.task_vector(task.spec.requests)
        assert np.array_equal(state.cluster.tentative, expected)

    def teardown(self) -> None:
        if not hasattr(self, "server"):
            return
        self.paused = False
        self.step([Resumed()])
        self.run_until_idle()
        for task in [task for task in self.server.tasks.values() if task.profile != "eclectus"]:
            if task.nominated and not task.node:
                self.server.drop_task(task.uid)
        self.run_until_idle()
        for _ in range(len(self.server.tasks)):  # each iteration ends one of them
            running = [
                uid for uid, task in self.server.tasks.items() if task.node and not task.spec.long_running
            ]
            if not running:
                break
            self.server.end_task(running[0], self.now, 5.0)
            self.run_until_idle()
        self.no_pod_is_lost()

    def run_until_idle(self) -> None:
        """Deliver and answer everything, until nothing has happened for longer than a pod may wait."""
        idle_steps, idle_since = 0, self.now
        while idle_steps < 12 or self.now < idle_since + LIMIT_SECONDS:
            self.step([*self.server.resolve_lost_binds(), *self.server.deliver(999, 999)])
            while self.server.binds_in_flight:
                self.step([self.server.answer(0)])
            while self.server.reliefs_in_flight:
                self.step(self.server.write_relief(refused=False))
            for uid in [uid for uid, task in self.server.tasks.items() if task.deleting]:
                self.server.drop_task(uid)  # in the end every pod that is terminating has ended
            idle_steps = 0 if self.server.task_watch or self.server.node_watch else idle_steps + 1
            if idle_steps:
                at = self.engine.next_step_at()
                self.step([], max(0.0, min(40.0, at - self.now)) if at is not None else 40.0)
            else:
                idle_since = self.now
        self.no_pod_is_lost()
        known = self.server.delivered
        assert not known.nominated, f"room is held that nobody will use: {known.nominated}"

    def no_pod_is_lost(self) -> None:
        """Whatever is believed: after so much time a pod waits only where no feasible node has room."""
        server = self.server
        for task in server.delivered.waiting():
            if task.gates:
                continue
            assert task.reported, f"{task} waits and has no report"
            known = server.delivered
            refusals = [refusal(task, node, known.beside(task, name)) for name, node in server.nodes.items()]
            assert all(refusals), f"{task} could run: {refusals}"
            if self.relieve is Preemption:
                self.no_eviction_would_help(task)

    def no_eviction_would_help(self, task: Task) -> None:
        for name, node in self.server.nodes.items():
            known = self.server.delivered
            staying = [other for other in known.beside(task, name) if other.priority >= task.priority]
            assert refusal(task, node, staying), f"{task} waits although it may evict pods from {name}"

    # -- helpers -------------------------------------------------------------------------------------

    def start(self) -> None:
        self.engine: Engine = make_engine(self.policy(), self.learn(), seed=7, relieve=self.relieve())
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

    def _pick(self, named: object, pick: int) -> str:
        names = list(named)  # type: ignore[call-overload]
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


def _held(task: Task) -> dict[str, int]:
    return {"pods": 1, **dict(task.holding)}


def _same(cluster: object, row: object, parts: list[dict[str, int]]) -> None:
    total = {name: sum(part.get(name, 0) for part in parts) for name in cluster.columns}  # type: ignore[attr-defined]
    counted = {name: row[column] for name, column in cluster.columns.items()}  # type: ignore[attr-defined,index]
    assert counted == total


UNEQUAL = {f"n{serial}": 1.0 if serial % 2 else 0.125 for serial in range(1000)}  # rates, tasks a second
DEAD = {name: 0.0 if at % 3 else rate for at, (name, rate) in enumerate(UNEQUAL.items())}
EXACT = partial(ExactSpeeds, UNEQUAL, otherwise=0.125)
LEARNED = partial(RosellaLearn, window=8)
WAYS = {
    "replan": (Rosella, EXACT, Preemption),
    "replan-learned": (Rosella, LEARNED, NoRelief),
    "replan-dead": (Rosella, partial(ExactSpeeds, DEAD, otherwise=0.0), NoRelief),
    "replan-selfish": (partial(Rosella, theta=1), EXACT, Preemption),
    "sampled-lines": (partial(Rosella, view="sample"), LEARNED, Preemption),
    "committed-lines": (partial(Rosella, replan=False, compare="sed"), EXACT, NoRelief),
    "least-allocated": (LeastAllocated, LEARNED, Preemption),
    "two-choices": (PowerOfTwo, LEARNED, Preemption),
}


def run_machine(way: str, examples: int, steps: int, derandomize: bool, **more: Any) -> None:
    policy, learn, relieve = WAYS[way]
    ways = {
        "policy": staticmethod(policy),
        "learn": staticmethod(learn),
        "relieve": relieve,
    }
    how = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        derandomize=derandomize,
        print_blob=False,
        **more,
    )
    run_state_machine_as_test(type(f"EngineMachine_{way}", (EngineMachine,), ways), settings=how)


@pytest.mark.parametrize("way", WAYS)
def test_invariants_hold(way: str) -> None:
    run_machine(way, examples=60, steps=40, derandomize=True)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_invariants_hold_in_many_more_runs(way: str) -> None:
    run_machine(way, examples=300, steps=60, derandomize=False)
