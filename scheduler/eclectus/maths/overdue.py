"""An upper bound of a node's speed from tasks that run there and have not ended.

Q. Wu, Z. Liu, "Rosella", 2020, count a worker as dead when its last L tasks took longer than T_cut
(maths/window.py), which requires benchmarks that arrive all the time. Here a node may run nothing for
hours, so only time in which a task was running is evidence. A task that still runs is not a sample, since
its time is censored, but it bounds the speed from above for any distribution of sizes: by Markov's
inequality a task takes y times its mean with probability at most 1 / y. If j tasks have each run at least
y_(j) times their expected time since a task last ended on the node, a node of g times the learned speed
would show this with probability at most (1 / (g y_(j)))^j. This is at least n^-x for all speeds up to

    g = min over j of  n^(x / j) / y_(j),    y_(1) >= y_(2) >= ...         at most 1

One hung task lowers g little, however old it is; all slots without an end lower it soon. With 30 nodes, x =
2 and four slots, g < 1 after 5.5 mean times, and then it falls in proportion to one over the time.

A node counts as dead when g times its speed is below the cut-off mu* (maths/window.py).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eclectus.maths.numbers import Floats

Rows = NDArray[np.intp]


def speed_share(rows: Rows, overruns: Floats, nodes: int, unlikelihood: float) -> Floats:
    """g of each of `nodes` rows, shape [nodes].

    `rows` and `overruns`, shape [tasks]: of each running task the row, and the time since a task last ended
    there (or since its own start, if later) as a multiple of its expected time. `unlikelihood` is x ln(n).
    """
    share = np.ones(nodes)
    late = overruns > 1.0  # others give no bound
    if not late.any():
        return share
    rows, overruns = rows[late], overruns[late]
    order = np.lexsort((-overruns, rows))
    rows, overruns = rows[order], overruns[order]
    begins = np.flatnonzero(np.diff(rows, prepend=-1))
    rank = np.arange(len(rows)) - np.repeat(begins, np.diff(begins, append=len(rows))) + 1
    np.minimum.at(share, rows, np.exp(unlikelihood / rank) / overruns)
    return share
