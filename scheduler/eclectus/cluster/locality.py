"""Where the data of tasks are: nodes near them, level by level.

Level 0 is a node with the data. Each label key of a list makes the next level: there the node has the value
of a node with the data, say the same rack. The last level is any node.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from eclectus.cluster.nodes import Cluster
from eclectus.model.objects import Input, Task

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
