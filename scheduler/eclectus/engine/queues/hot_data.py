"""Hot spots: data sets for whose nodes many pods wait, or which many pods read from elsewhere, for minutes.

A data set is one of a namespace by its name, as pods state it. In windows of some seconds its pods are
counted that are held for its nodes at the end, and that have started away from these. It is hot from the
first window with `HOT` pods or more until one with less than half as many. Once it has been hot for
`HOT_SECONDS`, an event on one of its pods says so and what helps: copies on more nodes.

Pods state any names. So an event goes to the namespace of the pod alone, its text shows no control
characters, and there are few: for each data set one in `SAY_EVERY_SECONDS`, for each namespace and for all so
many in that time. Beyond `TASKS_MOST` held pods every second one counts twice, every third three times, and
so on; of pods that have started elsewhere a namespace has `SETS_MOST` data sets counted in a window.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from heapq import nlargest
from itertools import chain, islice
from math import inf

from msgspec import Struct

from eclectus.cluster.locality import names_of
from eclectus.cluster.nodes import Cluster
from eclectus.engine.queues.local_tasks import Entry
from eclectus.model.commands import Warn
from eclectus.model.objects import Task

WINDOW_SECONDS = 10.0
HOT = 10  # pods
HOT_SECONDS = 60.0
SAY_EVERY_SECONDS = 600.0
SAID_IN_NAMESPACE_MOST, SAID_MOST = 5, 100
TASKS_MOST = 2000  # held pods that are looked at: two milliseconds, as each names few nodes
SETS_MOST = 64
NODES_MOST = 5  # in an event
NAME_MOST = 100  # characters of a data set's name there

_Key = tuple[str, str]  # a namespace and the name of a data set


class _Pods(Struct):
    """Of one data set in one window, and one of these."""

    task: Task
    held: int = 0
    elsewhere: int = 0


class HotData:
    """The data sets that are hot."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        # In this window, by namespace and name.
        self._elsewhere: dict[str, dict[str, _Pods]] = defaultdict(dict)
        self._hot: dict[_Key, float] = {}  # since when, seconds
        self._said: dict[_Key, float] = {}  # when, within the last SAY_EVERY_SECONDS
        self.window_ends = -inf  # seconds; written here only

    def start_elsewhere(self, task: Task) -> None:
        """A pod has started on a node without its data."""
        counted = self._elsewhere[task.namespace]
        for name in _data_sets(task):
            if name in counted or len(counted) < SETS_MOST:
                pods = counted.setdefault(name, _Pods(task))
                pods.elsewhere += 1
                pods.task = task

    def end_window(self, held: Sequence[Sequence[Entry]], now: float) -> list[Warn]:
        """A window is over, and these pods are held; what is to be said of hot spots."""
        counted = self._count(held)
        if now > self.window_ends + HOT_SECONDS:
            self._hot.clear()  # none was counted for long: what was hot may not have stayed so
        lasted = now - self.window_ends + WINDOW_SECONDS
        self.window_ends = now + WINDOW_SECONDS
        levels = {key: pods.held + pods.elsewhere for key, pods in counted.items()}
        self._hot = {key: at for key, at in self._hot.items() if 2 * levels.get(key, 0) >= HOT}
        self._said = {key: at for key, at in self._said.items() if now < at + SAY_EVERY_SECONDS}
        for key, level in levels.items():
            if level >= HOT:
                self._hot.setdefault(key, now)
        in_namespace, found = Counter(namespace for namespace, _ in self._said), list[Warn]()
        for key, since in self._hot.items():
            is_due = now >= since + HOT_SECONDS and key not in self._said
            if is_due and in_namespace[key[0]] < SAID_IN_NAMESPACE_MOST and len(self._said) < SAID_MOST:
                self._said[key] = now
                in_namespace[key[0]] += 1
                found.append(self._advice(key[1], counted[key], now - since, lasted))
        return found

    def _count(self, held: Sequence[Sequence[Entry]]) -> dict[_Key, _Pods]:
        """The pods of each data set in this window."""
        found = {
            (namespace, name): pods
            for namespace, sets in self._elsewhere.items()
            for name, pods in sets.items()
        }
        self._elsewhere.clear()
        tasks, weight = sampled(held)
        for task in tasks:
            for name in _data_sets(task):
                pods = found.setdefault((task.namespace, name), _Pods(task))
                pods.held += weight
                pods.task = task
        return found

    def _advice(self, name: str, pods: _Pods, seconds: float, lasted: float) -> Warn:
        task = pods.task
        nodes = next(each.nodes for each in task.inputs if each.name == name)
        known = [node for node in nodes if node in self._cluster.rows]
        named = ", ".join(known[:NODES_MOST]) + (", ..." if len(known) > NODES_MOST else "")
        shown = "".join(each if each.isprintable() else "?" for each in name[:NAME_MOST])
        message = (
            f"data set {shown} is a hot spot: for {seconds:.0f} s pods have waited for its nodes ({named}), "
            f"now {pods.held}, or started away from them, {pods.elsewhere} in {lasted:.0f} s; "
            "put copies of it on more nodes"
        )
        return Warn(task.uid, task.namespace, task.name, task.profile, "DataHot", message)


def most_waited_for(cluster: Cluster, held: Sequence[Sequence[Entry]], most: int) -> list[tuple[str, int]]:
    """The nodes for which most of the pods that are held wait, and how many, that with the most first."""
    tasks, weight = sampled(held)
    found = Counter[str]()
    for task in tasks:
        found.update(name for name in names_of(task.inputs) if name in cluster.rows)
    ranked = nlargest(most, found.items(), key=lambda each: (each[1], each[0]))
    return [(name, count * weight) for name, count in ranked]


def sampled(held: Sequence[Sequence[Entry]]) -> tuple[Iterable[Task], int]:
    """Some of the pods, in steps of so many: all, unless there are too many."""
    weight = -(-sum(map(len, held)) // TASKS_MOST) or 1
    return (task for _, _, task in islice(chain.from_iterable(held), 0, None, weight)), weight


def _data_sets(task: Task) -> set[str]:
    """The names of those of its data that decide where it waits: on a node that has most of the bytes."""
    nodes = set(names_of(task.inputs))
    return {each.name for each in task.inputs if not nodes.isdisjoint(each.nodes)}
