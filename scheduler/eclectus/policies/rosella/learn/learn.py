"""Learn node speeds from the completions of ordinary pods.

Q. Wu, Z. Liu, "Rosella", 2020: the performance learner. Every pod that runs to its end is a sample of its
node. docs/rosella.md tells the whole of it, with formulas. Departures from the paper:
- task sizes differ, so a rate is expected over actual time, the expected size being that of sibling
  tasks elsewhere (maths/ratio.py), not one over the mean time;
- rates are per node and workload; a pair never seen has node factor over size as its prior;
- the window L is capped (maths/window.py), or at pod scale it would take weeks to fill; samples fade;
- a change of speed is looked for and, once found, gives up the window (maths/cusum.py);
- work that a known node has never done is believed slower there than its speed says (beliefs.py);
- unknown is not dead: a node without samples counts as a typical one, and a silent node is dead only if
  something runs there and does not end (watch.py).
`mode: paper` undoes caps, fading, alarms and matrix. What stays then is what corrects the paper's slips
(docs/rosella.md), that unknown is not dead, and a weak prior, without which one sample would be all.
Failed, evicted and deleted pods are censored: they teach nothing. Nor does a task that still runs: its
silence can only lower what is believed of its node until something ends there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eclectus.framework import Completion, Learn, LearnedCell, Speeds
from eclectus.maths.window import error_aimed
from eclectus.model.learned import LearnedLoad, LearnedNode, LearnedSummary
from eclectus.model.settings import settle
from eclectus.policies.rosella.learn.effective_rates import EffectiveRates
from eclectus.policies.rosella.learn.exports import Exports
from eclectus.policies.rosella.learn.failure_detector import FailureDetector
from eclectus.policies.rosella.learn.liveness import Liveness
from eclectus.policies.rosella.learn.load import Load
from eclectus.policies.rosella.learn.rates import Rates, Sensitivity
from eclectus.policies.rosella.learn.settings import LearnSettings

REFRESH_SECONDS = 1.0  # how often sizes and factors are fitted again, if there is anything new


@dataclass(eq=False)
class RosellaLearn(LearnSettings, Learn):
    """Rates per node and workload from a window of completions."""

    def __post_init__(self) -> None:
        settle(self)
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
            forgiven_after=self.half_life,
        )
        self._names: dict[int, str] = {}
        self._rows: dict[str, int] = {}
        self._epochs: dict[int, int] = {}  # by row, of what is known of its node
        self._now = self._refreshed_at = self._dropped_at = float("-inf")
        self._is_stale = False  # whether something was recalled that is not fitted in yet

    # -- nodes ---------------------------------------------------------------------------------

    def add_node(self, row: int, node: str, capacity: int) -> None:
        """A row begins as unknown."""
        self.liveness.open_rows(capacity)
        self.rates.add_node(row, capacity)
        self._names[row], self._rows[node], self._epochs[row] = node, row, 0
        if self._effective_rates.rows < capacity:
            self._effective_rates.rebuild()

    def remove_node(self, row: int) -> None:
        """What was known of the row goes with its node."""
        del self._rows[self._names.pop(row)], self._epochs[row]
        self.rates.remove_node(row)
        self.liveness.clear_row(row)
        self._effective_rates.update_row(row)

    # -- what happens --------------------------------------------------------------------------

    def arrived(self, workload: str, now: float) -> None:
        """One more task has come."""
        self.load.arrived(now)
        if self._is_due(now):
            self._refresh(now)

    def started(self, uid: str, row: int, workload: str, now: float) -> None:
        """From now on the node has this to finish."""
        self.liveness.started(uid, row, self._workload_key(workload), now)

    def left(self, uid: str, now: float) -> None:
        """And now it has not."""
        self.liveness.left(uid, now)

    def observe(self, done: Completion) -> None:
        """One more sample of the node, if its time tells of the node as it is."""
        row, now = done.row, done.at
        is_due, believed = self._is_due(now), self.liveness.share.item(row)
        if not self.liveness.ended(row, now - done.seconds, now):
            self._effective_rates.update_row(row)
            return
        if is_due:
            self._fade(now)
        workload = self.rates.workload(self._workload_key(done.workload))
        calls_for_a_fit = self.rates.add(workload, row, done.seconds, now)
        self._epochs[row] += 1
        is_back = self._check_revived(row)
        if is_due or calls_for_a_fit or is_back:
            self._refresh(now)
        elif self.liveness.share.item(row) != 1.0 or believed != 1.0:
            self._effective_rates.update_row(row)
        else:
            self._effective_rates.update_cell(workload, row)

    def _workload_key(self, workload: str) -> str:
        return workload if self.by == "workload" else ""

    def _check_revived(self, row: int) -> bool:
        """Whether a dead node is alive again; then only what it has shown since counts."""
        since = self.liveness.revived_since(row)
        if since is None:
            return False
        for workload, _ in self.rates.cells(row):
            self.rates.drop_before(workload, row, since)
        return True

    # -- time ----------------------------------------------------------------------------------

    def _is_due(self, now: float) -> bool:
        return now - self._refreshed_at >= REFRESH_SECONDS

    def _fade(self, now: float) -> None:
        if now > self._now:
            self.rates.fade(now)
            self._now = now

    def _refresh(self, now: float) -> None:
        """Fit everything to all samples, and judge all nodes: O(workloads x nodes)."""
        self._fade(now)
        if now - self._dropped_at >= self.half_life:
            self.rates.drop_aged(now)
            self._dropped_at = now
        self.rates.refresh(len(self._names), error_aimed(self.load.ratio(now)))
        for row in self._failure_detector.check(now, self._names):
            self._epochs[row] += 1
        self._effective_rates.rebuild()
        self._refreshed_at, self._is_stale = now, False

    # -- what is believed ----------------------------------------------------------------------

    def speeds(self, workload: str) -> Speeds:
        """Rates of this workload, 0 for dead nodes; for one never seen, what nodes are worth for all work."""
        if self._is_stale:
            self._refresh(self._now)
        workload = self._workload_key(workload)
        return self._effective_rates.speeds(workload, self.rates.index.get(workload))

    # -- for people, and for those who come after ----------------------------------------------------

    def learned_cells(self) -> Iterator[LearnedCell]:
        """Every cell with samples; of a dead node as history."""
        return self._exports.learned_cells(self._names)

    def learned_nodes(self) -> Iterator[LearnedNode]:
        """Every node with samples, as a value that another process can recall."""
        return self._exports.learned_nodes(self._names, self._epochs, self._now)

    def learned_load(self, now: float) -> LearnedLoad:
        """Arrivals and capacity of all nodes together, and the recent shares of kinds of work."""
        return self._exports.learned_load(now)

    def summary(self, groups: NDArray[np.intp], now: float) -> LearnedSummary:
        """What is known in all, by group of nodes."""
        return self._exports.summary(self._names, groups, now)

    def recall(self, known: LearnedNode) -> None:
        """Take over what is known of a node, unless more is known here.

        Its state is not taken over: that rests on what runs there now, and will be found again.
        """
        row = self._rows.get(known.node)
        if row is None or known.epoch <= self._epochs[row]:
            return
        self._fade(max(self._now, known.at))
        self.rates.clear(row)
        for work in known.work:
            workload = self.rates.workload(self._workload_key(work.workload))
            self.rates.recall(workload, row, work.rate, work.samples, known.at)
        self._epochs[row], self._is_stale = known.epoch, True
        self._effective_rates.rebuild()
