"""Learn node speeds from the completions of ordinary pods.

Q. Wu, Z. Liu, "Rosella", 2020: the performance learner. Every pod that runs to its end is a sample of its
node. docs/rosella.md tells the whole of it, with formulas. Departures from the paper:
- task sizes differ, so a rate is expected over actual time, the expected size being that of sibling
  tasks elsewhere (maths/ratio.py), not one over the mean time;
- rates are per node and workload; a pair never seen has node factor over size as its prior;
- the window L is capped (maths/window.py), or at pod scale it would take weeks to fill; samples fade;
- a change of speed is looked for and, once found, gives up the window (maths/cusum.py);
- unknown is not dead: a node without samples counts as a typical one, and a silent node is dead only if
  something runs there and does not end (watch.py).
Failed, evicted and deleted pods are censored: they teach nothing. Nor does a task that still runs: its
silence can only lower what is believed of its node until something ends there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from eclectus.core.known import KnownLoad, KnownNode, KnownWork, NodeState
from eclectus.core.seam import Completion, Learn, Learned, Speeds
from eclectus.core.settings import Setting
from eclectus.maths.probing import probe_rate
from eclectus.maths.ratio import Floats
from eclectus.maths.window import cut_margin, cut_off_rate, error_aimed, unlikelihood
from eclectus.policies.rosella.load import Load
from eclectus.policies.rosella.rates import Rates, Sensitivity
from eclectus.policies.rosella.watch import Watch

REFRESH_SECONDS = 1.0  # how often sizes and factors are fitted again, if there is anything new


@dataclass(frozen=True, slots=True)
class Probes:
    """What deserves to be probed now: so many a second, to uniform rows, of workloads by their share."""

    rate: float
    rows: NDArray[np.intp]
    workloads: tuple[str, ...]
    shares: Floats


@dataclass(eq=False)
class RosellaLearn(Learn):
    """Rates per node and workload from a window of completions."""

    window: Annotated[
        int,
        Setting(
            "newest samples kept of each node and workload at most (the cap of L)",
            why="gives a third in accuracy for work of moderate spread; changes of speed have a test of "
            "their own",
            unit="samples",
            least=4,
            most=4096,
        ),
    ] = 64
    half_life: Annotated[
        float,
        Setting(
            "age at which a sample counts half",
            why="speeds measured hours ago are hearsay; a node not used for long is tried again",
            unit="s",
            least=1,
            most=1e9,
        ),
    ] = 3600.0
    prior_samples: Annotated[
        float,
        Setting(
            "how many samples the expectation from siblings weighs",
            why="one lucky sample must not make a node the fastest of all",
            unit="samples",
            least=0.1,
            most=100,
        ),
    ] = 1.0
    alarm_slack: Annotated[
        float,
        Setting(
            "shift of a node's speed that is let pass, in spreads of the logarithm of its times",
            why="half of the shift to be found: four times the time is one spread of exponential sizes",
            unit="spreads",
            least=0,
            most=1.5,
        ),
    ] = 0.5
    alarm_threshold: Annotated[
        float,
        Setting(
            "sum of shifts beyond which a node's speed counts as changed and older samples are given up",
            why="a false alarm in about 1,800 samples of a cell, a fourfold change found in about 10; "
            "each 1 more makes false alarms 2.7 times rarer and a find 2 samples later",
            unit="spreads",
            least=1,
            most=1000,
        ),
    ] = 6.0
    capacity: Annotated[
        float | None,
        Setting(
            "what all nodes together can surely do (mu-bar)",
            why="unset: a low percentile, over an hour, of what they are believed to do",
            unit="tasks/s",
            least=1e-9,
        ),
    ] = None
    spare_share: Annotated[
        float,
        Setting(
            "share of the spare capacity given to probes, and at most lost with nodes too slow to use (c0)",
            why="the paper's",
            least=0.001,
            most=0.5,
        ),
    ] = 0.1
    certainty: Annotated[
        float,
        Setting(
            "x: a healthy node among n is wrongly judged with a chance of at most n^-x",
            why="2: below one in n even when all n are judged",
            least=0.5,
            most=10,
        ),
    ] = 2.0
    most_workloads: Annotated[
        int,
        Setting(
            "kinds of work learned at a time; the one longest unseen makes way",
            why="bounds memory: 64 kinds on 5,000 nodes are 8 MB of rates and a window each",
            unit="workloads",
            least=1,
            most=4096,
        ),
    ] = 64

    by: Annotated[
        Literal["workload", "node"],
        Setting(
            "what a rate is of: a node at a kind of work, or, as in the paper, a node at all work",
            why="one rate a node is wrong where kinds of work rank nodes differently",
        ),
    ] = "workload"

    def __post_init__(self) -> None:
        test = Sensitivity(self.alarm_slack, self.alarm_threshold)
        self.load, self.watch = Load(self.capacity), Watch()
        self.rates = Rates(self.prior_samples, self.half_life, self.window, self.most_workloads, test)
        self._shown: Floats = np.ones((1, 0))  # rates as believed: of all work, then of each workload
        self._speeds: dict[str, Speeds] = {}
        self._epoch, self._most = 0, 1.0
        self._names: dict[int, str] = {}
        self._rows: dict[str, int] = {}
        self._epochs: dict[int, int] = {}  # by row, of what is known of its node
        self._now = self._refreshed_at = self._dropped_at = float("-inf")

    # -- nodes ---------------------------------------------------------------------------------

    def seat(self, row: int, node: str, capacity: int) -> None:
        """A row begins as unknown."""
        self.watch.open_rows(capacity)
        self.rates.seat(row, capacity)
        self._names[row], self._rows[node], self._epochs[row] = node, row, 0
        if capacity > self._shown.shape[1]:
            self._show_all()

    def unseat(self, row: int) -> None:
        """What was known of the row goes with its node."""
        del self._rows[self._names.pop(row)], self._epochs[row]
        self.rates.unseat(row)
        self.watch.clear_row(row)
        self._show_row(row)

    # -- what happens --------------------------------------------------------------------------

    def arrived(self, workload: str, now: float) -> None:
        """One more task has come."""
        self.load.arrived(now)
        if self._is_due(now):
            self._refresh(now)

    def hear(self, scheduler: str, count: int, now: float) -> None:
        """So many have come to another scheduler."""
        self.load.hear(scheduler, count, now)

    def started(self, uid: str, row: int, workload: str, now: float) -> None:
        """From now on the node has this to finish."""
        self.watch.started(uid, row, self._told_apart(workload), now)

    def left(self, uid: str, now: float) -> None:
        """And now it has not."""
        self.watch.left(uid, now)

    def observe(self, done: Completion) -> None:
        """One more sample of the node, if its time tells of the node as it is."""
        row, now = done.row, done.at
        is_due, believed = self._is_due(now), self.watch.share.item(row)
        if not self.watch.ended(row, now - done.seconds, now):
            self._show_row(row)
            return
        if is_due:
            self._fade(now)
        workload = self.rates.workload(self._told_apart(done.workload))
        calls_for_a_fit = self.rates.add(workload, row, done.seconds, now)
        self._epochs[row] += 1
        is_back = self._return(row)
        if is_due or calls_for_a_fit or is_back:
            self._refresh(now)
        elif self.watch.share.item(row) != 1.0 or believed != 1.0:
            self._show_row(row)
        else:
            self._show_cell(workload, row)

    def _told_apart(self, workload: str) -> str:
        return workload if self.by == "workload" else ""

    def _return(self, row: int) -> bool:
        """Whether a dead node is alive again; then only what it has shown since counts."""
        since = self.watch.back_since(row)
        if since is None:
            return False
        for workload, _ in self.rates.cells(row):
            self.rates.give_up(workload, row, since)
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
        load = self.load.ratio(now)
        self.rates.refresh(len(self._names), error_aimed(load))
        if self._names:
            self._judge(now, load)
        self._show_all()
        self._refreshed_at = now

    def _judge(self, now: float, load: float) -> None:
        """Who has gone silent, who counts as dead, who is forgiven; and what all of them can do."""
        watch, matrix = self.watch, self.rates.matrix
        rows, nodes = np.array(sorted(self._names)), len(self._names)
        share = watch.look(now, matrix, self.rates.index, unlikelihood(nodes, self.certainty))
        speed, slots = matrix.factor[rows], watch.slots(now)[rows]
        mean = float(speed @ slots) / slots.sum() if slots.any() else float(speed.mean())
        limit = cut_off_rate(mean * nodes, load, nodes, self.spare_share)
        margin = cut_margin(matrix.samples[rows], nodes, self.certainty, error_aimed(load))
        is_silent = speed * share[rows] < limit
        is_slow = (speed * (1.0 + margin) < limit) & ~watch.has_died(rows)
        for row in watch.bury(rows[is_silent | is_slow], now) + self._forgive(now):
            self._epochs[row] += 1
        watch.believe(share, nodes)
        if self.load.floor.is_due(now) and (size := self.rates.mean_size()) is not None:
            self.load.floor.read(float(speed * watch.share[rows] @ slots) / size, now)

    def _forgive(self, now: float) -> list[int]:
        """Dead nodes on which nothing has run for long begin anew."""
        rows = self.watch.forgivable(now, self.half_life)
        for row in rows:
            self.watch.forgive(row)
            self.rates.unseat(row)
            self.rates.seat(row, len(self.watch.share))
        return rows

    # -- what is believed ----------------------------------------------------------------------

    def speeds(self, workload: str) -> Speeds:
        """Rates of this workload, 0 for dead nodes; for one never seen, what nodes are worth for all work."""
        found = self._speeds.get(workload)
        if found is None:
            rate = self._shown[self.rates.index.get(self._told_apart(workload), -1) + 1]
            found = self._speeds[workload] = Speeds(rate, self._most, self._epoch)
        return found

    def _show_all(self) -> None:
        matrix = self.rates.matrix
        self._shown = np.vstack([matrix.factor, matrix.rate]) * self.watch.share
        self._most = float(self._shown.max(initial=0.0)) or 1.0
        self._epoch += 1
        self._speeds.clear()

    def _show_row(self, row: int) -> None:
        matrix, share = self.rates.matrix, self.watch.share[row]
        self._shown[0, row] = matrix.factor[row] * share
        self._shown[1:, row] = matrix.rate[:, row] * share
        self._bound(float(self._shown[:, row].max()))

    def _show_cell(self, workload: int, row: int) -> None:
        matrix = self.rates.matrix
        factor, rate = matrix.factor.item(row), matrix.rate.item(workload, row)
        self._shown[0, row], self._shown[workload + 1, row] = factor, rate
        self._bound(max(factor, rate))

    def _bound(self, rate: float) -> None:
        """Keep `most` above all that is said of a row that has changed."""
        if rate > self._most:
            self._most = rate
            self._speeds.clear()

    def probes(self, now: float, least: float, most: float) -> Probes:
        """How many probes a second all nodes together deserve, between two bounds, and of what work."""
        rate = probe_rate(self.load.capacity, self.load.surge(now), self.spare_share, least, most)
        by_index = {index: workload for workload, index in self.rates.index.items()}
        workloads = tuple(by_index[index] for index in sorted(by_index))
        return Probes(rate, np.array(sorted(self._names)), workloads, self.rates.recent[sorted(by_index)])

    # -- for people, and for those who come after ----------------------------------------------------

    def learned(self) -> Iterator[Learned]:
        """Every cell with samples; of a dead node as history."""
        rates = self.rates
        by_index = {index: workload for workload, index in rates.index.items()}
        for row, node in sorted(self._names.items()):
            state = self._state(row)
            for workload, samples in rates.cells(row):
                yield Learned(
                    node=node,
                    workload=by_index[workload],
                    rate=rates.matrix.rate.item(workload, row),
                    samples=len(samples),
                    confidence=rates.confidence(workload, row),
                    state=state,
                    newest_at=samples.newest_at,
                )

    def known(self) -> Iterator[KnownNode]:
        """Every node with samples, as a value that another process can recall."""
        rates, matrix = self.rates, self.rates.matrix
        by_index = {index: workload for workload, index in rates.index.items()}
        for row, node in sorted(self._names.items()):
            work = tuple(
                KnownWork(
                    workload=by_index[workload],
                    rate=matrix.own_rate(workload, row),
                    samples=max(1, round(matrix.count.item(workload, row))),
                    confidence=rates.confidence(workload, row),
                )
                for workload, _ in rates.cells(row)
            )
            if work:
                speed, sure = matrix.factor.item(row), rates.node_confidence(row)
                yield KnownNode(node, self._epochs[row], self._now, self._state(row), speed, sure, work)

    def known_load(self, now: float) -> KnownLoad:
        """Arrivals and capacity of all nodes together, and the recent shares of kinds of work."""
        recent = {workload: float(self.rates.recent[index]) for workload, index in self.rates.index.items()}
        total = sum(recent.values())
        shares = tuple((workload, count / total) for workload, count in recent.items()) if total > 0 else ()
        return KnownLoad(self.load.surge(now), self.load.capacity, shares)

    def recall(self, known: KnownNode) -> None:
        """Take over what is known of a node, unless more is known here.

        Its state is not taken over: that rests on what runs there now, and will be found again.
        """
        row = self._rows.get(known.node)
        if row is not None and known.epoch > self._epochs[row]:
            self._fade(max(self._now, known.at))
            self.rates.unseat(row)
            self.rates.seat(row, len(self.watch.share))
            for work in known.work:
                self.rates.recall(self.rates.workload(work.workload), row, work.rate, work.samples, known.at)
            self._epochs[row] = known.epoch
            self._refresh(self._now)

    def _state(self, row: int) -> NodeState:
        if self.watch.is_dead(row):
            return "dead"
        if self.watch.share.item(row) < 1.0:
            return "suspect"
        return "live" if any(self.rates.cells(row)) else "unknown"
