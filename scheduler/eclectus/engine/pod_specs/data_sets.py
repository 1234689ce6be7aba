"""Where data sets are that pods name without nodes: on the nodes that carry a label, as a cache keeps them.

Labels of nodes are set by admins and controllers, and so trusted; which label a pod may name follows from its
namespace (kube/data.py). The nodes of a data set are looked up once for all pods that name it, and again when
the label has changed on a node. Then the pods that wait for it are seen again, in slices. Pods without such
inputs cost nothing, and neither do labels that no pod names.
"""

from collections.abc import Iterator, Mapping
from itertools import islice

from msgspec.structs import replace

from eclectus.cluster.memo import unfile
from eclectus.cluster.nodes import Cluster
from eclectus.model.objects import Pairs, Task

NODES_MOST = 64  # of a data set, the first by name: each of its pods is filed under each of them
PODS_MOST = 1_000  # that are seen again in one step
CACHED = "true"  # the value of the label


class DataSets:
    """Resolves inputs by labels of nodes.

    `pods`: uid -> the labels that a pod which waits names. `changed`: uids of pods to be seen again.
    """

    def __init__(self, cluster: Cluster, pending: Mapping[str, Task]) -> None:
        self._cluster, self._pending = cluster, pending
        self._labels: dict[str, tuple[str, ...]] = {}
        self.pods: Mapping[str, tuple[str, ...]] = self._labels
        self._users: dict[str, dict[str, None]] = {}  # label -> uids
        self._nodes: dict[str, tuple[str, ...]] = {}  # of labels with users, once asked for
        self._changed: dict[str, None] = {}
        self.changed: Mapping[str, None] = self._changed

    def relabel(self, before: Pairs, after: Pairs) -> None:
        """A node that had these labels has those now; no labels: it comes, or is gone."""
        for key in {key for key, _ in set(before) ^ set(after)} if self._users else ():
            if key in self._users:
                self._nodes.pop(key, None)
                self._changed |= self._users[key]

    def follow(self, task: Task) -> Task:
        """The same as `resolved`, for a pod that waits: from now on until it is discarded."""
        labels = tuple(dict.fromkeys(each.node_label for each in task.inputs if each.node_label))
        if labels != self._labels.get(task.uid, ()):
            self.discard(task.uid)
            self._labels[task.uid] = labels
            for label in labels:
                self._users.setdefault(label, {})[task.uid] = None
        return self.resolved(task)

    def resolved(self, task: Task) -> Task:
        """The pod with the nodes of its data sets."""
        if not any(each.node_label for each in task.inputs):
            return task
        inputs = (
            replace(each, nodes=self._nodes_of(each.node_label)) if each.node_label else each
            for each in task.inputs
        )
        return replace(task, inputs=tuple(inputs))

    def discard(self, uid: str) -> None:
        """The pod waits no more."""
        for label in self._labels.pop(uid, ()):
            unfile(self._users, label, uid)
            if label not in self._users:
                self._nodes.pop(label, None)
        self._changed.pop(uid, None)

    def take_changed(self) -> Iterator[Task]:
        """Take out pods whose data sets are on other nodes now, at most PODS_MOST."""
        for uid in list(islice(self._changed, PODS_MOST)):
            del self._changed[uid]
            before = self._pending[uid]
            if (task := self.resolved(before)) != before:
                yield task

    def _nodes_of(self, label: str) -> tuple[str, ...]:
        found = self._nodes.get(label)
        if found is None:
            names = self._cluster.names
            every = sorted(names[row] for row in self._cluster.labels.rows_with(label, CACHED))
            found = tuple(every[:NODES_MOST])
            if label in self._users:
                self._nodes[label] = found
        return found
