"""When pods and classes are looked at again. Each reason to do so has its due times, in a heap of its own.

    backoff     pods that failed, by uid
    reports     pods that get a report of why they wait, by uid
    relief      refused classes and gangs, for which other pods may have to make room
    reserving   refused classes, for which nodes may be kept free
    gangs       gangs that failed, by key

`Engine.next_step_at` reads their heads. With them stands how long pods have waited (`WaitingTimes`).

A pod is old once it has waited for half of the profile's limit. The classes of old pods are checked eight
times within the limit, and a class is overdue if a node had room for it at three checks in succession. So a
pod that waits beside room is found within 7/8 of the limit. Room that comes and goes does not count: after
a backlog longer than the limit any node would otherwise be taken, also one on which the class runs badly,
and the backlog would not end.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import islice, takewhile
from math import inf
from typing import Generic, NamedTuple, TypeVar

from eclectus.cluster.due_times import DueTimes
from eclectus.engine.report_allowance import GRACE_SECONDS, REPORTS_IN_ADVANCE, ReportAllowance
from eclectus.model.objects import ClassKey, GangKey, Task

FIRST_BACKOFF_SECONDS = 1.0  # podInitialBackoffSeconds of kube-scheduler
BACKOFF_SECONDS_MOST = 10.0  # podMaxBackoffSeconds of kube-scheduler
DOUBLINGS_MOST = 16  # keeps powers of two finite


def backoff_seconds(failures: int) -> float:
    """How long to wait after so many failures in succession, at least one."""
    return min(FIRST_BACKOFF_SECONDS * 2.0 ** min(failures - 1, DOUBLINGS_MOST), BACKOFF_SECONDS_MOST)


class Backoff:
    """Pods whose last attempt failed for a reason that no cluster event resolves, as in kube-scheduler.

    Each failure of a pod doubles its wait.
    """

    def __init__(self) -> None:
        self._due = DueTimes[str]()
        self.waiting: Mapping[str, object] = self._due.keys  # by uid
        self.next_due = self._due.next_due  # when the next pod may be tried, seconds; inf for never
        self.take_due = self._due.take_due
        self.failures = Counter[str]()  # attempts to place a pod that have failed

    def add(self, uid: str, now: float) -> float:
        """Note that an attempt to place the pod has failed; returns when it may be tried again, seconds."""
        self.failures[uid] += 1
        when = now + backoff_seconds(self.failures[uid])
        self._due.set(uid, when, rank=uid)
        return when

    def discard(self, uid: str) -> None:
        """Take the pod out; its failures stay counted until `forget`."""
        self._due.discard(uid)

    def forget(self, uid: str) -> None:
        """The pod is bound or gone."""
        if self.failures.pop(uid, None) is not None:  # a pod that never failed is not due either
            self._due.discard(uid)


REPEAT_SECONDS = 10.0  # the shortest time between two reports of one pod, doubled each time
REPEAT_SECONDS_MOST = 300.0  # until it is this
WRITTEN_AGAIN_SECONDS = 1800.0  # after which it is written again: an API server keeps events for an hour
CLASSES_IN_TURN = 32  # of those that are looked at in one step
REPEATS_PAUSE_SECONDS = 0.1  # between repeated reports, of which each step makes a few only


class ReportSchedule:
    """When a pending pod gets a report of why it waits, and the last report of each pod.

    A pod that no node could ever run is reported at once. A pod that waits for room is reported after a grace
    period: most such waits end sooner, and every report costs two writes. Later reports are made ever less
    often, a few at a time, and written only when the message has changed or its event will soon expire.

    While there may be few (`report_allowance.py`), classes of which no pod is reported come first. Once the
    eldest pod of such a class has waited for GRACE_SECONDS, its youngest is reported. It will wait for
    longest, and as long as it does an autoscaler knows of the class.
    """

    def __init__(self) -> None:
        self.allowance = ReportAllowance()
        self._at_once = OrderedDict[str, float]()  # uid -> due time, in order of due times
        # First reports, uid -> since when the pod waits and its class, in order of these times. Most are
        # cancelled, and taking the first one out of a plain dict again and again would scan the entries
        # deleted before it.
        self._first = OrderedDict[str, tuple[float, Hashable]]()
        self._of_class: dict[Hashable, OrderedDict[str, None]] = {}  # their uids, in the same order
        self._silent = OrderedDict[Hashable, None]()  # classes among these of which no pod is reported
        self._reporting: dict[str, Hashable] = {}  # uid -> class, of pods that wait after their first report
        self._reported_pods = Counter[Hashable]()  # how many of those a class has
        self._moved = DueTimes[str]()  # first reports of pods that wait in another class than before
        self._repeated = DueTimes[str]()
        self._repeats_from = -inf  # seconds
        self.first: Mapping[str, object] = self._first  # by uid
        self.moved: Mapping[str, object] = self._moved.keys  # by uid
        self.repeated: Mapping[str, object] = self._repeated.keys  # by uid
        self.at_once: Mapping[str, object] = self._at_once  # by uid
        self._reported: dict[str, tuple[str, float, int]] = {}  # uid -> last message, when, how many reports
        self._written: dict[str, float] = {}  # uid -> when the last message was written, seconds

    def next_due(self) -> float:
        """When the next report is due, seconds; inf for never."""
        since, _ = next(iter(self._first.values()), (inf, None))
        others = max(self._repeated.next_due(), self._repeats_from) if self._repeated.keys else inf
        others = min(others, self._moved.next_due()) if self._moved.keys else others
        allowance = self.allowance
        if allowance.is_free:
            at = min(since + GRACE_SECONDS, others)
        else:
            in_advance = self._silent and allowance.is_cut
            silent = self._eldest(next(iter(self._silent))) if in_advance else inf
            others = max(others, allowance.due(-inf))
            at = min(allowance.due(since), allowance.due(silent, REPORTS_IN_ADVANCE), others)
        return min(at, next(iter(self._at_once.values()))) if self._at_once else at

    def add(self, uid: str, now: float, class_key: Hashable = None, *, at_once: bool = False) -> None:
        """Schedule a report for a pending pod; no effect if one is scheduled already.

        `class_key`: equal for pods of which the reports say the same, if it may be the first one of this pod.
        """
        if (
            uid in self._first
            or uid in self._repeated.keys
            or uid in self._at_once
            or uid in self._moved.keys
        ):
            return
        if uid in self._reported:
            _, when, times = self._reported[uid]
            gap = REPEAT_SECONDS * 2 ** min(times - 1, DOUBLINGS_MOST)
            due = now if at_once else now + GRACE_SECONDS
            self._repeated.set(uid, max(due, when + min(gap, REPEAT_SECONDS_MOST)), rank=uid)
        elif at_once:
            self._at_once[uid] = now
        else:
            self._first[uid] = now, class_key
            pods = self._of_class.get(class_key)
            if pods is None:
                pods = self._of_class[class_key] = OrderedDict()
                if class_key not in self._reported_pods:
                    self._silent[class_key] = None
            pods[uid] = None

    def expedite(self, uid: str, now: float) -> None:
        """No node could ever run this pod: if its first report is scheduled, it is due now."""
        if self._leave_first(uid):
            self._at_once[uid] = now

    def take_due(self, now: float, most: int, repeated: int) -> list[str]:
        """Take out pods whose reports are due now, in order of their due times; pods of a class together.

        At most so many, and at most `repeated` of which there were reports before: then others like them
        wait for a pause. However many pods wait, what is said of them again takes little of the time.
        """
        due, grace, is_limited = list[tuple[float, str]](), GRACE_SECONDS, self.allowance.is_limited(now)
        while len(due) < most and next(iter(self._at_once.values()), inf) <= now:
            uid, at = self._at_once.popitem(last=False)
            due.append((at, uid))
        if is_limited:
            if self.allowance.is_cut:
                grace = self.allowance.grace
                in_advance = min(self.allowance.left(now, REPORTS_IN_ADVANCE), most - len(due))
                due += [
                    (now, self._take_first(uid, is_limited)) for uid in self._due_in_advance(now, in_advance)
                ]
            most = min(most, len(due) + self.allowance.left(now))
        while len(due) < most and self._first:
            since, class_key = next(iter(self._first.values()))
            if since + grace > now:
                break
            alike = self._due_of_class(class_key, grace, now, most - len(due))
            due += [(self._first[uid][0] + grace, self._take_first(uid, is_limited)) for uid in alike]
        while len(due) < most and (at := self._moved.next_due()) <= now:
            due.append((at, self._moved.take()[1]))
        if now >= self._repeats_from:
            due += self._take_repeated(now, min(repeated, most - len(due)))
        return [uid for _, uid in sorted(due)]

    def _due_of_class(self, class_key: Hashable, grace: float, now: float, most: int) -> list[str]:
        """Pods of a class that have waited for the grace, the eldest first; the same is said of all."""
        waiting = islice(self._of_class[class_key], most)
        return list(takewhile(lambda uid: self._first[uid][0] + grace <= now, waiting))

    def _take_repeated(self, now: float, most: int) -> Iterator[tuple[float, str]]:
        for _ in range(most):
            if (at := self._repeated.next_due()) > now:
                return
            yield at, self._repeated.take()[1]
        self._repeats_from = now + REPEATS_PAUSE_SECONDS

    def _due_in_advance(self, now: float, most: int) -> list[str]:
        """The youngest pods of classes of which none is reported; at most so many."""
        found = list[str]()
        for key in list(islice(self._silent, CLASSES_IN_TURN)):
            if len(found) == most:
                break
            if self._eldest(key) + GRACE_SECONDS <= now:
                found.append(next(reversed(self._of_class[key])))
            else:
                self._silent.move_to_end(key)
        return found

    def _eldest(self, class_key: Hashable) -> float:
        """Since when the eldest pod of a class waits for its first report, seconds."""
        return self._first[next(iter(self._of_class[class_key]))][0]

    def _take_first(self, uid: str, is_limited: bool) -> str:
        """Take out a pod whose first report is made now."""
        class_key = self._first[uid][1]
        self._leave_first(uid)
        self._reporting[uid] = class_key
        self._reported_pods[class_key] += 1
        self._silent.pop(class_key, None)
        if is_limited:
            self.allowance.spend()
        return uid

    def _leave_first(self, uid: str) -> bool:
        """Schedule no first report of the pod; whether one was scheduled."""
        entry = self._first.pop(uid, None)
        if entry is None:
            return False
        pods = self._of_class[entry[1]]
        del pods[uid]
        if not pods:
            del self._of_class[entry[1]]
            self._silent.pop(entry[1], None)
        return True

    def put_back(self, uids: Iterable[str], now: float) -> None:
        """Make pods due again that were taken out and not reported, whatever is left of the allowance."""
        for uid in uids:
            self._at_once[uid] = now

    def record(self, uid: str, message: str, on_the_pod: str, now: float) -> bool:
        """Note a report; returns whether it must be written: not if the pod has had this message lately."""
        last, _, times = self._reported.get(uid, (on_the_pod, 0.0, 0))
        self._reported[uid] = (message, now, times + 1)
        is_due = message != last or now - self._written.setdefault(uid, now) >= WRITTEN_AGAIN_SECONDS
        if is_due:
            self._written[uid] = now
            if times and self.allowance.is_limited(now):
                self.allowance.spend()
        return is_due

    def last(self, uid: str) -> tuple[str, float, int] | None:
        """The last report of a pod that waits: its message, when it was made, how many there were."""
        return self._reported.get(uid)

    def first_due(self, uid: str) -> float | None:
        """When the first report of a pod is due after the usual grace, seconds; None if none is to come."""
        if uid in self._first:
            return self._first[uid][0] + GRACE_SECONDS
        return self._moved.at(uid)

    def make_first_due(self, uid: str, at: float) -> None:
        """The first report of a pod, which waits in another class now, is due as before: then, seconds."""
        if uid in self._first and at < self._first[uid][0] + GRACE_SECONDS:
            self._leave_first(uid)
            self._moved.set(uid, at, rank=uid)

    def cancel(self, uid: str) -> None:
        """The pod does not wait now; its last report stays known."""
        if self._leave_first(uid):
            return
        self._at_once.pop(uid, None)
        self._moved.discard(uid)
        self._repeated.discard(uid)
        class_key = self._reporting.pop(uid, None)
        if class_key is not None:
            self._reported_pods[class_key] -= 1
            if not self._reported_pods[class_key]:
                del self._reported_pods[class_key]
                if class_key in self._of_class:
                    self._silent[class_key] = None

    def forget(self, uid: str) -> None:
        """The pod is placed or gone."""
        if uid in self._first:  # nothing has been reported yet
            self._leave_first(uid)
        else:
            self.cancel(uid)
            self._reported.pop(uid, None)
            self._written.pop(uid, None)


RefusedKey = tuple[str, ClassKey]  # profile, class
ReliefKey = RefusedKey | tuple[str, GangKey]
K = TypeVar("K", bound=Hashable)

FIRST_RELIEF_SECONDS = 1.0  # until a class for which nothing could be done is asked about again, doubled
RELIEF_SECONDS_MOST = 30.0  # up to this: the period of kube-scheduler's own rechecks
DISAPPOINTED_SECONDS_MOST = 300.0  # likewise, of a class for which room was made again and again in vain
FORGET_SECONDS = 2 * DISAPPOINTED_SECONDS_MOST


class _Disappointed(NamedTuple):
    """Room was made for a class, and did not come."""

    times: int  # in succession
    at: float  # the last time, seconds
    not_before: float  # when it may be asked about again, seconds; -inf for at once


class ReliefSchedule(Generic[K]):
    """When policies are asked about which refused class: at once, later again, or not at all.

    Relieve policies have one such schedule, and Orders that reserve nodes another. A class is asked about
    when no node has room for its tasks, whether they are refused or wait for a busy node; when tasks join it;
    and when a pod of it loses its nomination. While nothing helps it is asked about again after a growing
    time, and when a disruption budget allows more.
    """

    def __init__(self) -> None:
        self._due = DueTimes[K]()
        self.waiting: Mapping[K, object] = self._due.keys  # the classes that are due at some time
        self.next_due = self._due.next_due  # when the first class is due, seconds, -inf for at once
        self.due_at = self._due.at  # when a class is due; None: not before something changes
        self._wait: dict[K, float] = {}  # of classes that were asked about in vain, seconds
        self._disappointed: dict[K, _Disappointed] = {}
        self._at_once_at = -inf  # when all classes were made due at once, seconds

    def add(self, key: K) -> None:
        """Make the class due; after repeated disappointments not before its time."""
        known = self._disappointed.get(key)
        when = -inf if known is None else known.not_before
        if self._due.at(key) != when:
            self._due.set(key, when)

    def add_waiting(self, key: K) -> None:
        """Make the class due unless it was asked about in vain: tasks of it wait for busy nodes."""
        if key not in self._wait:
            self.add(key)

    def take_due(self, now: float) -> list[K]:
        """Take out the classes that are due, in the order in which they were added."""
        return self._due.take_due(now, by_rank=True)

    def helped(self, key: K) -> None:
        """All refused tasks of the class are nominated now."""
        self._wait.pop(key, None)

    def ask_again(self, key: K, now: float, at: float = inf) -> None:
        """Nothing could be done for some tasks of the class: make it due after a longer time than before.

        `at`: when more may be done, if that is sooner; but not at once, so that questions stay bounded.
        """
        wait = self._wait[key] = min(2 * self._wait.get(key, FIRST_RELIEF_SECONDS / 2), RELIEF_SECONDS_MOST)
        if key not in self._due.keys:
            self._due.set(key, min(now + wait, max(at, now + FIRST_RELIEF_SECONDS)))

    def disappoint(self, key: K, now: float) -> None:
        """Room was made for a task of the class and does not come: others have taken it, or no victim goes.

        The first time nothing but the usual wait follows. Then the class is asked about ever more rarely, so
        that evictions which do not help are bounded, whatever takes the room.
        """
        self.ask_again(key, now)
        known = self._disappointed.get(key)
        if known is not None and known.at == now:
            return  # several of its tasks in one step
        times = 1 if known is None or now - known.at > FORGET_SECONDS else known.times + 1
        wait = min(FIRST_RELIEF_SECONDS * 2.0 ** min(times - 1, DOUBLINGS_MOST), DISAPPOINTED_SECONDS_MOST)
        not_before = -inf if times == 1 else now + wait
        self._disappointed.pop(key, None)
        self._disappointed[key] = _Disappointed(times, now, not_before)
        eldest = next(iter(self._disappointed))
        if now - self._disappointed[eldest].at > FORGET_SECONDS:
            del self._disappointed[eldest]
        if (due := self._due.at(key)) is not None and due < not_before:
            self._due.set(key, not_before)

    def succeeded(self, key: K) -> None:
        """A task of the class has got the room that was made for it."""
        self._disappointed.pop(key, None)

    def expedite(self, now: float, *, at_once: bool = False) -> None:
        """Evictions may have become allowed: no class waits for longer than after its first refusal.

        `at_once`: they are due now, or as long after they last were so.
        """
        at = now + FIRST_RELIEF_SECONDS
        if at_once:
            at = self._at_once_at = max(self._at_once_at + FIRST_RELIEF_SECONDS, now)
        self._due.no_later_than(at)
        self._wait.clear()

    def discard(self, key: K) -> None:
        """No task of the class is refused any more."""
        self._due.discard(key)
        self._wait.pop(key, None)


OLD_SHARE = 0.5  # of the limit
CHECKS = 8  # within the limit
CHECKS_WITH_ROOM = 3
CLASSES_MOST = 256  # checked in one step: some 10 ms on 5,000 nodes


class ProfileWaits:
    """The pods of a profile that wait in class queues and node queues, by age, and when they are checked."""

    def __init__(self, limit: float) -> None:
        self.limit = limit  # seconds; written by `set_limit` only
        # Of pods that are not old: since when they wait, seconds, in this order. Most are discarded, and
        # taking the first one out of a plain dict again and again would scan the entries deleted before it.
        self._new: OrderedDict[str, tuple[float, ClassKey]] = OrderedDict()
        self._old: dict[ClassKey, dict[str, None]] = {}  # uids, eldest first
        self._class_of: dict[str, ClassKey] = {}  # of old pods
        self._with_room: dict[ClassKey, int] = {}  # checks in succession
        self._to_check: list[ClassKey] = []  # what is left of a check of more classes than a step bears
        self._check_at = inf

    def __bool__(self) -> bool:
        return bool(self._new or self._old)

    def set_limit(self, limit: float, now: float) -> None:
        """From now on this is the limit; pods that are old already stay so."""
        self.limit = limit
        self._check_at = min(self._check_at, now + limit / CHECKS)

    def next_due(self) -> float:
        """When `check` is to be called, seconds; inf for never."""
        if self._old:
            return self._check_at
        return next(iter(self._new.values()))[0] + OLD_SHARE * self.limit if self._new else inf

    def add(self, uid: str, class_key: ClassKey, now: float) -> float:
        """The pod waits, in this class; since before, if that is known. Returns when it will be old, seconds.

        Its class changes also with what others do, such as pods whose terms match it.
        """
        if uid in self._class_of:
            self._move(uid, class_key)
        elif uid in self._new:
            self._new[uid] = self._new[uid][0], class_key
        else:
            self._new[uid] = now, class_key
        return now + OLD_SHARE * self.limit

    def _move(self, uid: str, class_key: ClassKey) -> None:
        """An old pod is of this class now; that there was room for it counts there too."""
        before = self._class_of[uid]
        if before == class_key:
            return
        checks = max(self._with_room.get(before, 0), self._with_room.get(class_key, 0))
        self.discard(uid)
        self._old.setdefault(class_key, {})[uid] = None
        self._class_of[uid], self._with_room[class_key] = class_key, checks

    def discard(self, uid: str) -> None:
        """The pod does not wait; no error if it did not."""
        if self._new.pop(uid, None) is not None:
            return
        class_key = self._class_of.pop(uid, None)
        if class_key is not None:
            del self._old[class_key][uid]
            if not self._old[class_key]:
                del self._old[class_key]
                self._with_room.pop(class_key, None)
                self._to_check = self._to_check if self._old else []

    def of_class(self, class_key: ClassKey) -> Sequence[str]:
        """The old pods of a class, the eldest first."""
        return tuple(self._old.get(class_key, ()))

    def check(self, now: float, has_room: Callable[[ClassKey], bool]) -> list[ClassKey]:
        """Check some classes, in turn; those of them that are overdue.

        `has_room`: whether a node has room for a task of the class.
        """
        while self._new and next(iter(self._new.values()))[0] + OLD_SHARE * self.limit <= now:
            uid, (_, class_key) = self._new.popitem(last=False)
            self._old.setdefault(class_key, {})[uid] = None
            self._class_of[uid] = class_key
        keys = self._to_check or list(self._old)
        self._to_check = keys[CLASSES_MOST:]
        self._check_at = now if self._to_check else now + self.limit / CHECKS
        return [key for key in keys[:CLASSES_MOST] if key in self._old and self._is_overdue(key, has_room)]

    def _is_overdue(self, key: ClassKey, has_room: Callable[[ClassKey], bool]) -> bool:
        checks = self._with_room[key] = self._with_room.get(key, 0) + 1 if has_room(key) else 0
        return checks >= CHECKS_WITH_ROOM


class WaitingTimes:
    """The waits of each profile that has a limit. `limits`: by profile, seconds or None.

    `next_due`: pods need not be checked before this time, seconds; inf while none waits. It is exact after
    `due`, and may be too early after pods have been discarded: a step for nothing costs less than the exact
    time in every step.
    """

    def __init__(self, limits: Mapping[str, float | None]) -> None:
        self._waits = {name: ProfileWaits(limit) for name, limit in limits.items() if limit is not None}
        self.next_due = inf

    @property
    def limits(self) -> Mapping[str, float]:
        """That of each profile that has one, seconds."""
        return {name: waits.limit for name, waits in self._waits.items()}

    def limit(self, profile: str) -> float | None:
        """That of a profile, seconds; None if it has none."""
        waits = self._waits.get(profile)
        return None if waits is None else waits.limit

    def set_limit(self, profile: str, limit: float, now: float) -> None:
        """The profile has another limit; no effect if it has none, or is not known."""
        waits = self._waits.get(profile)
        if waits is not None:
            waits.set_limit(limit, now)
            self.next_due = min(self.next_due, waits.next_due())

    def due(self, now: float) -> Iterator[ProfileWaits]:
        """Those that are to be checked; the caller checks each before it takes the next."""
        for waits in self._waits.values():
            if waits.next_due() <= now:
                yield waits
        self.next_due = min((waits.next_due() for waits in self._waits.values()), default=inf)

    def add(self, task: Task, now: float) -> None:
        """The pod waits; no effect if that is known."""
        waits = self._waits.get(task.profile)
        if waits is not None:
            due = waits.add(task.uid, (task.spec, task.workload), now)
            if due < self.next_due:
                self.next_due = due

    def discard(self, uid: str) -> None:
        """The pod does not wait; no error if it did not."""
        for waits in self._waits.values():  # it may have had another profile
            waits.discard(uid)
        if not any(self._waits.values()):
            self.next_due = inf
