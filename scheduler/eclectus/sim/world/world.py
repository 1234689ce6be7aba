"""The simulated world consists of an event queue, machines that run tasks, and an engine that decides.

The engine is that of the live scheduler. It receives the events that watches would deliver: pods that appear,
results of binds, pods that have ended with the times of their containers. It never sees sizes or speeds.
The result of a bind is delivered with the next event, since it changes no decision by itself.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from itertools import count
from math import inf
from typing import Any

from msgspec.structs import replace

from eclectus.engine.engine import Engine
from eclectus.model.commands import (
    Bind,
    Command,
    Evict,
    Fault,
    MarkStraggling,
    RecordPlan,
    RecordPool,
    Solve,
)
from eclectus.model.events import (
    BindConfirmed,
    BindRefused,
    Event,
    NodeGone,
    NodeSeen,
    Resumed,
    TaskGone,
    TaskSeen,
)
from eclectus.model.pool import Pool
from eclectus.sim.base.machine import Machine, TaskRun
from eclectus.sim.base.work import Arrival, StageRules
from eclectus.sim.world.cluster import Failures, Perturbation, apply_to_speeds
from eclectus.sim.world.copies import Copies, CopyRun, Straggling
from eclectus.sim.world.dag_record import DagRecord
from eclectus.sim.world.data import Data, DataSettings
from eclectus.sim.world.gangs import JobGangs
from eclectus.sim.world.jobs import History, Jobs, StagedJobs, StageTaskRun, as_finished, as_running
from eclectus.sim.world.judge import Judge, check_end, stuck
from eclectus.sim.world.pools import PoolChange, PoolShares, ScenarioPools
from eclectus.sim.world.probes import ProbeStream
from eclectus.sim.world.run_record import RunRecord
from eclectus.sim.world.solving import solved

ScheduledEvent = tuple[float, int, Callable[[Any], None], Any]
"""Time, serial number, action, argument. Events of equal time run in the order of scheduling."""

NEVER: ScheduledEvent = (inf, -1, lambda nothing: None, None)  # so that the heap is never empty


class EventQueue:
    """Events that are scheduled and have not run."""

    def __init__(self) -> None:
        self._heap: list[ScheduledEvent] = [NEVER]
        self._serials = count()

    def schedule(self, at: float, action: Callable[[Any], None], argument: object) -> None:
        """Call `action(argument)` at time `at`, in seconds."""
        heappush(self._heap, (at, next(self._serials), action, argument))

    @property
    def next_time(self) -> float:
        """The time of the next event in seconds; inf if there is none."""
        return self._heap[0][0]

    def run_due(self, now: float) -> None:
        """Run all events due by `now`, including those they schedule for `now`."""
        heap = self._heap
        while heap[0][0] <= now:
            _, _, action, argument = heappop(heap)
            action(argument)


IDLE_WAKES_MOST = 1000  # engine wakes in a row with an empty queue before the run counts as stuck
AGGREGATE_EVERY = 1024  # steps between aggregations of the record and checks whether to stop


class World:
    """One run, from the first arrival until all tasks have ended."""

    def __init__(
        self,
        engine: Engine,
        machines: Mapping[str, Machine],
        arrivals: Iterator[Arrival],
        record: RunRecord,
        *,
        profiles: Sequence[str] = ("eclectus",),
        perturbations: Sequence[Perturbation] = (),
        hop_seconds: float = 0.0,
        termination_seconds: float = 0.0,
        probes: ProbeStream | None = None,
        stages: StageRules = StageRules(),  # noqa: B008 — frozen
        seed: int = 0,
        pools: Sequence[Pool] = (),
        pool_changes: Sequence[PoolChange] = (),
        stragglers: Straggling | None = None,
        data: DataSettings | None = None,
    ) -> None:
        """`seed`: of failures, by the rules for `stages`."""
        self.engine = engine
        self.machines = machines
        self.record = record
        self.probes = probes
        self.now = 0.0
        self.steps = 0
        self.fault_count = 0
        self.first_fault = ""
        self.on_step: Callable[[float, Sequence[Event], Sequence[Command]], None] | None = None
        self.on_perturbation: Callable[[], None] | None = None  # called after true speeds have changed
        self._arrivals = enumerate(record.until_measured(arrivals))
        nodes = (machine.node for machine in machines.values())
        self.dags = DagRecord(nodes, stages.window_seconds)
        # Without delay a pod's start carries no news beside the result of its bind, except to some learners.
        self._shows_starts = hop_seconds > 0 or bool(engine.needs.keys() & {"start times", "budgets"})
        self._judge = Judge()
        self._waiting: dict[str, TaskRun] = {}
        self._queue = EventQueue()
        self._schedule = self._queue.schedule
        self._events: list[Event] = []  # for the next step of the engine
        self._idle_wakes = 0
        # Every message between engine and machines is delayed by one hop.
        self._hop = hop_seconds
        self._termination_seconds = termination_seconds
        self._notify: Callable[[Event], None] = self._later(self._events.append)
        self._bind: Callable[[Bind], None] = self._later(self._start)
        history = History(stages.history_runs) if stages.history_runs else None
        self._staged = StagedJobs(self.dags, history, self._notify if "jobs" in engine.needs else None)
        self._jobs = Jobs(profiles, self._staged)
        self._gangs = JobGangs(self._notify)
        self._failures = Failures(stages.failure_probability, seed) if stages.failure_probability else None
        self._pools = ScenarioPools(pools)
        self.pool_shares = PoolShares(engine, record) if pools or pool_changes else None
        self.data = None if data is None else Data(data, seed, machines.values())
        self.copies: Copies | None = None
        if stragglers is not None:
            act, seconds = (self._schedule, self._notify), termination_seconds
            self.copies = Copies(stragglers, seed, self, *act, termination_seconds=seconds)
            self._shows_starts = True
            for machine in machines.values():
                machine.crowding = stragglers.crowding
        for perturbation in perturbations:
            self._schedule(perturbation.at, self._perturb, perturbation)
        for change in pool_changes:
            self._schedule(change.at, self._change_pool, change)

    def run(self, go_on: Callable[[RunRecord], bool] = lambda record: True) -> bool:
        """Run to the end; returns False if `go_on` returned False before.

        Raises InvariantError if an invariant is violated, StuckError if tasks wait and no event is left.
        """
        # 1. The nodes exist, and the engine leads.
        if self.probes is not None:
            self.probes.start(self.machines, self.record, self._schedule, self._notify)
        self._events.extend(NodeSeen(machine.node) for machine in self.machines.values())
        self._events.extend(self._pools.seen())
        self._events.append(Resumed())
        self._step_engine()
        self._schedule_next_arrival()
        record = self.record
        # 2. Until all jobs have arrived and only tasks that never end are left, and no copy of one:
        while record.window_end is None or record.in_system > record.never_ending or record.surplus:
            # 3. Advance to the next event and run all that is due.
            self._advance()
            # 4. The engine decides on the new events; machines start what it binds.
            self._step_engine()
            if self.steps % AGGREGATE_EVERY == 0:
                record.aggregate()
                if self.pool_shares is not None:
                    self.pool_shares.aggregate()
                if not go_on(record):
                    record.close()
                    return False
        # 5. All totals must agree.
        record.aggregate()
        check_end(record, self.machines, self.now)
        return True

    def _advance(self) -> None:
        """To the next event, or to the time at which the engine asked to be called again.

        Raises StuckError if it asked for none, or for too many without any event.
        """
        at, wake = self._queue.next_time, self.engine.next_step_at()
        if at == inf or (wake is not None and wake < at):
            if wake is None or self._idle_wakes == IDLE_WAKES_MOST:
                raise stuck(self.now, self._waiting, self.record.running, self.fault_count, self.first_fault)
            self._idle_wakes += at == inf
            at = wake
        else:
            self._idle_wakes = 0
        if at > self.now:
            if self.pool_shares is not None:
                self.pool_shares.advance(at)
            self.now = at
            self.record.advance(at)
        self._queue.run_due(self.now)

    def _step_engine(self) -> None:
        events = self._events
        commands = self.engine.step(events, self.now)
        self.steps += 1
        if self.on_step is not None:
            self.on_step(self.now, events.copy(), commands)
        events.clear()
        for command in commands:
            if type(command) is Bind:
                self._bind(command)
            elif type(command) is Evict:
                self._schedule(self.now + self._hop, self._terminate, command)
            elif type(command) is RecordPlan:
                self._staged.record_plan(command)
            elif type(command) is MarkStraggling and self.copies is not None:
                self._schedule(self.now + self._hop, self.copies.mark, command)
            elif type(command) is RecordPool:
                if (seen := self._pools.record(command)) is not None:
                    self._notify(seen)
            elif type(command) is Solve:
                self._schedule(self.now, self._events.append, solved(self.engine, command))
            elif type(command) is Fault:
                self.fault_count += 1
                self.first_fault = self.first_fault or f"{command.policy}: {command.message}"

    def _arrive(self, numbered: tuple[int, Arrival]) -> None:
        number, job = numbered
        self.record.arrive(number, job, self.now)
        self._gangs.arrive(number, job)
        runs = self._jobs.arrive(number, job, self.record.measures(number), self.now)
        self.record.submit(len(runs))
        self._submit(runs)
        if job.patience < inf:
            for run in runs:
                self._schedule(self.now + job.patience, self._withdraw, run.task.uid)
        self._schedule_next_arrival()

    def _submit(self, runs: Sequence[TaskRun]) -> None:
        for run in runs:
            if self.data is not None:
                self.data.submit(run)
            self._waiting[run.task.uid] = run
            if self.pool_shares is not None:
                self.pool_shares.submit(run, self.now)
            self._notify(TaskSeen(run.task))

    def _start(self, bind: Bind) -> None:
        machine = self.machines[bind.node]
        if not machine.is_up:
            self._notify(BindRefused(bind.uid, bind.node, "the node is gone"))
            return
        run = self._waiting.pop(bind.uid, None)
        if run is None:
            self._notify(BindRefused(bind.uid, bind.node, "the pod is gone"))
            return
        run.grant = bind.grant
        self._judge.check_start(run, machine)
        if run.task.spec.preferences:
            run.met = self._judge.preferences_met(run, machine)
        self._begin(run, machine)
        if self.pool_shares is not None:
            self.pool_shares.start(run, self.now)
        if self.probes is not None:
            self.probes.yield_room(machine, self.now)
        if isinstance(run, StageTaskRun):
            self._staged.start(run, self.now)
        if run.due < inf:
            self._schedule(run.due, self._end, run)
            if self._failures is not None and (done := self._failures.share_done(run.task.uid)) is not None:
                at = self.now + done * (run.due - self.now)
                self._schedule(at, self._stop, (run, run.task.uid, self.record.lose))
        self._notify(BindConfirmed(bind.uid, bind.node))
        if self._shows_starts:
            self._notify(TaskSeen(as_running(run, bind.node, self.now)))

    def _begin(self, run: TaskRun, machine: Machine) -> None:
        """An attempt starts, at the pace that was drawn for it and that its data allow."""
        if self.copies is not None:
            self.copies.draw(run)
        elif self.data is not None:
            run.pace = 1.0
        if self.data is not None:
            self.data.start(run, machine)
        machine.start(run, self.now)
        if self.copies is None:
            self.record.start(run, self.now)
        else:
            self._crowd(machine)
            self.copies.started(run)

    def _terminate(self, evict: Evict) -> None:
        """The pod of a task is deleted; its container runs on until the termination period has passed."""
        run = self.machines[evict.node].running.get(evict.uid)
        if run is None:
            return  # it has ended meanwhile, or its machine has failed: the event is on its way
        self._notify(TaskSeen(replace(as_running(run, evict.node, run.started), deleting=True)))
        at = self.now + self._termination_seconds
        self._schedule(at, self._stop, (run, evict.uid, self.record.evict))

    def _stop(self, of: tuple[TaskRun, str, Callable[[TaskRun], None]]) -> None:
        """The container is stopped or fails, and its work is lost; a controller creates the task again."""
        run, uid, record = of
        machine = run.machine
        if machine is None or run.task.uid != uid:
            return  # this attempt has ended before
        machine.stop(run, self.now)
        self._lose(run, machine, record)

    def _lose(self, run: TaskRun, machine: Machine, record: Callable[[TaskRun], None]) -> None:
        """A pod was lost on a machine; its task is submitted again, as a Job's controller would do."""
        self._notify(TaskSeen(as_finished(run, machine.node.name, "Failed", self.now)))
        again: TaskRun | None = run
        if self.copies is None:
            record(run)
        else:
            again = self.copies.lose(run, record)
            self._crowd(machine)
        if again is not None:
            self._gangs.lose(again)
            self._jobs.lose(again, self.now)
            self._submit((again,))

    def _withdraw(self, uid: str) -> None:
        """The patience of a job has ended; a task that still waits is deleted."""
        run = self._waiting.pop(uid, None)
        if run is not None:
            self.record.drop(run, self.now)
            self._notify(TaskGone(uid))
            self._gangs.end(run)

    def _end(self, run: TaskRun) -> None:
        machine = run.machine
        if machine is None or run.due != self.now:
            return  # its machine has failed or changed its speed since this was scheduled
        machine.end(run, self.now)
        self._notify(TaskSeen(as_finished(run, machine.node.name, "Succeeded", self.now)))
        if self.copies is None:
            self.end_task(run, run.started)
        else:
            self.copies.end(run)
            self._crowd(machine)

    def end_task(self, run: TaskRun, started: float) -> None:
        """The work of a task is done, by a pod that started then."""
        run.started = started
        self.record.end(run, self.now)
        self._gangs.end(run)
        if self._jobs.any_in_parts:
            more = self._jobs.end(run, self.now)
            self.record.submit(len(more))
            self._submit(more)

    def submit_copy(self, copy: CopyRun) -> None:
        """It waits to be bound."""
        self._waiting[copy.task.uid] = copy
        self._notify(TaskSeen(copy.task))

    def withdraw_copy(self, copy: CopyRun) -> None:
        """It waits no more."""
        self._waiting.pop(copy.task.uid, None)
        self._notify(TaskGone(copy.task.uid))

    def _crowd(self, machine: Machine) -> None:
        """A task has come to a machine or gone: where they slow each other, all end at other times."""
        if machine.crowding:
            machine.crowd(self.now)
            for run in machine.running.values():
                self._schedule(run.due, self._end, run)

    def _perturb(self, perturbation: Perturbation) -> None:
        machines = [self.machines[name] for name in perturbation.machines]
        partners = [self.machines[name] for name in perturbation.partners]
        apply_to_speeds(perturbation, machines, partners, self.now)
        if self.probes is not None:
            self.probes.perturb(perturbation, self.now)
        if self.on_perturbation is not None:
            self.on_perturbation()
        for machine in machines:
            if perturbation.action == "fail" and machine.is_up:
                machine.is_up = False
                self._notify(NodeGone(machine.node.name))
                for run in list(machine.running.values()):  # they fail with it
                    machine.end(run, self.now)
                    self._lose(run, machine, self.record.lose)
            elif perturbation.action == "recover" and not machine.is_up:
                machine.is_up = True
                self._notify(NodeSeen(machine.node))
        for machine in (*machines, *partners):
            for run in machine.running.values():
                if run.due < inf:
                    self._schedule(run.due, self._end, run)

    def _change_pool(self, change: PoolChange) -> None:
        self._notify(self._pools.change(change))

    def _schedule_next_arrival(self) -> None:
        numbered = next(self._arrivals, None)
        if numbered is None:
            self.record.close()
        else:
            self._schedule(numbered[1].at, self._arrive, numbered)

    def _later(self, act: Callable[[Any], None]) -> Callable[[Any], None]:
        """The same one hop later, where there is one."""
        return (lambda what: self._schedule(self.now + self._hop, act, what)) if self._hop else act
