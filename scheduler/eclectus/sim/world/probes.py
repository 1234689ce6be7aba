"""Benchmark probes: the world plays the operator, by the operator's own formulas (maths/probing.py).

Rosella's dispatcher (Q. Wu, Z. Liu, "Rosella", 2020; rosella.md 5.1): a Poisson stream at a rate reckoned
from the load that the learner tells, each probe to a node drawn uniformly from all that are there, those
that count as dead among them, of a class drawn by its share of recent work. A probe is dropped, not put
off, where its node has no slot free for a task of that class, where the class must not run, or where a
probe runs already.

A probe delays nobody. It asks for nothing but a place for a pod, and every machine has one more of those
for it: so the scheduler takes its slot for free, and as soon as a real task starts for which the slot is
needed the probe is killed and teaches nothing. On a cluster it teaches nothing from then on
(core/crowding.py), and is killed within a second (docs/operator.md).

The stream is drawn at its highest rate and thinned, which gives a rate that changes exactly its law.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from math import inf
from random import Random
from typing import Annotated, Any, Literal

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from eclectus.maths.probing import draw_cell, gap_seconds, probe_rate
from eclectus.model.errors import SettingsError
from eclectus.model.events import Event, TaskGone, TaskSeen
from eclectus.model.learned import LearnedLoad
from eclectus.model.objects import Task
from eclectus.model.settings import Setting
from eclectus.sim.base.machine import Machine, Running
from eclectus.sim.base.random_streams import stream
from eclectus.sim.base.work import Kind
from eclectus.sim.world.judge import forbidden
from eclectus.sim.world.ledger import Ledger
from eclectus.sim.world.perturbations import Shock, change_speeds

HOUR = 3600.0
PROFILE = "probes"  # their schedulerName, and their namespace
PRIORITY = -(2**31)  # the lowest there is

Plan = Callable[[float, Callable[[Any], None], object], None]
"""plan(at, action, what): the world calls `action(what)` when it is `at`."""


@dataclass(frozen=True)
class Probes:
    """`probes:` of a scenario or a profile; limits are spelled and mean what they do in a NodeProbe."""

    per_hour: Annotated[int, Setting("probes an hour of all nodes at most", least=1, most=3_600_000)] = 60
    least_per_hour: Annotated[
        int, Setting("and at least; so many where the learner says nothing", least=0, most=3_600_000)
    ] = 6
    spare_share: Annotated[
        float, Setting("share of the spare capacity given to probes (c0)", why="the paper's", least=0, most=1)
    ] = 0.1
    running: Annotated[int, Setting("probes at a time, one a node", least=1, most=100_000)] = 2
    node_interval_seconds: Annotated[
        float, Setting("no node is probed again before so long", unit="s", least=0)
    ] = 1800.0
    law: Annotated[
        Literal["deterministic", "exponential"],
        Setting(
            "each probe the mean of its class, or drawn around it", why="the built-in benchmark is fixed"
        ),
    ] = "deterministic"

    def __post_init__(self) -> None:
        if self.least_per_hour > self.per_hour:
            raise SettingsError(
                "leastPerHour", f"{self.least_per_hour} is more than perHour, {self.per_hour}"
            )


class Probing:
    """Probes of one run. `shadows` are machines like the real ones, on which nothing but probes runs."""

    def __init__(
        self,
        asked: Probes,
        known_load: Callable[[float], LearnedLoad | None],
        mean_sizes: Mapping[Kind, float],
        shadows: Mapping[str, Machine],
        seed: int,
    ) -> None:
        self.ended = self.killed = 0
        self._asked, self._known_load, self._shadows = asked, known_load, shadows
        self._kinds = {kind.name: (kind, mean) for kind, mean in mean_sizes.items()}
        self._classes = tuple(self._kinds)
        self._chance = Random(int(stream(seed, "probes").integers(2**31)))
        self._running: dict[str, Running] = {}  # by the name of the node
        self._probed_at: dict[str, float] = {}
        self._serial = count()

    def begin(
        self, machines: Mapping[str, Machine], ledger: Ledger, plan: Plan, tell: Callable[[Event], None]
    ) -> None:
        """The real machines and their books, and how to act in the world; the first probe becomes due."""
        self._machines, self._ledger, self._plan, self._tell = machines, ledger, plan, tell
        for machine in machines.values():
            machine.add_place()
        self._plan_next(0.0)

    def seconds(self, now: float) -> float:
        """Seconds of slots that probes have used."""
        for shadow in self._shadows.values():
            shadow.account(now)
        return sum(shadow.busy_seconds for shadow in self._shadows.values())

    # -- what the world says ---------------------------------------------------------------------

    def make_way(self, machine: Machine, now: float) -> None:
        """A real task has just started there."""
        run = self._running.get(machine.node.name)
        if run is not None and not machine.has_room(run.kind.spec.requests):
            self._leave(run, now)
            self.killed += 1
            self._tell(TaskGone(run.task.uid))

    def befall(self, shock: Shock, now: float) -> None:
        """What befalls machines befalls the probes on them."""
        shadows = [self._shadows[name] for name in shock.machines]
        partners = [self._shadows[name] for name in shock.partners]
        change_speeds(shock, shadows, partners, now)
        for name in (*shock.machines, *shock.partners):
            run = self._running.get(name)
            if run is not None and shock.action == "fail":
                self._leave(run, now)
                self._tell(TaskSeen(replace(run.task, phase="Failed", finished=now)))
            elif run is not None:
                self._plan_end(run)

    # -- the stream ------------------------------------------------------------------------------

    def _plan_next(self, now: float) -> None:
        at = now + gap_seconds(self._chance, self._asked.per_hour / HOUR)
        self._plan(at, self._come, at)

    def _come(self, now: float) -> None:
        if self._ledger.closed is not None:
            return  # nothing more arrives for which it could matter
        self._plan_next(now)
        rate, shares = self._wanted(now)
        if self._chance.random() * self._asked.per_hour / HOUR >= rate:
            return
        rested = [name for name in self._machines if self._is_rested(name, now)]
        cell = draw_cell(self._chance, np.arange(len(rested)), shares)
        if cell is not None and len(self._running) < self._asked.running:
            self._send(self._machines[rested[cell[0]]], self._classes[cell[1]], now)

    def _wanted(self, now: float) -> tuple[float, NDArray[np.float64]]:
        """Probes a second, and the share of each class; equal ones where nothing is known of them."""
        least, most = self._asked.least_per_hour / HOUR, self._asked.per_hour / HOUR
        load = self._known_load(now)
        if load is None:
            return least, np.ones(len(self._classes))
        recent = dict(load.shares)
        shares = np.array([recent.get(name, 0.0) for name in self._classes])
        rate = probe_rate(load.capacity, load.arrivals, self._asked.spare_share, least, most)
        return rate, shares if shares.any() else np.ones(len(shares))

    def _is_rested(self, name: str, now: float) -> bool:
        if not self._machines[name].is_up or name in self._running:
            return False
        return now - self._probed_at.get(name, -inf) >= self._asked.node_interval_seconds

    # -- a probe ---------------------------------------------------------------------------------

    def _send(self, machine: Machine, workload: str, now: float) -> None:
        kind, mean = self._kinds[workload]
        size = mean if self._asked.law == "deterministic" else self._chance.expovariate(1.0 / mean)
        if not machine.has_room(kind.spec.requests) or forbidden(kind.spec, machine.node):
            return
        node, name = machine.node.name, f"probe-{next(self._serial)}"
        task = Task(
            uid=name,
            namespace=PROFILE,
            name=name,
            profile=PROFILE,
            priority=PRIORITY,
            created=now,
            workload=workload,
            node=node,
            phase="Running",
            started=now,
        )
        run = Running(task, kind, -1, size, now)
        self._shadows[node].start(run, now)
        self._running[node], self._probed_at[node] = run, now
        self._plan_end(run)
        self._tell(TaskSeen(task))

    def _plan_end(self, run: Running) -> None:
        if run.due < inf:
            self._plan(run.due, self._end, (run, run.due))

    def _end(self, planned: tuple[Running, float]) -> None:
        run, now = planned
        if run.machine is None or run.due != now:
            return  # it was killed, or its machine has changed its speed since this was planned
        self._leave(run, now)
        self.ended += 1
        self._tell(TaskSeen(replace(run.task, phase="Succeeded", finished=now)))

    def _leave(self, run: Running, now: float) -> None:
        node = run.task.node
        self._shadows[node].end(run, now)
        del self._running[node]
