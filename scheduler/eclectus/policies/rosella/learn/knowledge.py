"""What is learned for one namespace, from its own tasks alone: rates, and which nodes are dead for it."""

from __future__ import annotations

from collections.abc import Container, Iterable

import numpy as np
from numpy.typing import NDArray

from eclectus.cluster.scalars import read_only
from eclectus.framework import Speeds
from eclectus.maths.estimators.ratio import NEGLIGIBLE, RatioMatrix
from eclectus.maths.numbers import Floats
from eclectus.policies.rosella.learn.rates import Rates

# Liveness of nodes as one namespace sees it: which nodes count as slower, which are dead or back.
#
# States: `unknown`, no samples; `live`; `suspect`, its tasks are overdue, so it counts as slower
# (maths/overdue.py); `dead`, the last choice for real work. Departures from the paper (Q. Wu, Z. Liu,
# "Rosella", 2020), whose benchmarks arrive all the time: only time in which something ran on a node is
# evidence against it, so an idle node never counts as dead. A dead node on which a task ends is suspect until
# it has enough new samples. A dead node on which nothing runs is reset after a half-life, since without
# probes nothing else would bring it back.
#
# Silence and slowness are evidence for the namespace whose tasks they are. An end is a sign of life for all.

REVIVAL_SAMPLES = 8  # of tasks that started after the node died, that make it live again
TRIAL_SHARE = 0.125  # share of its learned speed that a dead node counts with after a sign of life


class Death:
    """Since when a node counts as dead, its samples since then, and since when it is quiet."""

    __slots__ = ("has_sign_of_life", "new_samples", "quiet_since", "since")

    def __init__(self, since: float) -> None:
        self.since = self.quiet_since = since  # quiet: no task has ended or left
        self.new_samples, self.has_sign_of_life = 0, False


class Liveness:
    """Shares and deaths; arrays by row, shape [capacity]."""

    def __init__(self, rows: int = 0) -> None:
        self.share: Floats = np.ones(rows)  # of its learned speed with which a node counts; 0: dead
        self._deaths: dict[int, Death] = {}

    # -- rows ----------------------------------------------------------------------------------

    def open_rows(self, rows: int) -> None:
        """Extend the array to `rows` rows."""
        missing = rows - len(self.share)
        if missing > 0:
            self.share = np.pad(self.share, (0, missing), constant_values=1.0)

    def reset(self, row: int) -> None:
        """The row is not dead and counts with its full learned speed."""
        self.share[row] = 1.0
        self._deaths.pop(row, None)

    # -- tasks ---------------------------------------------------------------------------------

    def left(self, row: int, now: float) -> None:
        """A task no longer runs on the row."""
        if row in self._deaths:
            self._deaths[row].quiet_since = now

    def ended(self, row: int, began: float, now: float) -> bool:
        """A task has run to its end; returns whether its time is a sample of the node.

        On a dead node, only tasks that started after its death are samples, since others stood still with it.
        But any end is a sign of life, after which the node gets a little real work.
        """
        death = self._deaths.get(row)
        if death is None:
            self.share[row] = 1.0
            return True
        death.has_sign_of_life, death.quiet_since = True, now
        self.share[row] = TRIAL_SHARE
        is_sample = began >= death.since
        death.new_samples += is_sample
        return is_sample

    def revived_since(self, row: int) -> float | None:
        """Make the node live again if it has enough new samples; returns when it died, else None."""
        death = self._deaths.get(row)
        if death is None or death.new_samples < REVIVAL_SAMPLES:
            return None
        self.reset(row)
        return death.since

    # -- failure detection -------------------------------------------------------------------------------

    def is_dead(self, row: int) -> bool:
        """Whether the node counts as dead: it died and has shown no sign of life since."""
        return row in self._deaths and not self._deaths[row].has_sign_of_life

    def dead_rows(self) -> list[int]:
        """The rows of dead nodes."""
        return [row for row in self._deaths if self.is_dead(row)]

    def lowered_rows(self) -> set[int]:
        """The rows that count with less than their learned speed, or have died and not come back."""
        return {*np.flatnonzero(self.share != 1.0).tolist(), *self._deaths}

    def marked(self, rows: Iterable[int]) -> NDArray[np.bool_]:
        """True for these rows; shape [capacity]."""
        marks = np.zeros(len(self.share), dtype=bool)
        marks[list(rows)] = True
        return marks

    def mark_dead(self, rows: NDArray[np.intp], now: float) -> list[int]:
        """These rows count as dead from now on; returns those that did not before."""
        died = [row for row in rows.tolist() if not self.is_dead(row)]
        for row in died:
            self._deaths[row] = Death(now)
        return died

    def apply_shares(self, share: Floats, nodes: int) -> None:
        """Take over the shares. Dead rows get 0, unless all nodes are dead, which must be an error."""
        dead = self.dead_rows()
        self.share = share
        for row, death in self._deaths.items():
            if death.has_sign_of_life:
                share[row] = min(share[row], TRIAL_SHARE)
        if len(dead) < nodes:
            share[dead] = 0.0

    def silent_since(self, last_end: Floats) -> Floats:
        """Since when each row is silent: since a task ended there; after a death also since one left."""
        found = last_end.copy()
        for row, death in self._deaths.items():
            found[row] = max(found[row], death.quiet_since)
        return found

    def idle_dead_rows(self, busy: Container[int], now: float, after: float) -> list[int]:
        """Dead rows, none of them `busy`, where no task has ended or left for `after` seconds."""
        return [
            row for row, death in self._deaths.items() if row not in busy and now - death.quiet_since >= after
        ]

    def is_dead_or_on_trial(self, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Which of the rows are dead, or have shown a sign of life since but too few samples."""
        return self.marked(self._deaths)[rows]


# Effective rates: what placement uses of one namespace's learned rates.
#
# They are multiplied by a share for silence. A node also counts as slower for a workload that
# it has never run than its speed for other workloads suggests: workloads may rank nodes differently, a task
# that finds this out runs long, and other nodes are known to be good at it. Two cases are exempt: a node
# without any samples counts as typical, and so does a cell whose samples were dropped, since it was tried and
# its present speed must be found out. What other namespaces have learned of the nodes is a prior
# (maths/estimators/of_nodes.py): it enters here alone, so that it changes nothing of what is learned.


class EffectiveRates:
    """Rates by node, for all workloads together and for each; between two fits single rows are updated."""

    def __init__(self, matrix: RatioMatrix, untried_share: float) -> None:
        self._matrix, self._untried_share = matrix, untried_share
        self._rate: Floats = np.ones((1, 0))  # row 0: all workloads together; then one row for each workload
        self._prior: Floats | None = None  # of the nodes' speeds, from other namespaces
        self._speeds: dict[int | None, Speeds] = {}
        self._epoch, self._most = 0, 1.0

    @property
    def rows(self) -> int:
        """Length of the arrays."""
        return len(self._rate[0])

    def speeds(self, index: int | None) -> Speeds:
        """Rates of the workload with this index in the matrix; for None, of all workloads together."""
        found = self._speeds.get(index)
        if found is None:
            rate = self._rate[0 if index is None else index + 1]
            found = self._speeds[index] = Speeds(read_only(rate), self._most, self._epoch)
        return found

    def rebuild(self, share: Floats, prior: Floats | None, epoch: int) -> None:
        """Compute all rates again. `share` and `prior` have shape [rows]; without others it is None."""
        self._prior, self._epoch = prior, epoch
        factor, rate = self._believed(slice(None))
        if self._rate.shape != (shape := (len(rate) + 1, len(factor))):
            self._rate = np.empty(shape)
        self._rate[0] = factor  # in place: fresh memory would take most of the time
        np.multiply(self._discounts(slice(None)), rate, out=self._rate[1:])
        self._rate *= share
        self._most = float(self._rate.max(initial=0.0)) or 1.0
        self._speeds.clear()

    def update_row(self, row: int, share: float) -> None:
        """Compute the rates of one node again."""
        rows = slice(row, row + 1)
        factor, rate = self._believed(rows)
        self._rate[0, row] = factor[0] * share
        self._rate[1:, row] = self._discounts(rows)[:, 0] * rate[:, 0] * share
        self._raise_bound(float(self._rate[:, row].max()))

    def update_cell(self, workload: int, row: int) -> None:
        """Compute the rate of one cell again, of a node whose share is 1."""
        if self._prior is None:
            factor, rate = self._matrix.factor.item(row), self._matrix.rate.item(workload, row)
        else:
            factors, rates = self._believed(slice(row, row + 1))
            factor, rate = factors.item(0), rates.item(workload, 0)
        self._rate[0, row], self._rate[workload + 1, row] = factor, rate
        self._raise_bound(max(factor, rate))

    def _believed(self, rows: slice) -> tuple[Floats, Floats]:
        """Speeds and rates of these rows, with what others know of them."""
        matrix = self._matrix
        if self._prior is None:
            return matrix.factor[rows], matrix.rate[:, rows]
        speed = matrix.speed_given(self._prior, rows)
        return speed, matrix.rate_given(speed, rows)

    def _discounts(self, rows: slice) -> Floats:
        """What the rates of all workloads on these rows are multiplied by: less than 1 where untried."""
        matrix = self._matrix
        is_known = np.array(matrix.is_sized, dtype=bool)[
            :, None
        ]  # a workload that no node has run gives no node an advantage
        is_untried = ~matrix.tried[:, rows] & is_known & (matrix.samples[rows] > NEGLIGIBLE)
        return np.where(is_untried, self._untried_share, 1.0)

    def _raise_bound(self, rate: float) -> None:
        """Keep `most` an upper bound of all rates after an update."""
        if rate > self._most:
            self._most = rate
            self._speeds.clear()


class Knowledge:
    """`rates` and `liveness` are its own; `agreed` and `prior` are what others know, None without others."""

    def __init__(self, rates: Rates, untried_share: float) -> None:
        self.rates, self.liveness = rates, Liveness()
        self.runs_work = False  # whether a task of it has ended that is no probe
        self.effective_rates = EffectiveRates(rates.matrix, untried_share)
        self.agreed: Floats | None = None  # shares of the nodes that hold for all namespaces
        self.prior: Floats | None = None  # of the nodes' speeds

    def add_node(self, row: int, rows: int) -> None:
        """A new row, without samples."""
        self.liveness.open_rows(rows)
        self.rates.add_node(row, rows)

    def remove_node(self, row: int) -> None:
        """Forget the row."""
        self.rates.remove_node(row)
        self.liveness.reset(row)

    def share(self, row: int) -> float:
        """Of the learned speed of the row: the least of its own and of what holds for all."""
        own = self.liveness.share.item(row)
        return own if self.agreed is None else min(own, self.agreed.item(row))

    def shares(self) -> Floats:
        """The same of all rows."""
        return self.liveness.share if self.agreed is None else np.minimum(self.liveness.share, self.agreed)

    def check_revived(self, row: int) -> bool:
        """Whether a dead node is live again; drops its samples from before its death."""
        since = self.liveness.revived_since(row)
        if since is None:
            return False
        for workload, _ in self.rates.scalars(row):
            self.rates.drop_before(workload, row, since)
        return True

    def rebuild(self, epoch: int) -> None:
        """Compute the effective rates of all rows again."""
        self.effective_rates.rebuild(self.shares(), self.prior, epoch)

    def update_row(self, row: int) -> None:
        """Compute those of one row again."""
        self.effective_rates.update_row(row, self.share(row))
