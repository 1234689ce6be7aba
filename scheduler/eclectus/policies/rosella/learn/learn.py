"""Rosella's learner: node speeds from the completions of ordinary pods.

Q. Wu, Z. Liu, "Rosella", 2020: the performance learner. Each pod that runs to its end is a sample of its
node. docs/rosella.md describes the learner with its formulas. Departures from the paper:
- task sizes differ, so a rate is expected over actual time, where the expected size is that of tasks of the
  same workload on other nodes (maths/estimators/ratio.py), not one over the mean time;
- rates belong to a node and a workload; a pair without samples has the node's factor over the workload's
  size as its prior;
- the window L is capped (maths/window.py), because pods are so few that a full window would take weeks;
  samples lose weight with age;
- a test detects a change of speed and drops the samples from before it (maths/cusum.py);
- a node with samples counts as slower for a workload that it has never run (effective_rates.py);
- unknown is not dead: a node without samples counts as typical, and a silent node is dead only if tasks run
  there and do not end (liveness.py).

`mode: paper` disables the cap, ageing, alarms and the matrix. The corrections of the paper's formulas stay
(docs/rosella.md), as does that unknown is not dead, and a weak prior, without which a single sample would
determine a rate.

Failed, evicted and deleted pods are censored: they are not samples. Nor is a task that still runs: the time
without an end only lowers the effective rates of its node until a task ends there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eclectus.framework import Completion, Learn, LearnedCell, Speeds
from eclectus.maths.window import error_aimed
from eclectus.model.learned import LearnedLoad, LearnedNode, LearnedSummary
from eclectus.model.settings import apply_implied
from eclectus.policies.rosella.learn.effective_rates import EffectiveRates
from eclectus.policies.rosella.learn.exports import Exports
from eclectus.policies.rosella.learn.failure_detector import FailureDetector
from eclectus.policies.rosella.learn.liveness import Liveness
from eclectus.policies.rosella.learn.load import Load
from eclectus.policies.rosella.learn.rates import Rates, Sensitivity
from eclectus.policies.rosella.learn.settings import LearnSettings

REFRESH_SECONDS = 1.0  # least time between two fits of sizes and factors


@dataclass(eq=False)
class RosellaLearn(LearnSettings, Learn):
    """Rates by node and workload from the completions of ordinary pods."""

    def __post_init__(self) -> None:
        apply_implied(self)
        test = Sensitivity(self.alarm_slack, self.alarm_threshold)
        self.load, self.liveness = Load(self.capacity), Liveness()
        self.rates = Rates(self.prior_samples, self.half_life, self.window, self.most_workloads, test)
        self._effective_rates = EffectiveRates(self.rates.matrix, self.liveness, self.untried_share)
        self._exports = Exports(self.rates, self.liveness, self.load)
        self._failure_detector = FailureDetector(
            self.rates,
            self.liveness,
            self.load,
            certainty=self.certainty,
            spare_share=self.spare_share,
            reset_after=self.half_life,
        )
        self._names: dict[int, str] = {}
        self._rows: dict[str, int] = {}
        self._epochs: dict[int, int] = {}  # by row, of the knowledge of its node
        self._now = self._refreshed_at = float("-inf")
        self._is_stale = False  # whether there is reason for a fit before rates are read

    # -- nodes ---------------------------------------------------------------------------------

    def add_node(self, row: int, node: str, capacity: int) -> None:
        """A new node, without samples."""
        self.liveness.open_rows(capacity)
        self.rates.add_node(row, capacity)
        self._names[row], self._rows[node], self._epochs[row] = node, row, 0
        if self._effective_rates.rows < capacity:
            self._effective_rates.rebuild()

    def remove_node(self, row: int) -> None:
        """Forget the node of this row."""
        del self._rows[self._names.pop(row)], self._epochs[row]
        self.rates.remove_node(row)
        self.liveness.clear_row(row)
        self._update_row(row)

    # -- events --------------------------------------------------------------------------

    def arrived(self, workload: str, now: float) -> None:
        """A task has arrived; fits all rates again if that is due."""
        self.load.arrived(now)
        if self._is_due(now):
            self._refresh(now)

    def started(self, uid: str, row: int, workload: str, now: float) -> None:
        """A task runs on the row."""
        self.liveness.started(uid, row, self._workload_key(workload), now)

    def left(self, uid: str, now: float) -> None:
        """The task has ended or is gone."""
        self.liveness.left(uid, now)

    def observe(self, done: Completion) -> None:
        """A task has ended: a sample of the node, unless the node died while it ran."""
        row, now = done.row, done.at
        is_due, share = self._is_due(now), self.liveness.share.item(row)
        if not self.liveness.ended(row, now - done.seconds, now):
            self._update_row(row)
            return
        if is_due:
            self._fade(now)
        workload = self.rates.workload(self._workload_key(done.workload))
        calls_for_a_fit = self.rates.add(workload, row, done.seconds, now)
        self._epochs[row] += 1
        is_back = self._check_revived(row)
        if is_due or ((calls_for_a_fit or is_back) and now > self._refreshed_at):
            self._refresh(now)
        elif calls_for_a_fit or is_back:  # a step gets one fit for all its samples beyond the first
            self._is_stale = True
        elif self.liveness.share.item(row) != 1.0 or share != 1.0:
            self._update_row(row)
        elif not self._is_stale:
            self._effective_rates.update_cell(workload, row)

    def _update_row(self, row: int) -> None:
        if not self._is_stale:  # the next fit covers it, and workloads may have come since the last one
            self._effective_rates.update_row(row)

    def _workload_key(self, workload: str) -> str:
        return workload if self.by == "workload" else ""

    def _check_revived(self, row: int) -> bool:
        """Whether a dead node is live again; drops its samples from before its death."""
        since = self.liveness.revived_since(row)
        if since is None:
            return False
        for workload, _ in self.rates.scalars(row):
            self.rates.drop_before(workload, row, since)
        return True

    # -- time ----------------------------------------------------------------------------------

    def _is_due(self, now: float) -> bool:
        return now - self._refreshed_at >= REFRESH_SECONDS

    def _fade(self, now: float) -> None:
        self._now = max(self._now, now)
        self.rates.fade(self._now)

    def _refresh(self, now: float) -> None:
        """Fit all rates to all samples and check all nodes for failures: O(workloads x nodes)."""
        self._fade(now)
        self.rates.drop_aged(now)
        self.rates.refresh(len(self._names), error_aimed(self.load.ratio(now)))
        for row in self._failure_detector.check(now, self._names):
            self._epochs[row] += 1
        self._effective_rates.rebuild()
        self._refreshed_at, self._is_stale = now, False

    # -- rates for placement ----------------------------------------------------------------------

    def speeds(self, workload: str) -> Speeds:
        """Effective rates of this workload, 0 for dead nodes; those of all workloads if it is unknown."""
        if self._is_stale:
            self._refresh(self._now)
        workload = self._workload_key(workload)
        return self._effective_rates.speeds(workload, self.rates.index.get(workload))

    # -- reading and restoring ----------------------------------------------------

    def learned_cells(self, after: str = "") -> Iterator[LearnedCell]:
        """Every cell with samples, of dead nodes too."""
        return self._exports.learned_cells(self._names, after)

    def learned_nodes(self) -> Iterator[LearnedNode]:
        """Every node with samples, as a value that another process can recall."""
        return self._exports.learned_nodes(self._names, self._epochs, self._now)

    def learned_load(self, now: float) -> LearnedLoad:
        """Arrival rate (upper estimate), capacity of all nodes together, and recent shares of workloads."""
        return self._exports.learned_load(now)

    def summary(self, groups: NDArray[np.intp], now: float) -> LearnedSummary:
        """Totals by group of nodes. `groups`: by row, -1 for none."""
        return self._exports.summary(self._names, groups, now)

    def recall(self, known: LearnedNode) -> None:
        """Restore the knowledge of a node, unless this learner has a later epoch of it.

        The state is not restored: it depends on what runs there now.
        """
        row = self._rows.get(known.node)
        if row is None or known.epoch <= self._epochs[row]:
            return
        if known.at - self._now >= REFRESH_SECONDS:  # not for each node: fading reads all samples
            self._fade(known.at)
        self.rates.clear(row)
        for work in known.work:
            workload = self.rates.workload(self._workload_key(work.workload))
            self.rates.recall(workload, row, work.rate, work.samples, known.at)
        self._epochs[row], self._is_stale, self._now = known.epoch, True, max(self._now, known.at)
