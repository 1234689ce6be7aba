"""The world: an agenda of what will happen, machines that run tasks, and an engine that decides.

The engine is the live scheduler's, and is told what a watch would tell it: pods that appear, binds that
are answered, pods that have ended with the times of their containers. Sizes and speeds it never sees.
An answer to a bind goes with the next word that is told, since by itself it changes no decision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf

from eclectus.engine.engine import Engine
from eclectus.model.commands import Bind, Command, Fault
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
from eclectus.sim.base.errors import StuckError
from eclectus.sim.base.machine import Machine, Running
from eclectus.sim.base.work import Arrival
from eclectus.sim.world.event_queue import Agenda
from eclectus.sim.world.invariants import check_conserving, check_end, check_moment
from eclectus.sim.world.jobs import Jobs, seen_over, seen_running
from eclectus.sim.world.judge import Judge
from eclectus.sim.world.ledger import Ledger
from eclectus.sim.world.perturbations import Shock, change_speeds
from eclectus.sim.world.probes import Probing

IDLE_WAKES_MOST = 1000  # wakes in a row with nothing else to come: back-offs end sooner, a stuck world never
LOOK_EVERY = 1024  # steps between two looks at whether to stop, and until what has ended is summed up


class World:
    """One run, from the first arrival until everybody has ended."""

    def __init__(
        self,
        engine: Engine,
        machines: Mapping[str, Machine],
        arrivals: Iterator[Arrival],
        ledger: Ledger,
        *,
        profiles: Sequence[str] = ("eclectus",),
        shocks: Sequence[Shock] = (),
        hop_seconds: float = 0.0,
        checked: bool = False,
        conserving: bool = False,
        probing: Probing | None = None,
    ) -> None:
        self.engine, self.machines, self.ledger = engine, machines, ledger
        self.now = 0.0
        self.steps = 0
        self.fault_count, self.first_fault = 0, ""
        self.told: Callable[[float, Sequence[Event], Sequence[Command]], None] | None = None  # a tape's ear
        self.on_shock: Callable[[], None] | None = None  # who must hear that true speeds have changed
        self._arrivals = enumerate(ledger.wanted(arrivals))
        self._jobs = Jobs(profiles)
        # Without delays the start of a pod is no news beside the answer to its bind, but to some learners.
        self._shows_starts = hop_seconds > 0 or engine.uses_start_times
        self._checked, self._conserving = checked or conserving, conserving
        self._judge = Judge()
        self.probing = probing
        self._waiting: dict[str, Running] = {}
        self._agenda = Agenda()
        self._plan = self._agenda.plan
        self._words: list[Event] = []  # for the engine's next step
        self._idle_wakes = 0
        # Every word between engine and machines takes a hop, where there is one.
        self._hop = hop_seconds
        self._tell: Callable[[Event], None] = self._tell_later if hop_seconds else self._words.append
        self._obey: Callable[[Bind], None] = self._start_later if hop_seconds else self._start
        for shock in shocks:
            self._plan(shock.at, self._befall, shock)

    # -- the story -------------------------------------------------------------------------------

    def run(self, go_on: Callable[[Ledger], bool] = lambda ledger: True) -> bool:
        """Live through everything; False if `go_on` said to stop before the end.

        Raises InvariantError where an invariant does not hold, StuckError where tasks wait for ever.
        """
        # 1. There are machines, and the engine leads.
        if self.probing is not None:
            self.probing.begin(self.machines, self.ledger, self._plan, self._tell)
        self._words.extend(NodeSeen(machine.node) for machine in self.machines.values())
        self._words.append(Resumed())
        self._decide()
        self._plan_next_arrival()
        ledger = self.ledger
        # 2. Until all has arrived, and all that ever will has ended:
        while ledger.closed is None or ledger.in_system > ledger.staying:
            # 3. Time moves on, and what happens then, happens.
            self._move_on()
            # 4. The engine hears of it and decides; machines start what was bound.
            self._decide()
            if self.steps % LOOK_EVERY == 0:
                ledger.sum_up()
                if not go_on(ledger):
                    ledger.close()
                    return False
        # 5. The books must agree.
        check_end(ledger, self.machines, self.now)
        return True

    def _move_on(self) -> None:
        """To what happens next, or to when the engine wants to look again."""
        at, wake = self._agenda.next_at, self.engine.next_step_at()
        if at == inf or (wake is not None and wake < at):
            at = self._woken(wake)
        else:
            self._idle_wakes = 0
        if at > self.now:
            self.now = at
            self.ledger.clock(at)
        self._agenda.happen(self.now)

    def _woken(self, wake: float | None) -> float:
        """When the engine looks again, with nothing else to come before; often in vain, but not for ever."""
        if wake is None or self._idle_wakes == IDLE_WAKES_MOST:
            raise StuckError(self._stuck())
        self._idle_wakes += self._agenda.next_at == inf
        return wake

    def _decide(self) -> None:
        words = self._words
        commands = self.engine.step(words, self.now)
        self.steps += 1
        if self.told is not None:
            self.told(self.now, words.copy(), commands)
        words.clear()
        for command in commands:
            if type(command) is Bind:
                self._obey(command)
            elif type(command) is Fault:
                self.fault_count += 1
                self.first_fault = self.first_fault or f"{command.policy}: {command.message}"
        if self._checked:
            self._check()

    # -- what happens ----------------------------------------------------------------------------

    def _arrive(self, numbered: tuple[int, Arrival]) -> None:
        number, job = numbered
        self.ledger.arrive(number, job, self.now)
        runs = self._jobs.arrive(number, job, self.now)
        self.ledger.enter(len(runs))
        self._submit(runs)
        if job.patience < inf:
            for run in runs:
                self._plan(self.now + job.patience, self._give_up, run.task.uid)
        self._plan_next_arrival()

    def _submit(self, runs: Sequence[Running]) -> None:
        for run in runs:
            self._waiting[run.task.uid] = run
            self._tell(TaskSeen(run.task))

    def _start(self, bind: Bind) -> None:
        machine = self.machines[bind.node]
        if not machine.is_up:
            self._tell(BindRefused(bind.uid, bind.node, "the node is gone"))
            return
        run = self._waiting.pop(bind.uid, None)
        if run is None:
            self._tell(BindRefused(bind.uid, bind.node, "the pod is gone"))
            return
        run.devices = bind.devices
        self._judge.see_start(run, machine)
        machine.start(run, self.now)
        self.ledger.start(run, self.now)
        if self.probing is not None:
            self.probing.make_way(machine, self.now)
        if self._jobs.in_parts:
            self._jobs.begin(run)
        if run.due < inf:
            self._plan(run.due, self._end, run)
        self._tell(BindConfirmed(bind.uid, bind.node))
        if self._shows_starts:
            self._tell(TaskSeen(seen_running(run, bind.node, self.now)))

    def _give_up(self, uid: str) -> None:
        run = self._waiting.pop(uid, None)
        if run is not None:
            self.ledger.drop(run, self.now)
            self._tell(TaskGone(uid))

    def _end(self, run: Running) -> None:
        machine = run.machine
        if machine is None or run.due != self.now:
            return  # its machine has changed its speed or failed since this was planned
        machine.end(run, self.now)
        self.ledger.end(run, self.now)
        self._tell(TaskSeen(seen_over(run, machine.node.name, "Succeeded", self.now)))
        if self._jobs.in_parts:
            more = self._jobs.end(run, self.now)
            self.ledger.enter(len(more))
            self._submit(more)

    def _befall(self, shock: Shock) -> None:
        machines = [self.machines[name] for name in shock.machines]
        partners = [self.machines[name] for name in shock.partners]
        change_speeds(shock, machines, partners, self.now)
        if self.probing is not None:
            self.probing.befall(shock, self.now)
        if self.on_shock is not None:
            self.on_shock()
        for machine in machines:
            if shock.action == "fail" and machine.is_up:
                self._fail(machine)
            elif shock.action == "recover" and not machine.is_up:
                machine.is_up = True
                self._tell(NodeSeen(machine.node))
        for machine in (*machines, *partners):
            for run in machine.running.values():
                if run.due < inf:
                    self._plan(run.due, self._end, run)

    def _fail(self, machine: Machine) -> None:
        """The machine is gone; its tasks have failed and are submitted again, as a Job would."""
        machine.is_up = False
        self._tell(NodeGone(machine.node.name))
        for run in list(machine.running.values()):
            machine.end(run, self.now)
            self.ledger.lose(run)
            self._tell(TaskSeen(seen_over(run, machine.node.name, "Failed", self.now)))
            self._jobs.lose(run, self.now)
            self._submit((run,))

    # -- within ----------------------------------------------------------------------------------

    def _plan_next_arrival(self) -> None:
        numbered = next(self._arrivals, None)
        if numbered is None:
            self.ledger.close()
        else:
            self._plan(numbered[1].at, self._arrive, numbered)

    def _tell_later(self, event: Event) -> None:
        self._plan(self.now + self._hop, self._words.append, event)

    def _start_later(self, bind: Bind) -> None:
        self._plan(self.now + self._hop, self._start, bind)

    def _check(self) -> None:
        if not self._hop:
            running = sum(len(machine.running) for machine in self.machines.values())
            check_moment(self.engine, self.ledger, len(self._waiting), running)
        if self._conserving:
            check_conserving(self.machines.values(), self._waiting.values())

    def _stuck(self) -> str:
        first = next(iter(self._waiting.values()), None)
        if first is None:
            return f"at {self.now:g} s {self.ledger.running} tasks run on machines that have stopped for ever"
        fault = f"; first of {self.fault_count} faults: {self.first_fault}" if self.first_fault else ""
        return (
            f"at {self.now:g} s {len(self._waiting)} tasks wait, the first being {first.task} "
            f"of class {first.kind.name}, and nothing else will ever happen{fault}"
        )
