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
- a node with samples counts as slower for a workload that it has never run (knowledge.py);
- each namespace learns from its own tasks, and from others no more than a bounded prior (by_namespace.py);
- unknown is not dead: a node without samples counts as typical, and a silent node is dead only if tasks run
  there and do not end (failure_detector.py).

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

from eclectus.framework import Amounts, Completion, Learn, LearnedCell, Speeds, Traits
from eclectus.maths.window import error_aimed
from eclectus.model.learned import LearnedLoad, LearnedNode, LearnedSummary
from eclectus.model.settings import apply_implied
from eclectus.model.workload_names import in_namespace_of, namespace_of
from eclectus.policies.rosella.learn.by_namespace import KnowledgeByNamespace
from eclectus.policies.rosella.learn.exports import Exports, Load
from eclectus.policies.rosella.learn.failure_detector import FailureDetector, Seen
from eclectus.policies.rosella.learn.rates import Rates, Sensitivity, Tally
from eclectus.policies.rosella.learn.running import Occupancy
from eclectus.policies.rosella.learn.settings import LearnSettings

REFRESH_SECONDS = 1.0  # least time between two fits of sizes and factors
CELLS_A_SECOND = 200_000  # rows times namespaces; with more, fits are rarer: each costs 0.14 us a cell


@dataclass(eq=False)
class RosellaLearn(LearnSettings, Learn):
    """Rates by node and workload from the completions of ordinary pods."""

    traits = Traits(needs=frozenset({"task arrivals", "start times", "task ends"}))

    def __post_init__(self) -> None:
        apply_implied(self)
        self.load, self.occupancy, self.tally = Load(self.capacity), Occupancy(), Tally()
        self.namespaces = KnowledgeByNamespace(self._new_rates, self.untried_share, self.most_workloads)
        self._exports = Exports(self.namespaces, self.load, self.tally)
        self._failure_detector = FailureDetector(self.certainty, self.spare_share, self.half_life)
        self._names: dict[int, str] = {}
        self._rows: dict[str, int] = {}
        self._epochs: dict[int, int] = {}  # by row, of the knowledge of its node
        self._now = self._refreshed_at = float("-inf")
        self._is_stale = False  # whether there is reason for a fit before rates are read

    def _new_rates(self) -> Rates:
        test = Sensitivity(self.alarm_slack, self.alarm_threshold)
        return Rates(self.prior_samples, self.half_life, self.window, test, self.tally)

    # -- nodes ---------------------------------------------------------------------------------

    def add_node(self, row: int, node: str, capacity: int) -> None:
        """A new node, without samples."""
        self.occupancy.open_rows(capacity)
        self.namespaces.add_node(row, capacity)
        self._names[row], self._rows[node], self._epochs[row] = node, row, 0

    def remove_node(self, row: int) -> None:
        """Forget the node of this row."""
        del self._rows[self._names.pop(row)], self._epochs[row]
        self.namespaces.remove_node(row)
        self.occupancy.clear_row(row)
        self._update_row(row)

    # -- events --------------------------------------------------------------------------

    def arrived(self, workload: str, now: float) -> None:
        """A task has arrived; fits all rates again if that is due."""
        self.load.arrived(now)
        if self._is_due(now):
            self._refresh(now)

    def started(self, uid: str, row: int, workload: str, now: float, requests: Amounts = ()) -> None:
        """A task runs on the row."""
        self.occupancy.started(uid, row, (self._learned_as(workload), self._shape(requests)), now)

    def left(self, uid: str, now: float) -> None:
        """The task has ended or is gone."""
        row = self.occupancy.left(uid)
        if row is not None:
            self.namespaces.left(row, now)

    def observe(self, done: Completion) -> None:
        """A task has ended: a sample of the node, unless the node died while it ran."""
        row, now, workload = done.row, done.at, self._learned_as(done.workload)
        is_due, was_lowered = self._is_due(now), self.namespaces.is_lowered(row)
        self.occupancy.last_end[row] = now
        if not self.namespaces.ended(workload, row, now - done.seconds, now):
            self._update_row(row)
            return
        if is_due:
            self._fade(now)
        calls_for_a_fit = self._add_sample(workload, done)
        calls_for_a_fit |= was_lowered and self.namespaces.check_revived(row)
        if is_due or (calls_for_a_fit and now > self._refreshed_at):
            self._refresh(now)
        elif calls_for_a_fit:  # a step gets one fit for all its samples beyond the first
            self._is_stale = True
        elif was_lowered:
            self._update_row(row)
        elif not self._is_stale:
            self.namespaces.update_cell(workload, row)

    def _add_sample(self, workload: str, done: Completion) -> bool:
        """Whether all samples should be fitted again. Too rare workloads are not learned."""
        space = self.namespaces.admit(workload, done.at)
        if space is None:
            return False
        space.runs_work |= not done.is_probe
        rates, shape = space.rates, self._shape(done.requests)
        running = self.occupancy.tasks(namespace_of(workload)).on_row(done.row)
        self._epochs[done.row] += 1
        return rates.add(rates.workload(workload), done, shape, running)

    def _update_row(self, row: int) -> None:
        if not self._is_stale:  # the next fit covers it, and workloads may have come since the last one
            self.namespaces.update_row(row)

    def _learned_as(self, workload: str) -> str:
        """The workload, or that which stands for all of its namespace."""
        return workload if self.by == "workload" else in_namespace_of(workload, "")

    def _shape(self, requests: Amounts) -> Amounts:
        """The requests, if tasks with different ones are distinguished."""
        return requests if self.by == "workload" else ()

    # -- time ----------------------------------------------------------------------------------

    def _is_due(self, now: float) -> bool:
        interval = max(REFRESH_SECONDS, self.namespaces.cells / CELLS_A_SECOND)
        return now - self._refreshed_at >= interval

    def _fade(self, now: float) -> None:
        self._now = max(self._now, now)
        self.namespaces.fade(self._now)

    def _refresh(self, now: float) -> None:
        """Fit all rates to all samples and check all nodes for failures: O(workloads x nodes)."""
        self._fade(now)
        self.namespaces.refresh(now, error_aimed(self.load.ratio(now)))
        if self._names:
            self._check(now)
        self.namespaces.exchange()
        self._refreshed_at, self._is_stale = now, False

    def _check(self, now: float) -> None:
        """Check all nodes for each namespace, and measure their capacity."""
        rows, load = np.array(sorted(self._names), dtype=np.intp), self.load.ratio(now)
        seen = Seen(now, rows, self.occupancy.slots(now), self.occupancy.last_end, load)
        spaces = self.namespaces.items()
        for name, space in spaces:
            for row in self._failure_detector.check(space, self.occupancy.tasks(name), seen):
                self._epochs[row] += 1
        if self.load.measured_capacity.is_due(now):
            self.load.measure_capacity([space for _, space in spaces], rows, seen.slots[rows], now)

    # -- rates for placement ----------------------------------------------------------------------

    def speeds(self, workload: str) -> Speeds:
        """Effective rates of this workload, 0 for dead nodes; those of all workloads if it is unknown."""
        if self._is_stale:
            self._refresh(self._now)
        return self.namespaces.speeds(self._learned_as(workload))

    def known_speeds(self, workload: str) -> Speeds:
        """The same as of the last fit, also if one is due: a fit may also find nodes dead."""
        return self.namespaces.speeds(self._learned_as(workload))

    # -- reading and restoring ----------------------------------------------------

    def learned_cells(self, after: str = "") -> Iterator[LearnedCell]:
        """Every cell with samples, of dead nodes too."""
        return self._exports.learned_cells(self._names, after)

    def learned_nodes(self) -> Iterator[LearnedNode]:
        """Every node with samples, as a value that another process can recall."""
        return self._exports.learned_nodes(self._names, self._epochs, self._now)

    def learned_node(self, node: str) -> LearnedNode | None:
        """One node, without samples too; None if there is no such node."""
        row = self._rows.get(node)
        return None if row is None else self._exports.learned_node(row, node, self._epochs[row], self._now)

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
        self.namespaces.clear(row)
        for work in known.work:
            workload = self._learned_as(work.workload)
            space = self.namespaces.admit(workload, known.at, work.samples)
            if space is not None:
                rates = space.rates
                rates.recall(rates.workload(workload), row, work.rate, work.samples, known.at)
        self._epochs[row], self._is_stale, self._now = known.epoch, True, max(self._now, known.at)
