"""What runs and what arrives: running tasks, slots of nodes, ends of tasks, and the load of all nodes."""

from array import array
from collections.abc import Hashable, Iterable, Iterator, Mapping
from math import inf, log
from typing import NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from eclectus.framework import Completion
from eclectus.maths import numbers
from eclectus.maths.load import window_length
from eclectus.maths.numbers import Floats, sum_of_products
from eclectus.maths.service_rates import (
    AT_REST,
    MOST_LASTING,
    NEGLIGIBLE,
    CommonChanges,
    RatioMatrix,
    Samples,
    Spread,
    changed_since,
    confidence,
    next_sums,
    relative_error,
    seconds_left,
    shown,
)
from eclectus.maths.shrinkage import Unfinished
from eclectus.model.objects import namespace_of

# The running tasks of a namespace as columns (row, kind, start): updated one by one, read all at once.

Integers = NDArray[np.int64]
Kind = tuple[str, Hashable]
"""Workload and requests: tasks that are alike."""


class Running(NamedTuple):
    """A running task."""

    workload: str
    since: float  # when it was seen running, seconds


_NOTHING: Mapping[str, Running] = {}


class RunningTasks:
    """Columns without gaps: the last task moves into the position of a removed one."""

    def __init__(self) -> None:
        self.by_row: dict[int, dict[str, Running]] = {}  # and by uid; only rows with tasks
        self._position: dict[str, int] = {}  # uid -> position in the columns
        self._uids: list[str] = []
        self._rows = array("q")
        self._numbers = array("q")
        self._since = array("d")
        self.numbers: dict[Kind, int] = {}  # of kinds that run here, or have run lately, in the columns
        self._users: list[int] = []  # by number: running tasks of it
        self._free: list[int] = []  # unused numbers

    def __contains__(self, uid: str) -> bool:
        return uid in self._position

    def __len__(self) -> int:
        return len(self._uids)

    def add(self, uid: str, row: int, kind: Kind, since: float) -> None:
        """Add a task that is not in the columns."""
        self._position[uid] = len(self._uids)
        self._uids.append(uid)
        self._rows.append(row)
        self._since.append(since)
        self.by_row.setdefault(row, {})[uid] = Running(kind[0], since)
        number = self.numbers.get(kind)
        if number is None:
            number = self._new_number(kind)
        self._users[number] += 1
        self._numbers.append(number)

    def remove(self, uid: str) -> int | None:
        """Remove a task; returns the row it ran on, None if it is not in the columns."""
        position = self._position.pop(uid, None)
        if position is None:
            return None
        row = self._rows[position]
        del self.by_row[row][uid]
        if not self.by_row[row]:
            del self.by_row[row]
        self._users[self._numbers[position]] -= 1
        last = self._uids.pop()
        columns = self._rows.pop(), self._numbers.pop(), self._since.pop()
        if last != uid:
            self._position[last], self._uids[position] = position, last
            self._rows[position], self._numbers[position], self._since[position] = columns
        return row

    def on_row(self, row: int) -> Mapping[str, Running]:
        """The tasks that run on a row, by uid, in the order in which they were seen running."""
        return self.by_row.get(row, _NOTHING)

    def columns(self) -> tuple[Integers, Integers, Floats]:
        """Rows, numbers of kinds and start times; shape [tasks] each."""
        return np.array(self._rows), np.array(self._numbers), np.array(self._since)

    def _new_number(self, kind: Kind) -> int:
        if not self._free:
            for name in [name for name, number in self.numbers.items() if not self._users[number]]:
                self._free.append(self.numbers.pop(name))
        if not self._free:
            self._free.append(len(self._users))
            self._users.append(0)
        number = self.numbers[kind] = self._free.pop()
        return number


# What runs where, for all namespaces together: running tasks, slots of nodes, and when a task last ended.
#
# An end is a fact about the node, whatever ran there, so it is known to all namespaces. The running tasks are
# kept by namespace, because their silence counts for their own namespace alone.

HOUR = 3600.0
_NONE = RunningTasks()  # of a namespace without any; nothing is added to it


class Occupancy:
    """Running tasks and ends; arrays and lists by row."""

    def __init__(self) -> None:
        self.last_end: Floats = np.zeros(0)  # when a task last ended there, seconds
        self.running: list[int] = []  # tasks on each row; and their maximum
        self._peak_this_hour: list[int] = []  # in this hour
        self._peak_last_hour: list[int] = []  # and in the last hour
        self._hour = float("-inf")
        self._tasks: dict[str, RunningTasks] = {}  # by namespace
        self._namespace_of: dict[str, str] = {}  # uid -> namespace

    def open_rows(self, rows: int) -> None:
        """Extend the arrays to `rows` rows."""
        missing = rows - len(self.running)
        if missing > 0:
            self.last_end = np.pad(self.last_end, (0, missing))
            for counts in (self.running, self._peak_this_hour, self._peak_last_hour):
                counts.extend([0] * missing)

    def clear_row(self, row: int) -> None:
        """The row belongs to no node or to a new one: nothing runs there."""
        for tasks in list(self._tasks.values()):
            for uid in list(tasks.on_row(row)):
                self.left(uid)
        self._peak_this_hour[row] = self._peak_last_hour[row] = 0

    def started(self, uid: str, row: int, kind: Kind, now: float) -> None:
        """A task runs; further calls for the same task change nothing."""
        if uid not in self._namespace_of:
            namespace = self._namespace_of[uid] = namespace_of(kind[0])
            tasks = self._tasks.get(namespace)
            if tasks is None:
                tasks = self._tasks[namespace] = RunningTasks()
            tasks.add(uid, row, kind, now)
            self.running[row] += 1
            self._peak_this_hour[row] = max(self._peak_this_hour[row], self.running[row])

    def left(self, uid: str) -> int | None:
        """A task no longer runs; returns its row, None if it was never seen running."""
        namespace = self._namespace_of.pop(uid, None)
        if namespace is None:
            return None
        row = self._tasks[namespace].remove(uid)
        if not self._tasks[namespace]:
            del self._tasks[namespace]
        if row is not None:
            self.running[row] -= 1
        return row

    def tasks(self, namespace: str) -> RunningTasks:
        """What runs of this namespace."""
        return self._tasks.get(namespace, _NONE)

    def slots(self, now: float) -> NDArray[np.int64]:
        """The maximum number of tasks seen running on each row in the last one to two hours."""
        if now - self._hour >= HOUR:
            self._hour = now
            self._peak_last_hour, self._peak_this_hour = self._peak_this_hour, list(self.running)
        return np.maximum(self._peak_last_hour, self._peak_this_hour)


# Service rates from samples: windows of samples that lose weight with age, and are cut by alarms.

Stale = list[tuple[int, float]]
"""(workload, time): samples of the workload from before that time are outdated."""


class Cell:
    """The window of samples of one workload on one node, and the CUSUM over them.

    `running` is the sum of the scores so far of the tasks that were still running at the last sample.
    """

    __slots__ = ("running", "samples", "sums")

    def __init__(self) -> None:
        self.samples = Samples()
        self.sums = AT_REST
        self.running = 0.0


class NodeCells:
    """The cells of one node by workload, and one more CUSUM over the samples of all its workloads.

    A change of the node affects all its workloads, so its samples are also tested together: with many
    workloads, each alone would need a long time for the ten samples of an alarm. An alarm over all workloads
    drops samples of all windows, so it must be rarer the more windows there are: its threshold is higher by
    ln(cells), because the mean run to a false alarm grows by about e with each 1 (maths/service_rates.py).

    `running` is the sum of the scores so far of all tasks that were still running at the last sample.
    """

    __slots__ = ("by_workload", "running", "sums")

    def __init__(self) -> None:
        self.by_workload: dict[int, Cell] = {}
        self.sums = AT_REST
        self.running = 0.0

    def cell(self, workload: int) -> Cell:
        """The cell of this workload, created on demand."""
        found = self.by_workload.get(workload)
        if found is None:
            found = self.by_workload[workload] = Cell()
        return found

    def add_score(
        self, workload: int, score: float, running: Mapping[int, float], at: float, slack: float
    ) -> None:
        """Add the score of one more sample to both tests.

        `running`: by workload the scores so far of the tasks that still run on the node, added up.
        """
        cell, mine, total = self.by_workload[workload], running.get(workload, 0.0), sum(running.values())
        cell.sums = next_sums(numbers, cell.sums, shown(score, mine - cell.running), at, slack)
        self.sums = next_sums(numbers, self.sums, shown(score, total - self.running), at, slack)
        cell.running, self.running = mine, total

    def count_running(self, workloads: Iterable[int], running: Mapping[int, float]) -> None:
        """Take these as the scores so far, without a change of the sums: expected times have changed."""
        for each in workloads:
            self.by_workload[each].running = running.get(each, 0.0)
        self.running = sum(running.values())

    def reset_tests(self) -> None:
        """Start all tests again from 0."""
        self.sums = AT_REST
        for each in self.by_workload.values():
            each.sums = AT_REST

    def check_alarm(self, workload: int, threshold: float) -> Stale:
        """What the newest score has shown to be outdated, after which the test starts again from 0."""
        since = changed_since(self.sums, threshold + log(len(self.by_workload)))
        if since is not None:
            self.reset_tests()
            return [(each, since) for each in self.by_workload]
        cell = self.by_workload[workload]
        since = changed_since(cell.sums, threshold)
        if since is None:
            return []
        cell.sums = AT_REST
        return [(workload, since)]


FORGET_HALF_LIVES = 4.0  # after so long without a sample a cell is dropped
NODES_CHECKED = 16  # for such cells with each fit: all 320,000 cells of 5,000 nodes would take 0.2 s


# With which ended tasks a running one may be compared: those of the same workload and the same requests.
#
# Pods of one image that ask for different resources may run for seconds or for hours. A task says nothing of
# its node by its silence before one with the same requests has ended anywhere. Where a workload has had
# several requests, the expected time of a task is that of its own kind, if that is longer.

MOST_SHAPES = 16  # of a workload: pods may ask for anything, and each shape counts all its samples


class EndedShapes:
    """Weight and time of the ended tasks of one namespace, by shape."""

    def __init__(self) -> None:
        # workload -> requests -> weight, mean seconds
        self._ended: dict[int, dict[Hashable, list[float]]] = {}

    def add(self, workload: int, requests: Hashable, weight: float, seconds: float) -> None:
        """A task has ended after so many seconds. Beyond the bound, the shape of least weight is dropped."""
        shapes = self._ended.setdefault(workload, {})
        ended = shapes.setdefault(requests, [0.0, 0.0])
        ended[0] += weight
        ended[1] += weight / ended[0] * (seconds - ended[1])
        if len(shapes) > MOST_SHAPES:
            del shapes[min((each for each in shapes if each != requests), key=lambda each: shapes[each][0])]

    def forget(self, workload: int) -> None:
        """No task of this workload has ended."""
        self._ended.pop(workload, None)

    def fade(self, share: float) -> None:
        """Multiply all weights by this."""
        for shapes in self._ended.values():
            for ended in shapes.values():
                ended[0] *= share

    def mixed(self) -> list[int]:
        """The workloads of which tasks with different requests have ended."""
        return [workload for workload, shapes in self._ended.items() if len(shapes) > 1]

    def pace(self, workload: int, requests: Hashable) -> float | None:
        """The most tasks a second that are expected of such tasks; None if none of them has ended.

        inf where all ended tasks of the workload had these requests: its rate says how long one takes.
        """
        shapes = self._ended.get(workload, {})
        ended = shapes.get(requests)
        if ended is None:
            return None
        return inf if len(shapes) == 1 else 1.0 / ended[1]


class Sensitivity(Struct, frozen=True):
    """The settings of the test for a change of speed (maths/service_rates.py), in spreads."""

    slack: float
    threshold: float


class Tally(Struct):
    """Numbers of samples and of alarms since the start, of all namespaces together."""

    samples: int = 0
    alarms: int = 0


MOST_SIZES = 4.0  # for which a task may have run that counts in how far nodes differ: 2 % run on for longer


# For how long nothing has ended beside a task before it teaches while it runs: in times that such a task
# takes on its node, or on a typical one if that is less.
LATE_TIMES = 1.5


class LateTask(NamedTuple):
    """A task that runs and is late: a sample until it ends, of so many seconds as of that time."""

    workload: int
    row: int
    at: float
    seconds: float


class Rates:
    """Samples and rates of each node (by row) for each workload (by index) of one namespace."""

    def __init__(
        self, prior_samples: float, half_life: float, window: int, test: Sensitivity, tally: Tally
    ) -> None:
        self.matrix = RatioMatrix(prior_samples, half_life=half_life)
        self.index: dict[str, int] = {}  # workload -> index
        self.recent: Floats = np.zeros(0)  # ended tasks of each workload, older ones with less weight
        self.ended = EndedShapes()
        self._window = window
        self._test = test
        self._tally = tally
        self._free: list[int] = []  # indices of forgotten workloads
        # By index of the workload: spread, number of samples ever taken, number of them kept of each node.
        self._spread: list[Spread] = []
        self._sample_counts: list[int] = []
        self._window_lengths: list[int] = []
        self._nodes: dict[int, NodeCells] = {}
        self._next_checked = 0  # the row from which the next check for old samples begins
        self._common_changes = CommonChanges()
        self._late: dict[str, LateTask] = {}  # by uid
        self.unfinished = Unfinished.none()  # as of the last fit

    def add_node(self, row: int, rows: int) -> None:
        """A new row, without samples."""
        self.matrix.open_rows(rows)
        self._nodes[row] = NodeCells()

    def remove_node(self, row: int) -> None:
        """Forget the row."""
        self.clear(row)
        del self._nodes[row]

    def clear(self, row: int) -> None:
        """Drop all samples of the row."""
        self._nodes[row] = NodeCells()
        self._common_changes.forget(row)
        self.matrix.clear_row(row)
        self._late = {uid: each for uid, each in self._late.items() if each.row != row}

    def workload(self, name: str) -> int:
        """The index of a workload."""
        if name not in self.index and self._free:
            self.index[name] = self._free.pop()
        elif name not in self.index:
            self._spread.append(Spread())
            self._sample_counts.append(0)
            self._window_lengths.append(self._window)
            self.recent = np.append(self.recent, 0.0)
            self.index[name] = self.matrix.open_workload()
        return self.index[name]

    def forget(self, name: str) -> None:
        """Drop all samples of a workload; its index may be used for another."""
        index = self.index.pop(name)
        self._free.append(index)
        self.matrix.clear_workload(index)
        self.ended.forget(index)
        self._spread[index], self._sample_counts[index] = Spread(), 0
        self._window_lengths[index], self.recent[index] = self._window, 0.0
        for node in self._nodes.values():
            node.by_workload.pop(index, None)
        self._late = {uid: each for uid, each in self._late.items() if each.workload != index}

    def add(
        self, workload: int, done: Completion, requests: Hashable, running: Mapping[str, Running]
    ) -> bool:
        """Add a sample of a task with these requests; `running`: the tasks on its row, itself among them.

        True if more than its row has changed, or if all samples should be fitted again.
        """
        score = self._spread[workload].score(done.seconds * self.matrix.rate.item(workload, done.row))
        is_first, is_common = self._add_to_window(workload, done, done.seconds, score, running)
        weight = self.matrix.weight(done.at)
        self.ended.add(workload, requests, weight, done.seconds)
        self.recent[workload] += weight
        self._sample_counts[workload] += 1
        # The first samples of a workload come from its shortest tasks, which end first: its size is fitted
        # again each time the number of samples has doubled, however little time has passed.
        return is_first or is_common or self._sample_counts[workload].bit_count() == 1

    def add_overtaken(self, workload: int, run: Completion, running: Mapping[str, Running]) -> bool:
        """Add a task that would have run on; whether more than its row has changed.

        Before a task of the workload has ended nothing can be expected of one.
        """
        if not self.matrix.is_sized[workload]:
            return False
        score = self._spread[workload].overtaken(run.seconds * self.matrix.rate.item(workload, run.row))
        return self._add_to_window(workload, run, self._whole(workload, run), score, running)[1]

    def add_late(self, workload: int, run: Completion, silent_seconds: float) -> bool:
        """Count a task that runs as a sample, if its node is silent for longer than usual; whether it counts.

        What has ended there since it began shows that the task is slow, and not the node. It must not count
        yet: `drop_late`.
        """
        size, rate = self.matrix.size.item(workload), self.matrix.rate.item(workload, run.row)
        if not self.matrix.is_sized[workload] or silent_seconds < LATE_TIMES * min(1.0 / rate, size):
            return False
        late = LateTask(workload, run.row, run.at, min(self._whole(workload, run), MOST_LASTING * size))
        self._late[run.uid] = late
        weight = self.matrix.weight(late.at)
        self.matrix.add(workload, late.row, weight, weight * late.seconds)
        return True

    def drop_late(self, uid: str) -> int | None:
        """The task has ended or is gone, or counts anew: its row if it counted."""
        late = self._late.pop(uid, None)
        if late is None:
            return None
        weight = self.matrix.weight(late.at)
        self.matrix.add(late.workload, late.row, -weight, -weight * late.seconds)
        return late.row

    def _whole(self, workload: int, run: Completion) -> float:
        """How long a task that has not ended would run in all, seconds: as it says, or as is expected."""
        rate, size = self.matrix.rate.item(workload, run.row), self.matrix.size.item(workload)
        if run.progress:
            return max(run.seconds, min(run.seconds / run.progress, MOST_LASTING * size))
        return run.seconds + seconds_left(run.seconds, 1.0 / rate, size, self.variation(workload))

    def _add_to_window(
        self, workload: int, done: Completion, seconds: float, score: float, running: Mapping[str, Running]
    ) -> tuple[bool, bool]:
        """Add a sample of so many seconds; whether it is the workload's first, and all are to be fitted."""
        row, at, node = done.row, done.at, self._nodes[done.row]
        cell = node.cell(workload)
        node.add_score(workload, score, self._scores_so_far(done, running), at, self._test.slack)
        beyond = len(cell.samples) + 1 - self._window_lengths[workload]
        # A window that became shorter shrinks step by step.
        gone, took = self._remove_oldest(cell, min(beyond, 2))
        cell.samples.add(at, seconds)
        weight = self.matrix.weight(at)
        is_first = self.matrix.add(workload, row, weight - gone, weight * seconds - took)
        is_common = self._heed_alarm(workload, done, running)
        self._tally.samples += 1
        self._common_changes.samples += 1
        return is_first, is_common

    def _heed_alarm(self, workload: int, done: Completion, running: Mapping[str, Running]) -> bool:
        """Drop the samples that an alarm shows to be outdated; whether those of other nodes are, too."""
        node = self._nodes[done.row]
        stale = node.check_alarm(workload, self._test.threshold)
        for outdated, since in stale:
            self._tally.alarms += 1
            self.drop_before(outdated, done.row, since)
        if stale:
            node.count_running([each for each, _ in stale], self._scores_so_far(done, running))
        if not stale or len(stale) < len(node.by_workload):
            return False
        known = np.flatnonzero(self.matrix.samples > NEGLIGIBLE)
        return self._common_changes.alarm(done.row, stale[0][1], known)

    def _scores_so_far(self, done: Completion, running: Mapping[str, Running]) -> dict[int, float]:
        """The sums over the tasks that go on running when this one has ended, by workload."""
        found = dict[int, float]()
        for uid, task in running.items():
            index = self.index.get(task.workload)
            if index is not None and self.matrix.is_sized[index] and uid != done.uid:
                relative = (done.at - task.since) * self.matrix.rate.item(index, done.row)
                found[index] = found.get(index, 0.0) + self._spread[index].so_far(relative)
        return found

    def drop_before(self, workload: int, row: int, since: float) -> None:
        """Drop the samples of one cell from before that time."""
        samples = self._nodes[row].by_workload[workload].samples
        self._drop(workload, row, sum(at < since for at, _ in samples))

    def _drop(self, workload: int, row: int, count: int) -> None:
        gone, took = self._remove_oldest(self._nodes[row].by_workload[workload], count)
        if count:
            self.matrix.add(workload, row, -gone, -took)

    def _remove_oldest(self, cell: Cell, count: int) -> tuple[float, float]:
        """Remove the oldest samples; returns their weight, and their seconds times weight."""
        gone = seconds = 0.0
        for _ in range(count):
            at, took = cell.samples.take_oldest()
            weight = self.matrix.weight(at)
            gone += weight
            seconds += weight * took
        return gone, seconds

    def recall(self, workload: int, row: int, rate: float, count: int, at: float) -> None:
        """Restore samples from a rate: `count` samples of 1 / rate seconds, the window at most."""
        samples = self._nodes[row].cell(workload).samples
        samples.add_equal(at, 1.0 / rate, min(count, self._window))
        weight = self.matrix.weight(at) * len(samples)
        self.matrix.add(workload, row, weight, weight / rate)

    def fade(self, now: float) -> float:
        """Age all samples to `now`; returns the factor applied."""
        share = self.matrix.fade(now)
        self.recent *= share
        self.ended.fade(share)
        return share

    def refresh(self, nodes: int, error: float) -> None:
        """Fit all rates to all samples, and window lengths to the target relative error.

        Samples from before a common change are dropped first; their nodes' tests begin again.
        """
        for row, since in self._common_changes.take_outdated():
            for workload in self._nodes[row].by_workload:
                self.drop_before(workload, row, since)
            self._nodes[row].reset_tests()
        self.matrix.refresh()
        self._window_lengths = [
            window_length(nodes, error, spread.variation, most=self._window) for spread in self._spread
        ]

    def note_unfinished(self, running: RunningTasks, now: float) -> None:
        """Note for how long the tasks have run that run now, of workloads of which one has ended.

        One that has run for too long hangs or serves, and says nothing of how fast its node is.
        """
        rows, kinds, since = running.columns()
        works = np.full(1 + max(running.numbers.values(), default=0), -1)
        for (workload, _), number in running.numbers.items():
            index = self.index.get(workload, -1)
            works[number] = index if index >= 0 and self.matrix.is_sized[index] else -1
        is_known = works[kinds] >= 0
        rows, works, since = rows[is_known], works[kinds[is_known]], since[is_known]
        sizes = (now - since) / self.matrix.size[works]
        counts = sizes <= MOST_SIZES
        self.unfinished = Unfinished(rows[counts], works[counts], sizes[counts])

    def drop_aged(self, now: float) -> None:
        """Drop cells of the next few nodes whose newest sample is too old; all nodes have their turn."""
        oldest = now - FORGET_HALF_LIVES * self.matrix.half_life
        first, rows = self._next_checked, len(self.matrix.factor)
        end = min(first + NODES_CHECKED, rows)
        self._next_checked = end % max(rows, 1)
        for row in range(first, end):
            cells = self._nodes[row].by_workload if row in self._nodes else {}
            for workload, cell in list(cells.items()):
                if not cell.samples or cell.samples.newest_at < oldest:
                    self._drop(workload, row, len(cell.samples))
                    del cells[workload]

    def mean_size(self) -> float:
        """Mean size of recent tasks, reference seconds; there must be some."""
        return float(sum_of_products(self.recent, self.matrix.size)) / float(self.recent.sum())

    def scalars(self, row: int) -> Iterator[tuple[int, Samples]]:
        """(workload, samples) of each cell of the row that has samples."""
        for workload, cell in sorted(self._nodes[row].by_workload.items()):
            if cell.samples:
                yield workload, cell.samples

    def has_samples(self, row: int) -> bool:
        """Whether the row has any samples."""
        return any(cell.samples for cell in self._nodes[row].by_workload.values())

    def variation(self, workload: int) -> float:
        """C^2 of the relative times of a workload."""
        return self._spread[workload].variation

    def usual_variations(self) -> Floats:
        """C^2 of each workload by its spread; shape [workloads]."""
        return np.array([spread.usual_variation for spread in self._spread])

    def confidence(self, workload: int, row: int) -> float:
        """The probability that the rate of the cell is within a third of the truth."""
        count = self.matrix.count.item(workload, row)
        return confidence(relative_error(self.variation(workload), count))

    def node_confidence(self, row: int) -> float:
        """The same for the speed of the row over all workloads."""
        count = self.matrix.count[:, row]
        samples = float(count.sum())
        each = np.array([spread.variation for spread in self._spread])
        if not samples:
            return 0.0
        return confidence(relative_error(float(sum_of_products(count, each)) / samples, samples))
