"""Metrics that the process counts or observes, and what it observes of a pod from the watch to its bind.

`metrics_table.py` has all metrics, docs/metrics.md describes them, `metrics_page.py` writes them at each
scrape. Here are only numbers: to import prometheus_client, which that page needs, would take a fifth of the
scheduler's start.
"""

import logging
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Generic, TypeVar

from eclectus.explain.pod import Decision
from eclectus.kubeclient.client import ApiClient
from eclectus.kubeclient.timing import elapsed
from eclectus.live.metrics_table import FAMILIES
from eclectus.model.commands import Bind, Command, Report
from eclectus.model.events import BindConfirmed, BindRefused, Event, TaskGone, TaskSeen
from eclectus.model.objects import Task

_log = logging.getLogger(__name__)

_S = TypeVar("_S")


class Figure:
    """One series of a counter or a gauge: it is counted here, or read from a function at each scrape."""

    def __init__(self) -> None:
        self._value = 0.0
        self._read: Callable[[], float] | None = None

    @property
    def value(self) -> float:
        """What it is now."""
        return self._value if self._read is None else self._read()

    def inc(self, amount: float = 1.0) -> None:
        """So much more."""
        self._value += amount

    def set(self, value: float) -> None:
        """From now on this."""
        self._value = value

    def set_function(self, read: Callable[[], float]) -> None:
        """From now on what the function says at each scrape."""
        self._read = read


class Histogram:
    """One series of a histogram; `bounds` are the highest values of its buckets, the last one has none."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        """One more of this value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value


class Measured(Generic[_S]):
    """A metric of the table with its series. One without labels has a single one, from the start."""

    def __init__(self, name: str, new: Callable[[], _S]) -> None:
        self.family = FAMILIES[name]
        self.series: dict[tuple[str, ...], _S] = {}
        self._new = new
        if not self.family.labels:
            self.labels()

    def labels(self, *values: str) -> _S:
        """The series of these values of the labels."""
        found = self.series.get(values)
        if found is None:
            found = self.series[values] = self._new()
        return found


PERIOD_SECONDS = 60.0  # two scrapes at the usual interval of 30 s


class StepDurations:
    """A histogram, whose buckets show that a rare step was long, and a gauge, which shows how long."""

    def __init__(self, histogram: Histogram, longest: Figure, now: Callable[[], float] = elapsed) -> None:
        self._histogram = histogram
        longest.set_function(self.longest)
        self._now = now
        self._period = 0  # the number of the current period
        self._current = self._previous = 0.0  # the longest of it, and of the one before

    def observe(self, seconds: float) -> None:
        """A step has taken so long."""
        self._histogram.observe(seconds)
        self._begin_period()
        self._current = max(self._current, seconds)

    def longest(self) -> float:
        """The longest of the last one to two periods, seconds; 0 without any."""
        self._begin_period()
        return max(self._current, self._previous)

    def _begin_period(self) -> None:
        period = int(self._now() / PERIOD_SECONDS)
        if period > self._period:
            self._previous = self._current if period == self._period + 1 else 0.0
            self._current, self._period = 0.0, period


class Metrics:
    """The metrics that the parts of the process update. Only the main loop does."""

    def __init__(self) -> None:
        self.figures: list[Measured[Figure]] = []
        self.histograms: list[Measured[Histogram]] = []
        # Scheduling decisions.
        self.attempt_seconds = self._histogram("scheduling_attempt_duration_seconds", 0.001, 15)
        self.sli_seconds = self._histogram("pod_scheduling_sli_duration_seconds", 0.01, 20)
        steps = self._histogram("scheduling_algorithm_duration_seconds", 0.0001, 14)
        self.steps = StepDurations(steps.labels(), self._figure("longest_step_seconds").labels())
        self.faults = self._figure("policy_faults")
        self.flow_solve_seconds = self._histogram("flow_solve_duration_seconds", 0.001, 14)
        self.flow_solves = self._figure("flow_solves")
        self.ignored_preferences = self._figure("ignored_preferences")
        self.relaxed_preferences = self._figure("relaxed_preferences")
        self.leader = self._figure("leader").labels()
        # Requests to the API server, and to the Prometheus server that measures the load of nodes.
        self.bind_conflicts = self._figure("bind_conflicts")
        self.uncertain_answers = self._figure("uncertain_binds").labels()
        self.outbox_depth = self._figure("outbox_depth")
        self.dropped_events = self._figure("dropped_events")
        self.malformed_objects = self._figure("malformed_objects")
        self.watch_restarts = self._figure("watch_restarts")
        self.profile_writes = self._figure("node_profile_writes")
        self.plan_writes = self._figure("plan_writes")
        self.pool_writes = self._figure("pool_writes")
        self.straggler_writes = self._figure("straggler_writes")
        self.load_queries = self._figure("load_signal_queries")
        self.configuration_reloads = self._figure("config_reloads")
        self.load_nodes = self._figure("load_signal_nodes").labels()

    def _figure(self, name: str) -> Measured[Figure]:
        measured = Measured(name, Figure)
        self.figures.append(measured)
        return measured

    def _histogram(self, name: str, least: float, buckets: int) -> Measured[Histogram]:
        """With so many buckets, each twice as wide as the one before; `least`: the bound of the first."""
        measured = Measured(name, partial(Histogram, [least * 2**k for k in range(buckets)]))
        self.histograms.append(measured)
        return measured


@dataclass(frozen=True)
class Context:
    """What every part shares: the client of the API server, the metrics, and a source of back-off jitter."""

    client: ApiClient
    metrics: Metrics = field(default_factory=Metrics)
    rng: Random = field(default_factory=Random)


# -- pods -------------------------------------------------------------------------------------------

MAX_ATTEMPTS = 14  # with more attempts the label `attempts` is "15+", as in kube-scheduler


class PodLatency:
    """Observes the latency of each pod whose schedulerName is ours, labelled with its attempts.

    `histogram` has one label, `attempts`. An attempt ends with a bind, a refused bind or a report.
    """

    def __init__(self, is_ours: Callable[[str], bool], histogram: Measured[Histogram]) -> None:
        self._is_ours = is_ours
        self._histogram = histogram
        # uid -> when first seen without gates; attempts, the current one included
        self._waiting: dict[str, tuple[float, int]] = {}

    def observe_step(self, now: float, events: Sequence[Event], commands: Sequence[Command]) -> None:
        """Take in one step of the engine (a StepObserver)."""
        for event in events:
            match event:
                case TaskSeen(task=task) if not (task.node or task.gates or task.ended) and self._is_ours(
                    task.profile
                ):
                    self._waiting.setdefault(task.uid, (now, 1))
                case BindConfirmed(uid=uid):
                    self._bound(uid, now)
                case BindRefused(uid=uid):
                    self._count_attempt(uid)
                case TaskGone(uid=uid):
                    self._waiting.pop(uid, None)
        for command in commands:
            if isinstance(command, Report):
                self._count_attempt(command.uid)

    def seen_at(self, uid: str) -> float | None:
        """When a pod of ours that waits for its bind was first seen without gates; None for any other."""
        found = self._waiting.get(uid)
        return None if found is None else found[0]

    def _count_attempt(self, uid: str) -> None:
        """One more attempt, unless the pod is gone: what a late refusal left would stay for ever."""
        if uid in self._waiting:
            since, attempts = self._waiting[uid]
            self._waiting[uid] = since, attempts + 1

    def _bound(self, uid: str, now: float) -> None:
        if uid in self._waiting:
            since, attempts = self._waiting.pop(uid)
            label = str(attempts) if attempts <= MAX_ATTEMPTS else "15+"
            self._histogram.labels(label).observe(now - since)


class PodTrace:
    """Logs what a step means for each pod of ours.

    The messages in the order of a pod: received (or held back by gates), considered, bind sent and bound
    (`live/write/outbox.py`). Why it is not placed is logged with its report, at a lower level.
    """

    def __init__(self, is_ours: Callable[[str], bool], decision: Callable[[str], Decision | None]) -> None:
        self._is_ours = is_ours
        self._decision = decision
        self._seen: dict[str, tuple[str, ...]] = {}  # uid -> gates, of each pending pod that was logged

    @staticmethod
    def is_wanted() -> bool:
        """Whether debug messages are logged."""
        return _log.isEnabledFor(logging.DEBUG)

    def observe_step(self, _now: float, events: Sequence[Event], commands: Sequence[Command]) -> None:
        """Take in one step of the engine (a StepObserver)."""
        for event in events:
            match event:
                case TaskSeen(task=task) if not (task.node or task.ended) and self._is_ours(task.profile):
                    self._received(task)
                case BindRefused(uid=uid, node=node, reason=reason):
                    _log.debug("back in the queue: %s", reason, extra={"uid": uid, "node": node})
                case TaskGone(uid=uid) | BindConfirmed(uid=uid):
                    self._seen.pop(uid, None)
        for command in commands:
            if isinstance(command, Bind):
                self._considered(command)

    def _received(self, task: Task) -> None:
        if self._seen.get(task.uid) == task.gates:
            return
        self._seen[task.uid] = task.gates
        fields = {"pod": str(task), "uid": task.uid}
        if task.gates:
            _log.debug("received, held back by scheduling gates %s", ", ".join(task.gates), extra=fields)
        else:
            _log.debug(
                "received and queued: class %s, priority %d", task.workload, task.priority, extra=fields
            )

    def _considered(self, bind: Bind) -> None:
        found = self._decision(bind.uid)
        fields = {"pod": f"{bind.namespace}/{bind.name}", "uid": bind.uid, "node": bind.node}
        _log.debug("considered: %s", found or "nothing is known", extra=fields)
