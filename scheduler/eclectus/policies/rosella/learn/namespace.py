"""What is learned for one namespace, from its own tasks alone: rates, and which nodes are dead for it."""

from __future__ import annotations

import numpy as np

from eclectus.maths.numbers import Floats
from eclectus.policies.rosella.learn.effective_rates import EffectiveRates
from eclectus.policies.rosella.learn.liveness import Liveness
from eclectus.policies.rosella.learn.rates import Rates


class Namespace:
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
