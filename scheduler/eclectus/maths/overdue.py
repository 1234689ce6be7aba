"""What silence says of a node: tasks run there and none ends.

Rosella counts a worker as dead when its last L tasks took longer than T_cut (rosella.md 5.2, 5.4), which
rests on benchmarks that always come. Here nothing may be running on a node for hours, so only time in
which something was running there is evidence. A task that still runs is no sample, its time is censored;
but it bounds the speed from above, and by no law of sizes at all: by Markov's inequality a task takes y
times its mean with a chance of at most 1 / y. If j tasks have each run y_(j) times as long as
was to be expected of them since anything last ended there, a node of g times the speed believed
would show that with a chance of at most (1 / (g y_(j)))^j. The speeds for which this is no less than n^-x
reach up to

    g = min over j of  n^(x / j) / y_(j),    y_(1) >= y_(2) >= ...         at most 1

One hung task alone says little, whatever its age; the silence of a whole node soon says much: 30 nodes,
x = 2, four slots: g < 1 from 5.5 mean times on, and then falls as one over the time.

A node counts as dead when g times its speed is below the cut-off mu* (maths/window.py).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]


def speed_share(rows: Rows, overruns: Floats, nodes: int, unlikelihood: float) -> Floats:
    """g of each of `nodes` rows, shape [nodes].

    For each task that runs: its row, and how many times its expected time it has run in silence. Both of
    shape [tasks]. `unlikelihood` is x ln(n).
    """
    share = np.ones(nodes)
    late = overruns > 1.0  # the others bound nothing
    if not late.any():
        return share
    rows, overruns = rows[late], overruns[late]
    order = np.lexsort((-overruns, rows))
    rows, overruns = rows[order], overruns[order]
    begins = np.flatnonzero(np.diff(rows, prepend=-1))
    rank = np.arange(len(rows)) - np.repeat(begins, np.diff(begins, append=len(rows))) + 1
    np.minimum.at(share, rows, np.exp(unlikelihood / rank) / overruns)
    return share
