"""Benchmark probes: the simulation of the operator's NodeProbes, with the same formulas (`maths/probing.py`).

As in Rosella (Q. Wu, Z. Liu, "Rosella: A Self-Driving Distributed Scheduler for Heterogeneous Clusters",
2020) probes are a Poisson stream whose rate depends on the load reported by the learner. Each goes to a
node drawn uniformly from all nodes, including those that count as dead, and has a class drawn by its share
of recent work. A probe is dropped, not postponed, if the node has no free slot for a task of that class, if
the class must not run there, or if a probe already runs there.

A probe delays no task. It requests one pod slot and no other resource, and every machine has one extra pod
slot for it, so the scheduler counts the probe's room as free. When a task starts that needs the room, the
probe is killed and not learned from. On a cluster the engine ignores it from then on
(`engine/placed_pods.py`), and the operator ends it within a second (docs/operator.md).

The stream is drawn at its highest rate and thinned, which yields a Poisson process of varying rate exactly.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from math import inf
from random import Random
from typing import Any, Literal

from msgspec.structs import replace

from eclectus.maths.probing import draw_target, gap_seconds, probe_rate
from eclectus.model.errors import SettingsError
from eclectus.model.events import Event, TaskGone, TaskSeen
from eclectus.model.learned import LearnedLoad
from eclectus.model.objects import Task
from eclectus.model.settings import setting
from eclectus.sim.base.machine import Machine, TaskRun
from eclectus.sim.base.random_draws import stream
from eclectus.sim.base.work import WorkClass
from eclectus.sim.world.cluster import Perturbation, apply_to_speeds
from eclectus.sim.world.judge import forbidden
from eclectus.sim.world.run_record import RunRecord

HOUR = 3600.0
PROFILE = "probes"  # schedulerName and namespace of probes
PRIORITY = -(2**31)  # the lowest priority

Schedule = Callable[[float, Callable[[Any], None], object], None]
"""`schedule(at, action, argument)`: the world calls `action(argument)` at time `at`."""


@dataclass(frozen=True)
class ProbeSettings:
    """`probes:` of a scenario or a profile; the limits have the names and meanings of a NodeProbe's."""

    per_hour: int = setting(60, "most probes per hour, over all nodes", least=1, most=3_600_000)
    least_per_hour: int = setting(
        6, "least probes per hour, and the rate while the learner reports no load", least=0, most=3_600_000
    )
    spare_share: float = setting(
        0.1, "share of the spare capacity given to probes (c0)", why="the paper's", least=0, most=1
    )
    running: int = setting(2, "most probes at a time, one per node", least=1, most=100_000)
    node_interval_seconds: float = setting(
        1800.0, "least time between two probes of a node", unit="s", least=0
    )
    law: Literal["deterministic", "exponential"] = setting(
        "deterministic",
        "size of a probe: the mean of its class, or random with that mean",
        why="the built-in benchmark is fixed",
    )

    def __post_init__(self) -> None:
        if self.least_per_hour > self.per_hour:
            problem = f"{self.least_per_hour} is more than perHour, {self.per_hour}"
            raise SettingsError("leastPerHour", problem)


class ProbeStream:
    """The probes of one run. `shadows` are copies of the machines, on which only probes run."""

    def __init__(
        self,
        settings: ProbeSettings,
        learned_load: Callable[[float], LearnedLoad | None],
        mean_sizes: Mapping[WorkClass, float],
        shadows: Mapping[str, Machine],
        seed: int,
    ) -> None:
        self.ended = self.killed = 0
        self._settings = settings
        self._learned_load = learned_load
        self._shadows = shadows
        self._work_classes = {work_class.name: (work_class, mean) for work_class, mean in mean_sizes.items()}
        self._classes = tuple(self._work_classes)
        self._rng = Random(int(stream(seed, "probes").integers(2**31)))
        self._running: dict[str, TaskRun] = {}  # by node name
        self._probed_at: dict[str, float] = {}
        self._serial = count()

    def start(
        self,
        machines: Mapping[str, Machine],
        record: RunRecord,
        schedule: Schedule,
        notify: Callable[[Event], None],
    ) -> None:
        """Connect to the world and schedule the first probe; `notify` delivers an event to the engine."""
        self._machines, self._record, self._schedule, self._notify = machines, record, schedule, notify
        for machine in machines.values():
            machine.add_pod_slot()
        self._schedule_next(0.0)

    def slot_seconds(self, now: float) -> float:
        """Slot-seconds used by probes."""
        for shadow in self._shadows.values():
            shadow.account(now)
        return sum(shadow.busy_seconds for shadow in self._shadows.values())

    def yield_room(self, machine: Machine, now: float) -> None:
        """A task has started on the machine: kill its probe if the task needs the room."""
        run = self._running.get(machine.node.name)
        if run is not None and not machine.has_room(run.work_class.spec.requests):
            self._remove(run, now)
            self.killed += 1
            self._notify(TaskGone(run.task.uid))

    def perturb(self, perturbation: Perturbation, now: float) -> None:
        """Apply the perturbation to the probes on its machines."""
        shadows = [self._shadows[name] for name in perturbation.machines]
        partners = [self._shadows[name] for name in perturbation.partners]
        apply_to_speeds(perturbation, shadows, partners, now)
        for name in (*perturbation.machines, *perturbation.partners):
            run = self._running.get(name)
            if run is not None and perturbation.action == "fail":
                self._remove(run, now)
                self._notify(TaskSeen(replace(run.task, phase="Failed", finished=now)))
            elif run is not None:
                self._schedule_end(run)

    def _schedule_next(self, now: float) -> None:
        at = now + gap_seconds(self._rng, self._settings.per_hour / HOUR)
        self._schedule(at, self._arrive, at)

    def _arrive(self, now: float) -> None:
        if self._record.window_end is not None:
            return  # arrivals have ended
        self._schedule_next(now)
        rate, shares = self._rate_and_shares(now)
        if self._rng.random() * self._settings.per_hour / HOUR >= rate:
            return
        candidates = [name for name in self._machines if self._may_be_probed(name, now)]
        drawn = draw_target(self._rng, candidates, shares)
        if drawn is not None and len(self._running) < self._settings.running:
            self._send(self._machines[drawn[0]], self._classes[drawn[1]], now)

    def _rate_and_shares(self, now: float) -> tuple[float, list[float]]:
        """Probes per second, and the share of each class; equal shares while none is known."""
        least, most = self._settings.least_per_hour / HOUR, self._settings.per_hour / HOUR
        load = self._learned_load(now)
        if load is None:
            return least, [1.0] * len(self._classes)
        recent = dict(load.shares)
        shares = [recent.get(name, 0.0) for name in self._classes]
        rate = probe_rate(load.capacity, load.arrivals, self._settings.spare_share, least, most)
        return rate, shares if any(shares) else [1.0] * len(shares)

    def _may_be_probed(self, name: str, now: float) -> bool:
        if not self._machines[name].is_up or name in self._running:
            return False
        return now - self._probed_at.get(name, -inf) >= self._settings.node_interval_seconds

    def _send(self, machine: Machine, workload: str, now: float) -> None:
        work_class, mean = self._work_classes[workload]
        size = mean if self._settings.law == "deterministic" else self._rng.expovariate(1.0 / mean)
        if not machine.has_room(work_class.spec.requests) or forbidden(work_class.spec, machine.node):
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
            notional_requests=work_class.spec.requests,
        )
        run = TaskRun(task, work_class, -1, size, now)
        self._shadows[node].start(run, now)
        self._running[node], self._probed_at[node] = run, now
        self._schedule_end(run)
        self._notify(TaskSeen(task))

    def _schedule_end(self, run: TaskRun) -> None:
        if run.due < inf:
            self._schedule(run.due, self._end, (run, run.due))

    def _end(self, scheduled: tuple[TaskRun, float]) -> None:
        run, now = scheduled
        if run.machine is None or run.due != now:
            return  # it was killed, or its machine has changed its speed since this was scheduled
        self._remove(run, now)
        self.ended += 1
        self._notify(TaskSeen(replace(run.task, phase="Succeeded", finished=now)))

    def _remove(self, run: TaskRun, now: float) -> None:
        node = run.task.node
        self._shadows[node].end(run, now)
        del self._running[node]
