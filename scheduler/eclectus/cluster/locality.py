"""Where the data of tasks are: nodes near them, level by level.

Level 0 is a node with the data. Each label key of a list makes the next level: there the node has the value
of a node with the data, say the same rack. The last level is any node.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from eclectus.cluster.changelog import Rows
from eclectus.cluster.labels import ABSENT
from eclectus.cluster.nodes import Cluster
from eclectus.model.objects import Input, Task

ANYWHERE = "any"  # the name of the last level; one by a label has the name of its key
NEAR_SHARE = 0.5  # of the bytes that the best node has: with so many a node counts as one with the data

Domain = tuple[str, str]
"""A label key and its value; of a node by itself an empty key and its name."""


def names_of(inputs: Sequence[Input]) -> tuple[str, ...]:
    """The names of the nodes that have most of the bytes, whether or not there are such nodes."""
    if len(inputs) == 1:
        return inputs[0].nodes
    sizes = Counter[str]()
    for each in inputs:
        for name in each.nodes:
            sizes[name] += each.size
    most = max(sizes.values(), default=0)
    return tuple(name for name, size in sizes.items() if size >= NEAR_SHARE * most)


def domain_of(cluster: Cluster, row: int, keys: Sequence[str], level: int) -> Domain | None:
    """The domain of a row at a level below the last; None where its node lacks the label."""
    if not level:
        return "", cluster.names[row]
    value = cluster.labels.value(keys[level - 1], row)
    return None if value is None else (keys[level - 1], value)


def domains_of(cluster: Cluster, names: Sequence[str], keys: Sequence[str], level: int) -> Iterator[Domain]:
    """The domains at a level of the nodes with these names that exist."""
    for name in names:
        row = cluster.rows.get(name)
        domain = None if row is None else domain_of(cluster, row, keys, level)
        if domain is not None:
            yield domain


def level_of(cluster: Cluster, task: Task, row: int, keys: Sequence[str]) -> int | None:
    """How near a row is to the data of a task; None where no node is known to have them."""
    names = names_of(task.inputs)
    if not any(name in cluster.rows for name in names):
        return None
    for level in range(len(keys) + 1):
        domain = domain_of(cluster, row, keys, level)
        if domain is not None and domain in domains_of(cluster, names, keys, level):
            return level
    return len(keys) + 1


def beside(cluster: Cluster, rows: Rows, key: str) -> NDArray[np.bool_]:
    """By row, whether its node has the label's value of one of these rows."""
    codes = cluster.labels.column(key)
    is_there = np.zeros(len(cluster.labels.codes(key)) + 1, dtype=bool)
    is_there[codes[rows]] = True
    is_there[ABSENT] = False  # the last one
    near: NDArray[np.bool_] = is_there[codes]
    return near


def rows_by_level(cluster: Cluster, names: Sequence[str], keys: Sequence[str]) -> list[Rows]:
    """The rows of the nodes with these names that exist, and of each further level but the last those alone
    that no nearer one has.
    """
    known = dict.fromkeys(cluster.rows[name] for name in names if name in cluster.rows)
    found = [np.fromiter(known, dtype=np.intp)]
    if keys:
        is_left = np.ones(cluster.capacity, dtype=bool)
        for key in keys:
            is_left[found[-1]] = False
            found.append(np.flatnonzero(beside(cluster, found[0], key) & is_left))
    return found
