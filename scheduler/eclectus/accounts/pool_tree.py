"""The tree of Pools that cluster admins state: their paths, and which pod is in which.

A pod's pool is a path of names from the root, `research/vision`, and always one without children:

- the pool that its label names, if that pool admits the namespace. A label alone gives no rights: where the
  pool does not admit the namespace, or does not exist, the label counts for nothing;
- else the pool that the namespace's own label names, which only cluster admins set. If there is no such pool,
  or it is not valid, the pods are in `recovery`, so that they neither stand still nor pass for others;
- else `default/<namespace>`.

`default` and `recovery` exist without a Pool object; one of these names gives them weight, shares and limits.
A pool whose parents do not lead to the root, or form a cycle, is not valid. While there is no Pool at all, no
pod is in one, and nothing is counted. Nor are pods with a priority of the system's own ever in one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from eclectus.accounts.group_shares import SEPARATOR
from eclectus.model.objects import Pairs, Task
from eclectus.model.pool import AT_THE_TOP, DEFAULT, RECOVERY, REFUSALS, Pool, admits_pods, refusal_of

SYSTEM_PRIORITY = 2_000_000_000  # of system-cluster-critical: such pods stand above the tree
DEPTH_MOST = 8  # levels of pools: each costs every bind and every end of a pod


class PoolNamespace(NamedTuple):
    """What of a namespace decides in which pools its pods may be."""

    labels: Pairs = ()
    pool: str = ""  # that it names by its own label


UNKNOWN_NAMESPACE = PoolNamespace()


class PoolTree:
    """The Pools that there are: their paths, who may use them, and their amounts.

    Paths are derived when the first is asked for after a change: many Pools that come together cost as one.
    """

    def __init__(self) -> None:
        self._pools: dict[str, Pool] = {}
        self._is_stale = False  # of what is derived
        self._paths: dict[str, str] = {}  # by name, of those that are valid
        self._by_path: dict[str, Pool] = {}
        self._children: dict[str, list[str]] = {}  # path -> paths, of pools with an object
        self._namespaces: dict[str, PoolNamespace] = {}  # by name
        self.version = 0  # counts changes of Pools, and of namespaces while there are Pools

    def __bool__(self) -> bool:
        return bool(self._pools)

    def __iter__(self) -> Iterator[Pool]:
        return iter(self._pools.values())

    def of_name(self, name: str) -> Pool | None:
        """The Pool of this name; None if there is none."""
        return self._pools.get(name)

    def of_path(self, path: str) -> Pool | None:
        """The Pool of this path; None for one without an object."""
        if self._is_stale:
            self._derive()
        return self._by_path.get(path)

    def path_of(self, name: str) -> str | None:
        """The path of a Pool; None if there is none of this name, or it is not valid."""
        if self._is_stale:
            self._derive()
        return self._paths.get(name)

    def set(self, pool: Pool) -> None:
        """The Pool is as given from now on."""
        self._pools[pool.name] = pool
        self._is_stale = True
        self.version += 1

    def remove(self, name: str) -> None:
        """The Pool does not exist any more; no error if it is not known."""
        if self._pools.pop(name, None) is not None:
            self._is_stale = True
            self.version += 1

    def namespace(self, name: str) -> PoolNamespace:
        """What is known of a namespace."""
        return self._namespaces.get(name, UNKNOWN_NAMESPACE)

    def set_namespace(self, name: str, namespace: PoolNamespace | None) -> None:
        """What is known of a namespace from now on; None: it is gone."""
        if namespace is None:
            self._namespaces.pop(name, None)
        else:
            self._namespaces[name] = namespace
        if self._pools:
            self.version += 1

    def _derive(self) -> None:
        self._is_stale = False
        found = ((name, self._path(name)) for name in self._pools)
        self._paths = {name: path for name, path in found if path}
        self._by_path = {path: self._pools[name] for name, path in self._paths.items()}
        self._children = {}
        for path in self._by_path:
            self._children.setdefault(parent_of(path), []).append(path)

    def _path(self, name: str) -> str:
        """The path of a Pool; empty if it does not lead to the root."""
        names = list[str]()
        while name and name not in names and name in self._pools and len(names) < DEPTH_MOST:
            names.append(name)
            name = "" if name in AT_THE_TOP else self._pools[name].parent
        return "" if name else SEPARATOR.join(reversed(names))

    def pool_of(self, task: Task) -> str:
        """The path of the pool that a pod is in; empty if there are no Pools, or it stands above them."""
        if not self._pools or task.priority >= SYSTEM_PRIORITY:
            return ""
        return self.pool_for(task.namespace, task.asked_pool)

    def pool_for(self, name: str, asked: str) -> str:
        """The path of the pool of a namespace's pods that ask for this Pool; there are Pools."""
        if self._is_stale:
            self._derive()
        namespace = self.namespace(name)
        if asked and (path := self._admitting(asked, name, namespace)):
            return path
        if namespace.pool:
            path = self._paths.get(namespace.pool, "")
            return path if path and path not in self._children and namespace.pool != DEFAULT else RECOVERY
        return f"{DEFAULT}{SEPARATOR}{name}"

    def _admitting(self, name: str, namespace: str, known: PoolNamespace) -> str:
        """The path of this pool if pods of the namespace may be in it; otherwise empty."""
        path = self._paths.get(name, "")
        has_place = path and path not in self._children
        return path if has_place and self._admits(name, namespace, known) else ""

    def _admits(self, name: str, namespace: str, known: PoolNamespace) -> bool:
        return admits_pods(self._pools.get(name), namespace, dict(known.labels), known.pool)

    def refusal(self, task: Task) -> str:
        """Why a pod, in its pool of now, is not in the one that its label names; empty if it is.

        Of a Pool that does not admit it is not said whether it exists.
        """
        name, path = task.asked_pool, self.path_of(task.asked_pool)
        if not name or not task.pool or path == task.pool:
            return ""
        is_admitted = self._admits(name, task.namespace, self.namespace(task.namespace))
        is_valid, is_inner = path is not None, path in self._children
        why = refusal_of(is_admitted=is_admitted, is_valid=is_valid, is_inner=is_inner)
        if why is None:
            return ""
        said = REFUSALS[why].format(pool=name, namespace=task.namespace)
        return f"{said}, so its label does not count, and it is in pool {task.pool}"


def parent_of(path: str) -> str:
    """The path of the pool above; empty for one at the top."""
    return path.rpartition(SEPARATOR)[0]
