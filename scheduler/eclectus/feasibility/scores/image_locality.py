"""ImageLocality: how much of the pod's images a node has already, by size.

An image that few nodes have counts for less, so that pods do not gather where the first of them ran. Less
than 23 MiB in all count as nothing, more than 1000 MiB for each container as that. Image volumes are
left out.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from eclectus.feasibility.scores.whole import MOST, Ints

MIB = 2**20
LEAST = 23 * MIB
MOST_OF_A_CONTAINER = 1000 * MIB


def image_locality(images: Iterable[tuple[Ints, int]], nodes: int, rows: int) -> Ints:
    """The score of so many rows.

    `images`: for each container, init containers included, the size of its image on every row (0: not there)
    and how many of all `nodes` have it.
    """
    total, containers = np.zeros(rows, dtype=np.int64), 0
    for sizes, holders in images:
        containers += 1
        total += (sizes.astype(np.float64) * (holders / nodes if nodes else 0.0)).astype(np.int64)
    most = MOST_OF_A_CONTAINER * max(containers, 1)
    return MOST * (np.clip(total, LEAST, most) - LEAST) // (most - LEAST)
