"""The engine's commands on their way to the API server; the answers go to the inbox.

Most requests in flight are reserved for binds. Binds with steps before them and evictions have a few of their
own. Conditions, marks of stragglers, plans of DAG jobs, what is measured of Pools and events share one limit
(`_beside_binds`): where the API server is short of CPU, whatever it does for them a bind waits for. A pod
costs at most two writes on its way to a node, a condition and a bind, and its events; one for which others
are evicted also its nomination, and two for each victim.

Binds that wait for volumes may take minutes. Each namespace has a number of its own of them: pods that name a
StorageClass of which no volume is ever made keep none of another namespace waiting.
"""

import asyncio
import logging
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from eclectus.api.names import LEADER_SINCE, RELAXED_PREFERENCES
from eclectus.config.process_settings import ClientConnectionSettings
from eclectus.kubeclient.timing import elapsed
from eclectus.live.inbox import Inbox
from eclectus.live.process_metrics import Context, Figure, Measured
from eclectus.live.watch.watched_kinds import (
    ClaimStates,
    ConditionState,
    Ignored,
    PlanState,
    PoolState,
    StragglerState,
)
from eclectus.live.write.binder import Binder, VolumeSteps
from eclectus.live.write.event_recorder import EventRecorder
from eclectus.live.write.evictor import Evictor
from eclectus.live.write.status_patches import Conditions, MeasuredPools, Nominator, Plans, Stragglers
from eclectus.live.write.write_queues import Persistence, Pool, Slots
from eclectus.model.commands import (
    Bind,
    Command,
    Evict,
    Fault,
    MarkStraggling,
    Nominate,
    RecordPlan,
    RecordPool,
    Report,
    ReportReclaim,
    Solve,
    VolumeStep,
    Warn,
)
from eclectus.model.events import BindConfirmed

STEPPED_IN_FLIGHT = 8  # few binds have steps: of nominated pods, and of those that displace probes
WAIT_FOR_VOLUMES = 500  # binds of one namespace; each waits most of its time and sends nothing
SLOW_SECONDS = 0.1  # of the last binds' answers on average: ten times what an API server with CPU needs
ANSWERS = 8  # that count as the last ones

_log = logging.getLogger(__name__)

Sent = tuple[Bind, float]
"""A bind, and when it was accepted, seconds."""

BoundObserver = Callable[[Bind, float, float], None]
"""Called as soon as a pod is bound with (its bind, when that was accepted, when it was first sent)."""


@dataclass(frozen=True)
class Known:
    """What writes need to know of pods and jobs, by uid, of Pools, by name, and of claims."""

    condition_state: Callable[[str], ConditionState | None]  # None: the pod is bound, gone or not ours
    take_ignored: Callable[[str], Ignored | None]
    unmet_preferences: Callable[[str], Sequence[str]]  # of the node of a pod that was just decided about
    plan_state: Callable[[str], PlanState | None]  # None: the job has ended or is gone
    pool_state: Callable[[str], PoolState | None]  # None: the Pool is gone or does not count
    straggler_state: Callable[[str], StragglerState | None]  # None: the pod has ended, is gone or not ours
    claims: ClaimStates = field(default_factory=ClaimStates)
    leader_since: Callable[[], str] = lambda: ""  # empty: no replica but this one ever leads


class Outbox:
    """Accepts every command at once; `wait_for_room` slows the loop down while binds queue up.

    `holds_lease` is asked before each write but those of events. `solve` takes flow problems; None: there are
    none. `observe_bound`: None where no spans are made.
    """

    def __init__(
        self,
        context: Context,
        inbox: Inbox,
        known: Known,
        holds_lease: Callable[[], bool],
        connection: ClientConnectionSettings,
        *,
        instance: str,
        solve: Callable[[Solve], None] | None,
        observe_bound: BoundObserver | None = None,
    ) -> None:
        self._inbox = inbox
        self._solve = solve
        self._observe_bound = observe_bound
        self._leader_since = known.leader_since
        self._condition_state = known.condition_state
        self._metrics = context.metrics
        self._in_flight = connection.requests_in_flight
        self.few = connection.writes_beside_binds  # others may replace it while the process runs
        self._binding = 0  # binds under way, but for those that wait for volumes
        self._answers: deque[float] = deque(maxlen=ANSWERS)  # how long the last binds took, seconds
        self._slots = Slots(self._beside_binds)
        conditions, records, events = (partial(self._slots.one, rank) for rank in range(3))
        self._recorder = EventRecorder(context, instance, connection.events_waiting, self._in_flight, events)
        context = replace(context, client=context.client.asking(holds_lease))
        noted = self._metrics.ignored_preferences
        self._ignored = IgnoredPreferences(known.take_ignored, self._recorder, noted)
        self._relaxed = RelaxedPreferences(known.unmet_preferences, self._metrics.relaxed_preferences)
        persistence, state_of = Persistence(context.rng, holds_lease), known.condition_state
        behind_binds = replace(persistence, slot=conditions)
        self._conditions = Conditions(context, behind_binds, state_of, self._in_flight)
        nominator = Nominator(context, persistence, state_of)
        self._evictor = Evictor(nominator, self._recorder, inbox, connection.evictions_in_flight)
        recording = replace(persistence, slot=records)
        self._plans = Plans(context, recording, known.plan_state)
        self._pools = MeasuredPools(context, recording, known.pool_state)
        self._stragglers = Stragglers(context, recording, known.straggler_state)
        volume_steps = VolumeSteps(context, persistence, known.claims, state_of)
        seconds = connection.request_timeout
        self._binder = Binder(context, persistence, seconds, self._annotations, nominator, volume_steps)
        self._binds: Pool[Sent] = Pool("binds", self._in_flight, self._bind_first)
        self._stepped: Pool[Sent] = Pool("binds with steps", STEPPED_IN_FLIGHT, self._bind_first)
        self._for_volumes: Pool[Sent] = Pool(
            "binds that wait for volumes", WAIT_FOR_VOLUMES, self._bind, lambda sent: sent[0].namespace
        )
        self._publish_depths()

    def _annotations(self, uid: str) -> Mapping[str, str]:
        """What a pod gets with its bind; by the time a late bind of a former leader is refused."""
        since = self._leader_since()
        return {**self._relaxed.annotations(uid), **({LEADER_SINCE: since} if since else {})}

    async def run(self) -> None:
        """Send until cancelled."""
        async with asyncio.TaskGroup() as group:
            for workers in self._workers():
                group.create_task(workers.run())
            group.create_task(self._for_volumes.run())

    def accept(self, commands: Sequence[Command]) -> None:
        """Queue the commands of one step."""
        makes_room = False
        for command in commands:
            match command:
                case Bind():
                    self._accept_bind(command)
                case Report():
                    self._report(command)
                case Warn():
                    self._recorder.warned(command)
                case ReportReclaim():
                    self._recorder.would_reclaim(command)
                case RecordPlan():
                    self._plans.put(command.uid, command)
                case RecordPool():
                    self._pools.put(command.name, command)
                case MarkStraggling():
                    self._stragglers.put(command.uid, command)
                    self._recorder.marked(command)
                case Solve() if self._solve is not None:
                    self._solve(command)
                case Nominate() | Evict():
                    makes_room = True
                case Fault():
                    self._metrics.faults.labels(command.policy).inc()
                    _log.error("policy %s: %s", command.policy, command.message)
        if makes_room or self._evictor.under_way:  # which a bind may make needless
            self._evictor.accept(commands)

    def _accept_bind(self, bind: Bind) -> None:
        self._conditions.cancel(bind.uid)
        self._recorder.outdate(bind.uid)
        state = self._condition_state(bind.uid)
        if state is None or state.prefers_nodes:
            self._relaxed.decided(bind)
        self._pool_for(bind).put((bind, elapsed()))
        self._ignored.placed(bind)

    async def wait_for_room(self) -> None:
        """Wait until new binds would be sent soon: a decision becomes stale while it waits in a queue."""
        await self._binds.wait_below(2 * self._in_flight)

    def _pool_for(self, bind: Bind) -> Pool[Sent]:
        if not bind.before:
            return self._binds
        waits_for_volumes = any(isinstance(step, VolumeStep) for step in bind.before)
        return self._for_volumes if waits_for_volumes else self._stepped

    async def wait_until_empty(self) -> None:
        """Wait until everything has been sent and answered, except binds that wait for volumes."""
        for workers in self._workers():
            await workers.wait_below(1)

    async def wait_until_binds_ended(self) -> None:
        """Wait until no bind, nomination or eviction is under way: the next leader must know of them."""
        for workers in (self._binds, self._stepped, self._for_volumes, self._evictor.workers):
            await workers.wait_below(1)

    def _workers(self) -> Sequence[Pool[Any]]:
        """Events last: others write some when they are done."""
        return (
            self._binds,
            self._stepped,
            self._conditions.workers,
            self._evictor.workers,
            self._plans.workers,
            self._pools.workers,
            self._stragglers.workers,
            self._recorder.workers,
        )

    def _publish_depths(self) -> None:
        depths: dict[str, Callable[[], int]] = {
            "binds": lambda: len(self._binds) + len(self._stepped),
            "volumes": lambda: len(self._for_volumes),
            "conditions": lambda: len(self._conditions.workers),
            "evictions": lambda: len(self._evictor.workers),
            "events": lambda: len(self._recorder.workers),
            "plans": lambda: len(self._plans.workers),
            "pools": lambda: len(self._pools.workers),
            "stragglers": lambda: len(self._stragglers.workers),
        }
        for queue, depth in depths.items():
            self._metrics.outbox_depth.labels(queue).set_function(depth)

    async def _bind_first(self, sent: Sent) -> None:
        """Bind, while most other writes wait."""
        self._binding += 1
        began = elapsed()
        try:
            await self._bind(sent)
        finally:
            self._binding -= 1
        if not sent[0].before:
            self._answers.append(elapsed() - began)
        self._slots.admit()

    async def _bind(self, sent: Sent) -> None:
        bind, since = sent
        if _log.isEnabledFor(logging.DEBUG):
            _log.debug("bind sent", extra={"pod": f"{bind.namespace}/{bind.name}", "node": bind.node})
        began = elapsed()
        answer = await self._binder.bind(bind)
        is_bound = isinstance(answer, BindConfirmed)
        result = "scheduled" if is_bound else "error"
        self._metrics.attempt_seconds.labels(result, bind.profile).observe(elapsed() - since)
        self._inbox.put(answer)
        relaxed = self._relaxed.answered(bind, is_bound)
        if is_bound:
            if self._observe_bound is not None:
                self._observe_bound(bind, since, began)
            self._recorder.scheduled(bind, relaxed)
            _log.info("bound", extra={"pod": f"{bind.namespace}/{bind.name}", "node": bind.node})

    def _beside_binds(self) -> int:
        """How many conditions, plans, measurements and events may be under way.

        Few while a bind is under way or answers are slow, one while both, otherwise as many as binds.
        """
        is_slow = sum(self._answers) > SLOW_SECONDS * len(self._answers)
        if self._binding and is_slow:
            return 1
        return self.few if self._binding or is_slow else max(self.few, self._in_flight)

    def _report(self, report: Report) -> None:
        self._conditions.put(report.uid, report)
        if report.reason != "WaitingForNode":  # waiting for a faster node is no failure
            self._recorder.failed(report)
        fields = {"pod": f"{report.namespace}/{report.name}", "reason": report.reason}
        _log.info("not scheduled: %s", report.message, extra=fields)


# -- preferences that are ignored or not met --------------------------------------------------------

# The preferences that a node does not meet are an annotation of the Binding, which the API server copies to
# the pod, and the end of the event `Scheduled`: both without a request of their own. A placement on a node
# that does not meet a stated preference counts as a relaxation, whether a better node existed or not.
MAX_CLASSES = 4096  # noted; beyond this number the one that was placed longest ago may be noted again
MAX_WORDS = 800  # characters, so that an event's note has room for it


@dataclass(eq=False)
class IgnoredPreferences:
    """Counts pods placed without regard to a preference or a hint.

    An event is written for the first one of a namespace, class and set of features. `take` returns what is
    ignored of a pod, once.
    """

    take: Callable[[str], Ignored | None]
    recorder: EventRecorder
    counter: Measured[Figure]
    _noted: OrderedDict[tuple[str, Ignored], None] = field(default_factory=OrderedDict)

    def placed(self, bind: Bind) -> None:
        """The pod is about to be bound."""
        found = self.take(bind.uid)
        if found is None:
            return
        for feature in found.features:
            self.counter.labels(feature).inc()
        key = (bind.namespace, found)
        if key not in self._noted:
            self.recorder.ignored(bind, _note(found))
        self._noted[key] = None
        self._noted.move_to_end(key)
        if len(self._noted) > MAX_CLASSES:
            self._noted.popitem(last=False)


@dataclass(eq=False)
class RelaxedPreferences:
    """What was relaxed of the pods whose binds have no answer yet.

    `unmet` returns the preferences that the node of a pod that was just decided about does not meet.
    """

    unmet: Callable[[str], Sequence[str]]
    counter: Measured[Figure]
    _words: dict[str, str] = field(default_factory=dict)  # by uid

    def decided(self, bind: Bind) -> None:
        """The pod is about to be bound."""
        if unmet := self.unmet(bind.uid):
            words = "; ".join(unmet)
            self._words[bind.uid] = words if len(words) <= MAX_WORDS else f"{words[: MAX_WORDS - 1]}…"

    def annotations(self, uid: str) -> Mapping[str, str]:
        """The annotations for the Binding of the pod."""
        return {RELAXED_PREFERENCES: self._words[uid]} if uid in self._words else {}

    def answered(self, bind: Bind, is_bound: bool) -> str:
        """The end of the event's note, empty if nothing was relaxed; counts the pod if it is bound."""
        words = self._words.pop(bind.uid, "")
        if not words or not is_bound:
            return ""
        self.counter.labels(bind.profile).inc()
        return f". Preferences not met: {words}"


def _note(found: Ignored) -> str:
    parts = []
    if found.features:
        parts.append(
            f"Eclectus does not read {' and '.join(found.features)} yet: pods of class {found.workload} in "
            "this namespace are placed without regard to that. This is noted once."
        )
    if found.invalid_hints:
        parts.append(f"The pod was placed without these annotations: {'; '.join(found.invalid_hints)}.")
    return " ".join(parts)
