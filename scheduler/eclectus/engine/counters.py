"""What the engine counts, for metrics; and how long pods without room wait beside what was expected."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from heapq import nlargest
from typing import Literal, NamedTuple

from msgspec import Struct

from eclectus.cluster.memo import unfile
from eclectus.cluster.nodes import OTHER
from eclectus.feasibility.constraint_set import constraint_set
from eclectus.model.objects import ClassKey

AttemptResult = Literal["scheduled", "unschedulable", "error"]
Incoming = Literal["active", "backoff"]


class PlanCounters:
    """Of the plans of DAG jobs, since the start."""

    def __init__(self) -> None:
        self.made = 0  # plans that an Order has made or changed
        self.slips = 0  # deadlines that were moved to a later time
        self.slip_seconds = 0.0  # by how much in all
        self.lent_seconds: dict[str, float] = {}  # by resource: amounts of the model times seconds
        self.borrowed_seconds: dict[str, float] = {}  # likewise


class CopyCounters:
    """Of copies of stragglers, since the start."""

    def __init__(self) -> None:
        self.started = 0  # that have run
        self.won = 0  # that have ended before their originals
        self.lost = 0  # whose originals have ended first
        self.refused = Counter[
            str
        ]()  # pods that were late and got none, by why; once for each reason in turn
        # saved: by how much sooner tasks have ended than their originals were expected to;
        # lost_copy, lost_original: for how long what was overtaken has run
        self.seconds: dict[str, float] = {"saved": 0.0, "lost_copy": 0.0, "lost_original": 0.0}


class DataCounters:
    """Of pods that name nodes with their data and that may wait for them; by level, since the start.

    A level is `node`, a label key, or `any`.
    """

    def __init__(self) -> None:
        self.starts = Counter[str]()
        self.bytes = Counter[str]()  # of the data of these
        self.wait_seconds: dict[str, float] = {}  # for which they have waited beside unused room


class Counters:
    """Counts since the start. Names and labels follow kube-scheduler's metrics."""

    def __init__(self) -> None:
        self.attempts: Counter[tuple[AttemptResult, str]] = Counter()  # by result and profile
        self.incoming: Counter[tuple[Incoming, str]] = Counter()  # pods entering a queue, by queue and event
        self.faults = 0  # actions of policies that were refused, and exceptions they raised
        self.placed_by_limit = 0  # pods that had waited for so long as their profile allows, beside room
        self.preemption_attempts = 0  # searches for pods to evict
        self.preemption_victims = 0  # pods of which the eviction was sent
        self.dry_run_victims = 0  # pods of which was said that a pool would evict them
        # By profile and set of constraints, of pods that were placed since; both from the same moment on.
        self.expected_wait_seconds: dict[tuple[str, str], float] = defaultdict(float)
        self.observed_wait_seconds: dict[tuple[str, str], float] = defaultdict(float)
        self.plans = PlanCounters()
        self.copies = CopyCounters()
        self.data = DataCounters()
        self.missed_activations = 0  # unschedulable pods that only the periodic recheck has found schedulable


class QueueCounts(Struct, frozen=True):
    """How many pods are in which queue now, and the counters."""

    active: int
    backoff: int
    held_back: int  # pods that a limit of their pool keeps waiting, those of `order: pools` aside
    unschedulable: int
    arriving: int  # pods whose specs are completed in a later step
    gated: int
    in_gangs: int  # pods that wait to be placed together with others, leads aside
    node_queues: int
    binding: int
    nominated: int  # pods for which room is held on a node, neither bound nor assumed
    straggling: int  # running pods that are marked as late
    nodes: int
    classes: int
    dag_jobs: int
    resources: int  # that nodes have offered
    counters: Counters


SETS_MOST = 64  # sets of constraints by which outcomes are counted; further ones are counted together


class _Estimate(NamedTuple):
    class_key: ClassKey
    profile: str
    seconds: float
    at: float  # seconds


class ExpectedWaits:
    """Pods that wait for room, and how long each was expected to wait on.

    An estimate is made once, with a pod's first report, and compared with the outcome when the pod is placed,
    by profile and set of constraints. Estimates come in the order of arrival, so those that are open are of
    the pods ahead.
    """

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._open: dict[str, _Estimate] = {}
        self.open: Mapping[str, object] = self._open  # by uid; nothing need be said of other pods
        self._queues: dict[ClassKey, dict[str, None]] = {}  # uids of the open estimates, the eldest first
        self._sets: set[str] = set()  # that outcomes are counted by

    def longest_queues(self, most: int) -> list[tuple[ClassKey, int]]:
        """The classes with the most open estimates, and how many; that of the eldest pod first."""
        longest = nlargest(most, self._queues.items(), key=lambda queue: len(queue[1]))
        longest.sort(key=lambda queue: self._open[next(iter(queue[1]))].at)
        return [(class_key, len(uids)) for class_key, uids in longest]

    def remaining_seconds(self, uid: str, now: float) -> float | None:
        """How much of the expected wait is left, 0 and more; None without an open estimate."""
        estimate = self._open.get(uid)
        return None if estimate is None else max(estimate.at + estimate.seconds - now, 0.0)

    def add(self, uid: str, class_key: ClassKey, profile: str, seconds: float, now: float) -> None:
        """The pod is expected to wait for so many seconds from now; it has no open estimate."""
        self._open[uid] = _Estimate(class_key, profile, seconds, now)
        self._queues.setdefault(class_key, {})[uid] = None

    def placed(self, uid: str, now: float) -> None:
        """The pod, which has an open estimate, is placed."""
        estimate = self._open[uid]
        labels = (estimate.profile, self._set_of(estimate.class_key))
        self._counters.expected_wait_seconds[labels] += estimate.seconds
        self._counters.observed_wait_seconds[labels] += now - estimate.at
        self.discard(uid)

    def discard(self, uid: str) -> None:
        """The pod, which has an open estimate, waits no more."""
        unfile(self._queues, self._open.pop(uid).class_key, uid)

    def _set_of(self, class_key: ClassKey) -> str:
        name = str(constraint_set(class_key[0]))
        if name not in self._sets and len(self._sets) >= SETS_MOST:
            return OTHER
        self._sets.add(name)
        return name
