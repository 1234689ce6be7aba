"""Rosella's learner: node speeds from the completions of ordinary pods.

Q. Wu, Z. Liu, "Rosella", 2020: the performance learner. Each pod that runs to its end is a sample of its
node. docs/rosella.md describes the learner with its formulas. Departures from the paper:
- task sizes differ, so a rate is expected over actual time, where the expected size is that of tasks of the
  same workload on other nodes (maths/service_rates.py), not one over the mean time;
- rates belong to a node and a workload; a pair without samples has the node's factor over the workload's
  size as its prior;
- the window L is capped (maths/load.py), because pods are so few that a full window would take weeks;
  samples lose weight with age;
- a test detects a change of speed and drops the samples from before it (maths/service_rates.py);
- a node with samples counts as slower for a workload that it has never run (namespaces.py);
- a slot is held for longer than a task runs, so rates that placement uses are lower by the turnaround
  (maths/turnaround.py); not with `mode: paper`;
- each namespace learns from its own tasks, and from others no more than a bounded prior (namespaces.py);
- unknown is not dead: a node without samples counts as typical, and a silent node is dead only if tasks run
  there and do not end (failure_detector.py);
- formulas of arrivals, window, cut-off and probes are corrected, where the paper's have a wrong sign, unit or
  distribution (maths/load.py). S, the number of arrivals by which lambda is estimated, is fixed: 1,000, and
  100 for what must follow changes. mu_bar is measured, unless `capacity` states it. The factor 1 - eps of
  rates is left out: it changes no draw;
- benchmarks run only where an admin has asked for them by NodeProbes, with a command that these name. The
  paper's are copies of recent requests, and are sent always.

`mode: paper` disables the cap, ageing, alarms and the matrix. The corrections of the paper's formulas stay
(docs/rosella.md), as does that unknown is not dead, and a weak prior, without which a single sample would
determine a rate.

Failed, evicted and deleted pods are no samples. Nor is a task that still runs: the time without an end only
lowers the effective rates of its node until a task ends there. Of tasks that may have copies more is learned,
by censored samples: one that a copy has overtaken, or that was deleted, would have run on for as long as is
expected by what is known (maths/service_rates.py), and so does one that runs on after all is silent on its
node for longer than usual (rates.py), as long as that is so. They are no signs of life, and no samples of a
node that counts as dead.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from eclectus.framework import Amounts, Completion, Learn, LearnedCell, Speeds, Traits, setting
from eclectus.maths.load import ArrivalRate, LowPercentile, error_aimed, load_ratio
from eclectus.maths.numbers import sum_of_products
from eclectus.maths.service_rates import NEGLIGIBLE, confidences
from eclectus.maths.turnaround import with_turnaround
from eclectus.model.learned import LearnedGroup, LearnedLoad, LearnedNode, LearnedSummary, LearnedWork
from eclectus.model.objects import in_namespace_of, namespace_of
from eclectus.model.settings import apply_implied
from eclectus.policies.rosella.failure_detector import FailureDetector, Seen
from eclectus.policies.rosella.namespaces import KnowledgeByNamespace
from eclectus.policies.rosella.rates import Occupancy, Rates, Sensitivity, Tally

EXTREMES = 20  # slowest nodes, and as many fastest ones, that the summary names
NO_CAP = 1_000_000  # samples: longer than any window
PAPER = {
    "paper": {
        "by": "node",
        "window": NO_CAP,
        "half_life": 1e9,
        "prior_samples": 0.1,
        "untried_share": 1.0,
        "shrink": False,
        "alarm_threshold": 1000.0,
        "spare_share": 0.1,
    }
}


class Load:
    """Estimates of lambda, mu_bar and alpha. All rates in tasks a second."""

    def __init__(self, capacity: float | None, rate_window: int) -> None:
        self._capacity = capacity
        self._arrivals = ArrivalRate(fast=max(rate_window // 10, 2), slow=rate_window)
        self.measured_capacity = LowPercentile()  # by effective rates
        self.count = 0  # tasks that have arrived, for any scheduler

    def arrived(self, now: float) -> None:
        """A task has arrived."""
        self.count += 1
        self._arrivals.add(now)

    def measure_capacity(
        self, namespaces: KnowledgeByNamespace, rows: NDArray[np.intp], slots: NDArray[np.int64], now: float
    ) -> None:
        """Add a reading: the sum of effective speeds times slots, over the mean size of recent tasks.

        Speeds and sizes of each namespace count in proportion to its recent tasks, and speeds as less by its
        turnaround. Nothing before the first.
        """
        known = {
            name: (space, recent)
            for name, space in namespaces.items()
            if (recent := float(space.rates.recent.sum())) > 0
        }
        if not known:
            return
        total, speed, size = sum(recent for _, recent in known.values()), 0.0, 0.0
        for name, (space, recent) in known.items():
            own_size, turnaround = space.rates.mean_size(), namespaces.turnarounds.of(name, "")
            effective = space.rates.matrix.factor[rows] * space.shares()[rows]
            effective = with_turnaround(effective, turnaround / own_size)
            speed += recent / total * float(sum_of_products(effective, slots))
            size += recent / total * own_size
        self.measured_capacity.add(speed / size, now)

    def arrivals(self, now: float) -> float:
        """lambda: the arrival rate of tasks of all schedulers."""
        return self._arrivals.slow(now)

    def arrivals_upper(self, now: float) -> float:
        """An upper estimate of the arrival rate: it rises fast and falls slowly. For the spare capacity."""
        return max(self._arrivals.fast(now), self._arrivals.slow(now))

    @property
    def capacity(self) -> float:
        """mu_bar: the setting, or else the measured lower bound."""
        return self.measured_capacity.value if self._capacity is None else self._capacity

    def ratio(self, now: float) -> float:
        """The load ratio alpha, clamped."""
        return load_ratio(self.arrivals(now), self.capacity)


REFRESH_SECONDS = 1.0  # least time between two fits of sizes and factors
CELLS_A_SECOND = 200_000  # rows times namespaces; with more, fits are rarer: each costs 0.14 us a cell


@dataclass(eq=False)
class RosellaLearn(Learn):
    """Rates by node and workload from the completions of ordinary pods."""

    traits = Traits(needs=frozenset({"task arrivals", "start times", "task ends"}))

    window: int = setting(
        64,
        "maximum number of samples kept for each node and workload: the newest ones (the cap of L)",
        why="gives an error below a third for tasks of moderate spread; another test detects changes of "
        "speed",
        unit="samples",
        least=4,
        most=NO_CAP,
    )
    half_life: float = setting(
        3600.0,
        "age at which a sample has half its weight",
        why="speeds measured hours ago may be wrong; a node that was not used for long is tried again",
        unit="s",
        least=1,
        most=1e9,
    )
    prior_samples: float = setting(
        1.0,
        "weight of the prior, the rate expected from other nodes and workloads",
        why="a single short task must not make a node the fastest of all",
        unit="samples",
        least=0.1,
        most=100,
    )
    shrink: bool = setting(
        True,
        "believe a node's speed only as far as nodes differ by more than their samples explain",
        why="where all nodes are equal, pods would wait for those that were fast by chance",
    )
    untried_share: float = setting(
        0.5,
        "effective rate of a node for a workload that it has never run, as a share of the expected rate",
        why="where workloads rank nodes differently, every node would otherwise be tried for each, and a "
        "trial may run long; where they do not, a half costs little (docs/results/rosella-rules.md)",
        least=0.05,
        most=1,
    )
    alarm_slack: float = setting(
        0.5,
        "change of a node's speed that raises no alarm, in spreads of the logarithm of its task times",
        why="half of the change to be detected: a factor of 4 is one spread of exponential sizes",
        unit="spreads",
        least=0,
        most=1.5,
    )
    alarm_threshold: float = setting(
        6.0,
        "sum of score excesses above which a node's speed counts as changed; older samples are dropped",
        why="one false alarm in about 1,800 samples of a cell, and a fourfold change is detected after "
        "about 10; each 1 more makes false alarms 2.7 times rarer and detection 2 samples later",
        unit="spreads",
        least=1,
        most=1000,
    )
    capacity: float | None = setting(
        None,
        "guaranteed capacity of all nodes together (mu-bar)",
        why="unset: a low percentile, over an hour, of the sum of their effective rates",
        unit="tasks/s",
        least=1e-9,
    )
    rate_window: int = setting(
        1000,
        "moments of arrival over which the arrival rate is averaged (S), and over a tenth of them where a "
        "rise must be seen at once",
        why="its error is one over the root of it, 3 %, small beside the spare capacity up to a load of 0.9; "
        "at 0.95 that needs 4,000, which follow a change of load four times later",
        unit="arrivals",
        least=10,
        most=1_000_000,
    )
    spare_share: float = setting(
        0.1,
        "share of the spare capacity for probes, and the most that is lost by not using slow nodes (c0)",
        why="as in the paper",
        least=0.001,
        most=0.5,
    )
    certainty: float = setting(
        2.0,
        "x: a healthy node among n counts as dead with probability at most n^-x",
        why="with 2, the probability that any of the n does is below 1/n",
        least=0.5,
        most=10,
    )
    most_workloads: int = setting(
        64,
        "maximum number of workloads learned at a time, in fair shares of the namespaces; in a namespace "
        "those with the most samples",
        why="limits memory: 64 workloads on 5,000 nodes take 8 MB of rates, and a window for each pair",
        unit="workloads",
        least=1,
        most=4096,
    )
    by: Literal["workload", "node"] = setting(
        "workload",
        "whether a rate belongs to a node and a workload, or, as in the paper, to a node",
        why="one rate for each node is wrong where workloads rank nodes differently",
    )
    mode: Literal["eclectus", "paper"] = setting(
        "eclectus",
        "paper: one rate for each node, windows of the paper's length, no ageing of samples, no test for "
        "changes of speed",
        why="unset: that of place; the paper's is slow where speeds change: docs/results/ablations.md",
        implies=PAPER,
    )

    def __post_init__(self) -> None:
        apply_implied(self)
        self.load, self.occupancy, self.tally = Load(self.capacity, self.rate_window), Occupancy(), Tally()
        test = Sensitivity(self.alarm_slack, self.alarm_threshold)
        new_rates = partial(Rates, self.prior_samples, self.half_life, self.window, test, self.tally)
        self.namespaces = KnowledgeByNamespace(
            new_rates, self.untried_share, self.shrink, self.most_workloads
        )
        self._failure_detector = FailureDetector(self.certainty, self.spare_share, self.half_life)
        self._names: dict[int, str] = {}  # by row
        self._rows: dict[str, int] = {}
        self._epochs: dict[int, int] = {}  # by row, of the knowledge of its node
        self._now = self._refreshed_at = float("-inf")
        self._is_stale = False  # whether there is reason for a fit before rates are read

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
        is_due, was_lowered = self._is_due(now), row in self.namespaces.lowered
        self.occupancy.last_end[row] = now
        if done.turnaround is not None and self.mode != "paper":
            self.namespaces.turnarounds.observe(namespace_of(workload), done.workload, done.turnaround)
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

    def overtaken(self, run: Completion) -> None:
        """A copy of the task has ended first: a sample of its node, of which the end is not known."""
        row, workload = run.row, self._learned_as(run.workload)
        is_known = self.namespaces.rates_of(workload) is not None  # else nothing is expected of its tasks
        if self.mode == "paper" or not is_known or self.namespaces.is_dead_for(workload, row):
            return
        if self._is_due(run.at):
            self._refresh(run.at)
        if self._add_sample(workload, run, is_censored=True):
            self._is_stale = True
        else:
            self._update(workload, row)

    def _update(self, workload: str, row: int) -> None:
        """One cell has changed."""
        if row in self.namespaces.lowered:
            self._update_row(row)
        elif not self._is_stale:
            self.namespaces.update_cell(workload, row)

    def runs_on(self, run: Completion) -> bool:
        """A task that is late counts as a sample while it runs, so that its node is known before it ends."""
        workload = self._learned_as(run.workload)
        found = self.namespaces.rates_of(workload)
        if self.mode == "paper" or found is None or self.namespaces.is_dead_for(workload, run.row):
            return False
        has_counted = found.drop_late(run.uid) is not None
        silent = min(run.seconds, run.at - self.occupancy.last_end.item(run.row))
        counts = found.add_late(found.index[workload], run, silent)
        if counts and self._is_due(run.at):
            self._refresh(run.at)
        elif counts or has_counted:
            self._update(workload, run.row)
        return counts

    def runs_no_more(self, uid: str, workload: str) -> None:
        """It counts no more as one that runs."""
        rates = self.namespaces.rates_of(self._learned_as(workload))
        row = None if rates is None else rates.drop_late(uid)
        if row is not None:
            self._update_row(row)

    def _add_sample(self, workload: str, done: Completion, *, is_censored: bool = False) -> bool:
        """Whether all samples should be fitted again. Too rare workloads are not learned."""
        space = self.namespaces.admit(workload, done.at)
        if space is None:
            return False
        space.runs_work |= not done.is_probe
        rates, shape = space.rates, self._shape(done.requests)
        running = self.occupancy.tasks(namespace_of(workload)).on_row(done.row)
        self._epochs[done.row] += 1
        if is_censored:
            return rates.add_overtaken(rates.workload(workload), done, running)
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

    def _is_due(self, now: float) -> bool:
        return now - self._refreshed_at >= max(REFRESH_SECONDS, self.namespaces.cells / CELLS_A_SECOND)

    def _fade(self, now: float) -> None:
        self._now = max(self._now, now)
        self.namespaces.fade(self._now)

    def _refresh(self, now: float) -> None:
        """Fit all rates to all samples and check all nodes for failures: O(workloads x nodes)."""
        self._fade(now)
        self.namespaces.refresh(self.occupancy, now, error_aimed(self.load.ratio(now)))
        if self._names:
            self._check(now)
        self.namespaces.exchange()
        self._refreshed_at, self._is_stale = now, False

    def _check(self, now: float) -> None:
        """Check all nodes for each namespace, and measure their capacity."""
        rows, load = np.array(sorted(self._names), dtype=np.intp), self.load.ratio(now)
        seen = Seen(now, rows, self.occupancy.slots(now), self.occupancy.last_end, load)
        for name, space in self.namespaces.items():
            for row in self._failure_detector.check(space, self.occupancy.tasks(name), seen):
                self._epochs[row] += 1
        if self.load.measured_capacity.is_due(now):
            self.load.measure_capacity(self.namespaces, rows, seen.slots[rows], now)

    def speeds(self, workload: str) -> Speeds:
        """Effective rates of this workload, 0 for dead nodes; those of all workloads if it is unknown."""
        if self._is_stale:
            self._refresh(self._now)
        return self.namespaces.speeds(self._learned_as(workload))

    def turnaround(self, workload: str) -> float:
        """As learned, of the workload or its namespace."""
        return self.namespaces.turnarounds.of(namespace_of(workload), workload)

    def known_speeds(self, workload: str) -> Speeds:
        """The same as of the last fit, also if one is due: a fit may also find nodes dead."""
        return self.namespaces.speeds(self._learned_as(workload))

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

    # What has been learned, as values: for the CLI, metrics and NodeProfiles.

    def learned_cells(self, after: str = "") -> Iterator[LearnedCell]:
        """Every cell with samples, of dead nodes too. Removed nodes are left out, as by `learned_nodes`."""
        for node, row in sorted((node, row) for row, node in self._names.items() if node > after):
            if self._names.get(row) == node:
                yield from list(self._cells(row, node))

    def _cells(self, row: int, node: str) -> Iterator[LearnedCell]:
        state = self.namespaces.state(row)
        for rates in self._rates():
            names = _names(rates)
            for workload, samples in rates.scalars(row):
                yield LearnedCell(
                    node=node,
                    workload=names[workload],
                    rate=rates.matrix.rate.item(workload, row),
                    samples=len(samples),
                    confidence=rates.confidence(workload, row),
                    state=state,
                    newest_at=samples.newest_at,
                )

    def learned_nodes(self) -> Iterator[LearnedNode]:
        """Every node with samples, for another process to recall; those removed meanwhile are left out."""
        now = self._now
        for row, node in sorted(self._names.items()):
            if self._names.get(row) == node and (found := self._learned(row, node, now)).work:
                yield found

    def learned_node(self, node: str) -> LearnedNode | None:
        """One node; None if there is no such node. Without samples it counts as typical, but may be dead."""
        row = self._rows.get(node)
        return None if row is None else self._learned(row, node, self._now)

    def _learned(self, row: int, node: str, now: float) -> LearnedNode:
        work, state, speed, sure = tuple(self._work(row)), self.namespaces.state(row), 1.0, 0.0
        if work:
            rates = self.namespaces.median_knowledge(row).rates
            speed, sure = rates.matrix.factor.item(row), rates.node_confidence(row)
        return LearnedNode(node, self._epochs[row], now, state, speed, sure, work)

    def learned_load(self, now: float) -> LearnedLoad:
        """Arrival rate (upper estimate), capacity of all nodes together, and recent shares of workloads."""
        recent = {
            workload: rates.recent.item(index)
            for rates in self._rates()
            for workload, index in rates.index.items()
        }
        total = sum(recent.values())
        shares = tuple((workload, count / total) for workload, count in recent.items()) if total > 0 else ()
        return LearnedLoad(self.load.arrivals_upper(now), self.load.capacity, shares)

    def summary(self, groups: NDArray[np.intp], now: float) -> LearnedSummary:
        """Totals by group of nodes. `groups`: by row, -1 for none."""
        states = Counter((groups.item(row), self.namespaces.state(row)) for row in self._names)
        return LearnedSummary(
            arrivals=self.load.arrivals(now),
            capacity=self.load.capacity,
            arrived=self.load.count,
            samples=self.tally.samples,
            alarms=self.tally.alarms,
            states=tuple((group, state, count) for (group, state), count in sorted(states.items())),
            work=tuple(each for rates in self._rates() for each in _by_group(rates, groups)),
            extremes=tuple(self._extremes(len(groups))),
        )

    def _extremes(self, rows: int) -> Iterator[tuple[str, float]]:
        """The slowest nodes and the fastest ones, each with its speed as in LearnedGroup, over all work."""
        samples, speed = np.zeros(rows), np.zeros(rows)
        for rates in self._rates():
            matrix = rates.matrix
            for index in rates.index.values():
                seen = np.flatnonzero(matrix.count[index] > NEGLIGIBLE)
                if len(seen):
                    count, rate = matrix.count[index, seen], matrix.rate[index, seen]
                    samples[seen] += count
                    speed[seen] += count * rate / rate.mean()
        known = np.fromiter(self._names, dtype=np.intp)
        known = known[samples[known] > 0.0]
        known = known[np.argsort(speed[known] / samples[known], kind="stable")]
        ends = known if len(known) <= 2 * EXTREMES else np.r_[known[:EXTREMES], known[-EXTREMES:]]
        for row in ends.tolist():
            yield self._names[row], speed.item(row) / samples.item(row)

    def _work(self, row: int) -> Iterator[LearnedWork]:
        for rates in self._rates():
            names, matrix = _names(rates), rates.matrix
            for workload, _ in rates.scalars(row):
                yield LearnedWork(
                    workload=names[workload],
                    # From its samples alone, without the prior.
                    rate=matrix.count.item(workload, row) / matrix.seconds.item(workload, row),
                    samples=max(1, round(matrix.count.item(workload, row))),
                    confidence=rates.confidence(workload, row),
                )

    def _rates(self) -> list[Rates]:
        """Of all namespaces, in the order of their names."""
        return [space.rates for _, space in self.namespaces.items()]


def _names(rates: Rates) -> dict[int, str]:
    return {index: workload for workload, index in rates.index.items()}


def _by_group(rates: Rates, groups: NDArray[np.intp]) -> Iterator[LearnedGroup]:
    matrix = rates.matrix
    for workload, index in rates.index.items():
        seen = np.flatnonzero((matrix.count[index] > NEGLIGIBLE) & (groups >= 0))
        if not len(seen):
            continue
        rate, count, of = matrix.rate[index, seen], matrix.count[index, seen], groups[seen]
        sure = confidences(rates.variation(index), count)
        nodes = np.bincount(of)
        samples, speed, confidence = (np.bincount(of, each) for each in (count, rate / rate.mean(), sure))
        for group in np.flatnonzero(nodes).tolist():
            each = nodes.item(group)
            means = speed.item(group) / each, confidence.item(group) / each
            yield LearnedGroup(group, workload, each, samples.item(group), *means)
