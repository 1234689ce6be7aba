"""Attempts: running pods that may have copies, their siblings, and the copies that there are.

Kept only where a profile makes copies. What it costs to look for stragglers is bounded by when each attempt
is looked at: a second after its start, and then whenever it has run for a quarter as long again, after a
second at the earliest and 30 s at the latest. So an attempt is looked at sixteen times in its first
minute, however often is asked and whatever runs beside it.

Nothing here is written anywhere. After a restart the attempts and their copies are seen again, and marks are
on the pods; run times of tasks that have ended, how often copies have won, and which tasks have had one that
is gone, are forgotten.
"""

from bisect import bisect_left, insort
from collections import Counter, OrderedDict, deque
from collections.abc import Mapping, Sequence
from math import inf
from typing import NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from eclectus.cluster.due_times import DueInTurns
from eclectus.engine.counters import CopyCounters
from eclectus.framework import Straggler
from eclectus.model.objects import Preference, Requirement, Task, Term

FIRST_LOOK_SECONDS = 1.0  # after the start
LOOKS_APART, LOOKS_APART_MOST = 0.25, 30.0  # as a share of the age; seconds
ENDED_MOST = 1000  # run times of a group that are remembered
PAST_MOST = 64  # run times of a kind
# Kinds, jobs whose copies were settled, and restarted tasks: beyond it the one unchanged for longest goes.
KINDS_MOST = 4096
PEAK_SECONDS = 3600.0  # for which, at least, the most tasks that a pool has run at a time are remembered

COMPLETION_INDEX_LABEL = "batch.kubernetes.io/job-completion-index"  # by Kubernetes: which task of its Job

GroupKey = tuple[object, ...]
JobKey = tuple[str, str]
PoolKey = tuple[str, str]
"""Profile and path: where there is no Pool, all pods of a profile are one."""


class Group(Struct, eq=False):
    """Siblings: tasks of one job, stage and class."""

    waiting: dict[str, None] = field(default_factory=dict)
    running: dict[str, "RunningAttempt"] = field(default_factory=dict)
    ended: list[float] = field(default_factory=list)  # ascending, seconds
    ended_count: int = 0
    _last: deque[float] = field(default_factory=deque)  # those of `ended`, in the order of their ends

    @property
    def tasks(self) -> int:
        """How many there are, as far as is known."""
        return len(self.waiting) + len(self.running) + self.ended_count

    def end(self, seconds: float) -> None:
        """One has succeeded."""
        self.ended_count += 1
        insort(self.ended, seconds)
        self._last.append(seconds)
        if len(self._last) > ENDED_MOST:
            del self.ended[bisect_left(self.ended, self._last.popleft())]


class Mark(NamedTuple):
    """A pod that was marked as late."""

    straggler: Straggler | None  # None: by a process before
    at: float  # when it was written last, seconds


class RunningAttempt(Struct, eq=False):
    """A running pod that has opted in. Changed by `Attempts` only."""

    task: Task
    started: float
    siblings: Group
    past: Sequence[tuple[str, float]]
    clock: "Attempts"
    row: int = -1
    usual_rate: float = 0.0
    teaches: bool = False  # whether what is learned of its node counts that it has not ended yet
    progress: float | None = None
    refusal: str = ""  # why it gets no copy although it is late

    @property
    def age(self) -> float:
        """For how long it has run, seconds; above 0."""
        return max(self.clock.now - self.started, 1e-3)


class Copy(NamedTuple):
    """A pod that does the work of another one a second time."""

    task: Task
    started: float | None  # when it was seen running, seconds
    is_settled: bool = False  # one of the two has succeeded


class Attempts:
    """By uid. `counters`: what becomes of copies."""

    def __init__(self, counters: CopyCounters) -> None:
        self.now = 0.0
        self.due = DueInTurns()  # attempts that are to be looked at
        self._counters = counters
        self._running: dict[str, RunningAttempt] = {}
        self.running: Mapping[str, RunningAttempt] = self._running
        self._groups: dict[GroupKey, Group] = {}
        self._waiting: dict[str, GroupKey] = {}
        self._past: OrderedDict[GroupKey, deque[tuple[str, float]]] = OrderedDict()
        # By namespace and uid of the original: a label of another namespace's pod is nobody's copy.
        self._copies: dict[tuple[str, str], Copy] = {}
        self._original_of: dict[str, tuple[str, str]] = {}  # uid of a copy -> of its original
        self._marks: dict[str, Mark] = {}
        self.marks: Mapping[str, Mark] = self._marks
        self._spent: set[str] = set()  # running attempts that have had a copy
        self._restarted: OrderedDict[tuple[str, str, str], str] = OrderedDict()  # tasks of Jobs -> last node
        self._settled: OrderedDict[JobKey, tuple[int, int]] = OrderedDict()  # copies that ran, and that won
        self._running_of_job = Counter[JobKey]()
        self._marks_of = Counter[PoolKey | JobKey]()
        self._peaks: dict[PoolKey, list[int]] = {}  # running now; the most of this hour, and of the last one
        self._peaks_since = -inf

    # -- what is seen -----------------------------------------------------------------------------

    def see(self, task: Task, now: float) -> None:
        """A pod that has opted in, or a copy of one, has not ended."""
        self.now = now
        if task.copy_of:
            self._see_copy(task)
            return
        known = self._running.get(task.uid)
        if known is not None:
            self._update(known, task)
        elif task.node and task.phase == "Running" and not task.deleting:
            self._start(task)
        elif task.uid not in self._waiting and not task.node and not task.deleting:
            key = self._waiting[task.uid] = _group_of(task)
            self._groups.setdefault(key, Group()).waiting[task.uid] = None

    def _see_copy(self, task: Task) -> None:
        key = task.namespace, task.copy_of
        known = self._copies.get(key)
        if known is not None and known.task.uid != task.uid:
            return  # a second one is nobody's work
        started = None if known is None else known.started
        if started is None and task.node and task.phase == "Running":
            started = self.now if task.started is None else task.started
            self._counters.started += 1
        self._copies[key] = Copy(task, started, known is not None and known.is_settled)
        self._original_of[task.uid] = key
        original = self._running.get(task.copy_of)
        if original is not None and original.task.namespace == task.namespace:
            self._spent.add(task.copy_of)

    def _start(self, task: Task) -> None:
        uid, key = task.uid, _group_of(task)
        self._leave_waiting(uid)
        group = self._groups.setdefault(key, Group())
        started = self.now if task.started is None else task.started
        past = self._past.setdefault(_kind_of(task), deque(maxlen=PAST_MOST))
        self._past.move_to_end(_kind_of(task))
        if len(self._past) > KINDS_MOST:
            self._past.popitem(last=False)
        attempt = RunningAttempt(task, started, group, past, self)
        group.running[uid] = self._running[uid] = attempt
        self._running_of_job[job_of(task)] += 1
        self._count_in_pool(pool_of(task), 1)
        self._update(attempt, task)
        if self.copy_of(task) is not None:
            self._spent.add(uid)
        self.due.set(task.namespace, uid, max(started + FIRST_LOOK_SECONDS, self.now))

    def _update(self, known: RunningAttempt, task: Task) -> None:
        if pool_of(task) != (pool := pool_of(known.task)):
            self._count_in_pool(pool, -1)
            self._count_in_pool(pool_of(task), 1)
            self._marks_of[pool] -= known.task.uid in self._marks
            self._marks_of[pool_of(task)] += known.task.uid in self._marks
        known.task = task
        if task.progress is not None:
            self.progress_said(task.uid, task.progress)
        if task.straggling and task.uid not in self._marks:
            self._mark(known, Mark(None, self.now))
        if task.deleting:
            self.due.discard(task.namespace, task.uid)
            if task.restartable and task.uid in self._marks:
                self._restarted[_task_of_job(task)] = task.node
                if len(self._restarted) > KINDS_MOST:
                    self._restarted.popitem(last=False)

    def progress_said(self, uid: str, progress: float) -> None:
        """A pod says how much of its work is done, 0..1; no effect unless it runs and has opted in."""
        attempt = self._running.get(uid)
        if attempt is not None:
            attempt.progress = max(progress, attempt.progress or 0.0)

    def end(self, task: Task, now: float) -> None:
        """A pod that has opted in, or a copy, has ended; `forget` follows."""
        self.now = now
        if task.phase != "Succeeded" or task.started is None or task.finished is None:
            return
        seconds = task.finished - task.started
        if seconds > 0.0:
            past = self._past.get(_kind_of(task))
            if past is not None:
                past.append((task.node, seconds))
        original = self._running.get(task.copy_of or task.uid)
        if original is not None and original.task.namespace == task.namespace:
            if seconds > 0.0:
                original.siblings.end(seconds)
            self._settle(original, won=bool(task.copy_of))

    def _settle(self, original: RunningAttempt, *, won: bool) -> None:
        """One of the two has succeeded; no effect if no copy has run, or it is settled already."""
        uid, counters = original.task.uid, self._counters
        copy = self.copy_of(original.task)
        if copy is None or copy.started is None or copy.is_settled:
            return
        self._copies[original.task.namespace, uid] = copy._replace(is_settled=True)
        job = job_of(original.task)
        settled, wins = self._settled.pop(job, (0, 0))
        self._settled[job] = settled + 1, wins + won
        if len(self._settled) > KINDS_MOST:
            self._settled.popitem(last=False)
        if not won:
            counters.lost += 1
            counters.seconds["lost_copy"] += max(0.0, self.now - copy.started)
            return
        counters.won += 1
        counters.seconds["lost_original"] += original.age
        mark = self._marks.get(uid)
        if mark is not None and mark.straggler is not None:
            end = original.started + mark.straggler.left + (mark.at - original.started)
            counters.seconds["saved"] += max(0.0, end - self.now)

    def forget(self, uid: str) -> None:
        """A pod has ended or is gone; it need not have opted in."""
        original = self._original_of.pop(uid, None)
        if original is not None:
            self._copies.pop(original, None)
            return
        self._leave_waiting(uid)
        attempt = self._running.pop(uid, None)
        if attempt is None:
            return
        task = attempt.task
        self._unmark(task)
        self._spent.discard(uid)
        self.due.discard(task.namespace, uid)
        del attempt.siblings.running[uid]
        self._drop_empty(_group_of(task))
        job = job_of(task)
        self._running_of_job[job] -= 1
        if not self._running_of_job[job]:
            del self._running_of_job[job]
        self._count_in_pool(pool_of(task), -1)

    def _leave_waiting(self, uid: str) -> None:
        key = self._waiting.pop(uid, None)
        if key is not None:
            del self._groups[key].waiting[uid]
            self._drop_empty(key)

    def _drop_empty(self, key: GroupKey) -> None:
        group = self._groups[key]
        if not group.running and not group.waiting and not key[1]:
            del self._groups[key]  # of a job, whose other tasks may come later, it stays for the median
        elif not group.running and not group.waiting:
            self._jobs_without_tasks(key)

    def _jobs_without_tasks(self, key: GroupKey) -> None:
        """Of a job nothing is left, for now: it is the last to be forgotten."""
        group = self._groups.pop(key)
        self._groups[key] = group
        if len(self._groups) > KINDS_MOST + len(self._running) + len(self._waiting):
            empty = next(each for each, of in self._groups.items() if not of.running and not of.waiting)
            del self._groups[empty]

    # -- marks --------------------------------------------------------------------------------------

    def mark(self, attempt: RunningAttempt, straggler: Straggler) -> None:
        """It is written on the pod that it is late."""
        attempt.refusal = ""
        self._mark(attempt, Mark(straggler, self.now))

    def _mark(self, attempt: RunningAttempt, mark: Mark) -> None:
        task = attempt.task
        if task.uid not in self._marks:
            self._marks_of[pool_of(task)] += 1
            self._marks_of[job_of(task)] += 1
        self._marks[task.uid] = mark

    def unmark(self, attempt: RunningAttempt) -> None:
        """It is written on the pod that it is late no more."""
        self._unmark(attempt.task)

    def _unmark(self, task: Task) -> None:
        if self._marks.pop(task.uid, None) is not None:
            for key in (pool_of(task), job_of(task)):
                self._marks_of[key] -= 1
                if not self._marks_of[key]:
                    del self._marks_of[key]

    def original_of(self, copy: Task) -> RunningAttempt | None:
        """The pod whose work a copy does a second time, if that runs."""
        is_known = copy.uid in self._original_of
        return self._running.get(copy.copy_of) if is_known else None

    def copy_of(self, task: Task) -> Copy | None:
        """The copy of a pod, as last seen; None if it has none."""
        return self._copies.get((task.namespace, task.uid))

    def copy_nodes(self) -> set[str]:
        """The nodes that have copies; that of one that waits is empty."""
        return {copy.task.node for copy in self._copies.values()}

    def has_had_copy(self, uid: str) -> bool:
        """Whether a copy of it was seen, which may be gone."""
        return uid in self._spent

    def rather_elsewhere(self, task: Task) -> Task:
        """A waiting pod; where one of the same task was ended because it was late, it prefers other nodes.

        That is no rule: it may have no other node.
        """
        node = self._restarted.get(_task_of_job(task)) if task.restartable and not task.node else None
        if node is None:
            return task
        others = Preference(100, Term(fields=(Requirement("metadata.name", "NotIn", (node,)),)))
        return replace(task, spec=replace(task.spec, preferences=(*task.spec.preferences, others)))

    def was_restarted(self, task: Task) -> bool:
        """Whether a pod of the same task of its Job was ended because it was late."""
        return _task_of_job(task) in self._restarted

    def marked_of_pool(self, task: Task) -> int:
        """How many tasks of its pool are marked."""
        return self._marks_of[pool_of(task)]

    def marked_of_job(self, task: Task) -> int:
        """How many tasks of its job are marked."""
        return self._marks_of[job_of(task)]

    def running_of_job(self, task: Task) -> int:
        """How many tasks of its job run, copies aside."""
        return self._running_of_job[job_of(task)]

    def settled_of_job(self, task: Task) -> tuple[int, int]:
        """How many copies of its job have run until one of the two had ended, and how many have won."""
        return self._settled.get(job_of(task), (0, 0))

    def slots(self, task: Task) -> int:
        """The most tasks that its pool has run at a time in the last one to two hours, copies aside."""
        return max(self._peaks[pool_of(task)][1:])

    def _count_in_pool(self, pool: PoolKey, change: int) -> None:
        if self.now - self._peaks_since >= PEAK_SECONDS:
            self._peaks_since = self.now
            self._peaks = {key: [n, n, most] for key, (n, most, last) in self._peaks.items() if n or most}
        counts = self._peaks.setdefault(pool, [0, 0, 0])
        counts[0] += change
        counts[1] = max(counts[:2])

    def look_again(self, attempt: RunningAttempt) -> None:
        """After it has run for a quarter as long again."""
        wait = min(max(LOOKS_APART * attempt.age, FIRST_LOOK_SECONDS), LOOKS_APART_MOST)
        self.due.set(attempt.task.namespace, attempt.task.uid, self.now + wait)


def job_of(task: Task) -> JobKey:
    """Its namespace and controller; of a pod without one, which is its own job, the kind of work."""
    return task.namespace, task.workload if task.job in ("", task.uid) else task.job


def pool_of(task: Task) -> PoolKey:
    """Its profile and its pool."""
    return task.profile, task.pool


def _group_of(task: Task) -> GroupKey:
    job = "" if task.job in ("", task.uid) else task.job
    return task.namespace, job, task.stage, task.workload, task.spec.requests


def _task_of_job(task: Task) -> tuple[str, str, str]:
    return task.namespace, task.job, dict(task.labels).get(COMPLETION_INDEX_LABEL, "")


def _kind_of(task: Task) -> GroupKey:
    return task.workload, task.stage, task.spec.requests
