"""Nodes in groups by the value of one label: the most common values by name, the rest together.

For metrics whose number must stay small however many nodes and label values there are.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from eclectus.cluster.labels import ABSENT
from eclectus.cluster.nodes import Cluster

OTHER = "other"  # nodes whose value has no group of its own
NONE = "none"  # nodes without the label


def group_nodes(cluster: Cluster, label: str, max_groups: int) -> tuple[list[str], NDArray[np.intp]]:
    """The names of at most `max_groups` groups, and the group of each row, -1 where there is no node."""
    column = cluster.labels.column(label)
    value_of = {code: value for value, code in cluster.labels.codes(label).items()} | {ABSENT: NONE}
    nodes = Counter(column[cluster.present].tolist())
    ranked = sorted(nodes, key=lambda code: (-nodes[code], value_of[code]))
    own_group = ranked if len(ranked) <= max_groups else ranked[: max_groups - 1]
    names = [value_of[code] for code in own_group]
    group_of = np.full(len(value_of), len(own_group), dtype=np.intp)
    group_of[own_group] = np.arange(len(own_group))  # ABSENT, being -1, is the last
    if len(own_group) < len(ranked):
        names.append(OTHER)
    return names, np.where(cluster.present, group_of[column], -1)
