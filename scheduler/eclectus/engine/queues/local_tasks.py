"""The tasks of a class queue by the nodes that have their data: the first for a node is found at once."""

from bisect import bisect_left, insort
from collections.abc import Container, Iterable, Mapping, Sequence

from eclectus.cluster.locality import names_of
from eclectus.model.objects import Task

Entry = tuple[tuple[float, ...], int, Task]  # key, serial (so that tasks are never compared), task
Place = tuple[tuple[float, ...], int]  # of an entry in its queue: key, serial
NOWHERE: Place = ((), -1)  # before all entries


class LocalTasks:
    """A task costs one insertion for each node that has its data.

    A task is `anywhere` while no node is known that has its data. Nodes come and go: whether one of them is
    still so is looked at when it is the first of these.
    """

    def __init__(self, nodes: Container[str]) -> None:
        """`nodes`: the names of those that exist; it follows their changes."""
        self._nodes = nodes
        self._by_node: dict[str, list[Entry]] = {}
        self.by_node: Mapping[str, Sequence[Entry]] = self._by_node  # by name, none empty
        self._anywhere: list[Entry] = []

    def add(self, entry: Entry) -> None:
        """A task waits."""
        names = names_of(entry[2].inputs)
        for name in names:
            insort(self._by_node.setdefault(name, []), entry)
        if not any(name in self._nodes for name in names):
            insort(self._anywhere, entry)

    def discard(self, entry: Entry) -> None:
        """A task waits no more."""
        for name in names_of(entry[2].inputs):
            tasks = self._by_node[name]
            _remove(tasks, entry)
            if not tasks:
                del self._by_node[name]
        _remove(self._anywhere, entry)

    def first_anywhere(self, begin: Place = NOWHERE) -> Entry | None:
        """The first task, from this place of the queue on, without data on any node that exists."""
        at = bisect_left(self._anywhere, begin, key=_place)
        while at < len(self._anywhere):
            entry = self._anywhere[at]
            if not any(name in self._nodes for name in names_of(entry[2].inputs)):
                return entry
            del self._anywhere[at]
        return None

    def first_of(self, names: Iterable[str], begin: Place = NOWHERE) -> Entry | None:
        """The first task, from this place of the queue on, with data on one of these nodes."""
        if not begin[0]:
            found = (self._by_node[name][0] for name in names if name in self._by_node)
            return min(found, key=_place, default=None)
        behind = (_first(self._by_node[name], begin) for name in names if name in self._by_node)
        return min((entry for entry in behind if entry is not None), key=_place, default=None)


def _place(entry: Entry) -> Place:
    return entry[:2]


def _first(entries: Sequence[Entry], begin: Place) -> Entry | None:
    at = bisect_left(entries, begin, key=_place)
    return entries[at] if at < len(entries) else None


def _remove(entries: list[Entry], entry: Entry) -> None:
    at = bisect_left(entries, entry[:2], key=_place)
    if at < len(entries) and entries[at][1] == entry[1]:
        del entries[at]
