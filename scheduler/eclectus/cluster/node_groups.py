"""Nodes in groups, by the value of one label: the commonest values by name, the rest together.

For figures that must stay few however many nodes and values there are.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from eclectus.cluster.labels import ABSENT
from eclectus.cluster.nodes import Cluster

OTHER = "other"  # of values beyond the bound
NONE = "none"  # of nodes without the label


def group_nodes(cluster: Cluster, label: str, most: int) -> tuple[list[str], NDArray[np.intp]]:
    """At most so many groups by name, and each row's place among them, -1 where there is no node."""
    column = cluster.labels.column(label)
    value_of = {code: value for value, code in cluster.labels.codes(label).items()} | {ABSENT: NONE}
    nodes = Counter(column[cluster.present].tolist())
    ranked = sorted(nodes, key=lambda code: (-nodes[code], value_of[code]))
    named = ranked if len(ranked) <= most else ranked[: most - 1]
    names = [value_of[code] for code in named]
    places = np.full(len(value_of), len(named), dtype=np.intp)
    places[named] = np.arange(len(named))  # ABSENT, being -1, is the last
    if len(named) < len(ranked):
        names.append(OTHER)
    return names, np.where(cluster.present, places[column], -1)
