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
`mode: paper` undoes caps, fading, alarms and matrix. What stays then is what corrects the paper's slips
(docs/rosella.md), that unknown is not dead, and a weak prior, without which one sample would be all.
Failed, evicted and deleted pods are censored: they teach nothing. Nor does a task that still runs: its
silence can only lower what is believed of its node until something ends there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from eclectus.core.known import Digest, KnownLoad, KnownNode
from eclectus.core.seam import Completion, Learn, Learned, Speeds
from eclectus.core.settings import Setting, settle
from eclectus.maths.window import error_aimed
from eclectus.policies.rosella.accounts import Accounts
from eclectus.policies.rosella.beliefs import Beliefs
from eclectus.policies.rosella.judging import Judging
from eclectus.policies.rosella.load import Load
from eclectus.policies.rosella.rates import Rates, Sensitivity
from eclectus.policies.rosella.watch import Watch

NO_CAP = 1_000_000  # samples: no window is ever so long
PAPER = {
    "paper": {
        "by": "node",
        "window": NO_CAP,
        "half_life": 1e9,
        "prior_samples": 0.1,
        "alarm_threshold": 1000.0,
        "spare_share": 0.1,
    }
}
REFRESH_SECONDS = 1.0  # how often sizes and factors are fitted again, if there is anything new


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
            most=NO_CAP,
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

    mode: Annotated[
        Literal["eclectus", "paper"],
        Setting(
            "paper: one rate a node, windows of the paper's length, and nothing fades or is looked for",
            why="unset, that of place; the paper's learner is late wherever speeds change: docs/ablations.md",
            fixes=PAPER,
        ),
    ] = "eclectus"

    def __post_init__(self) -> None:
        settle(self)
        test = Sensitivity(self.alarm_slack, self.alarm_threshold)
        self.load, self.watch = Load(self.capacity), Watch()
        self.rates = Rates(self.prior_samples, self.half_life, self.window, self.most_workloads, test)
        self._beliefs = Beliefs(self.rates.matrix, self.watch)
        self._accounts = Accounts(self.rates, self.watch, self.load)
        self._judging = Judging(
            self.rates,
            self.watch,
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

    def seat(self, row: int, node: str, capacity: int) -> None:
        """A row begins as unknown."""
        self.watch.open_rows(capacity)
        self.rates.seat(row, capacity)
        self._names[row], self._rows[node], self._epochs[row] = node, row, 0
        if self._beliefs.rows < capacity:
            self._beliefs.renew()

    def unseat(self, row: int) -> None:
        """What was known of the row goes with its node."""
        del self._rows[self._names.pop(row)], self._epochs[row]
        self.rates.unseat(row)
        self.watch.clear_row(row)
        self._beliefs.renew_row(row)

    # -- what happens --------------------------------------------------------------------------

    def arrived(self, workload: str, now: float) -> None:
        """One more task has come."""
        self.load.arrived(now)
        if self._is_due(now):
            self._refresh(now)

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
            self._beliefs.renew_row(row)
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
            self._beliefs.renew_row(row)
        else:
            self._beliefs.renew_cell(workload, row)

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
        self.rates.refresh(len(self._names), error_aimed(self.load.ratio(now)))
        for row in self._judging.judge(now, self._names):
            self._epochs[row] += 1
        self._beliefs.renew()
        self._refreshed_at, self._is_stale = now, False

    # -- what is believed ----------------------------------------------------------------------

    def speeds(self, workload: str) -> Speeds:
        """Rates of this workload, 0 for dead nodes; for one never seen, what nodes are worth for all work."""
        if self._is_stale:
            self._refresh(self._now)
        workload = self._told_apart(workload)
        return self._beliefs.speeds(workload, self.rates.index.get(workload))

    # -- for people, and for those who come after ----------------------------------------------------

    def learned(self) -> Iterator[Learned]:
        """Every cell with samples; of a dead node as history."""
        return self._accounts.learned(self._names)

    def known(self) -> Iterator[KnownNode]:
        """Every node with samples, as a value that another process can recall."""
        return self._accounts.known(self._names, self._epochs, self._now)

    def known_load(self, now: float) -> KnownLoad:
        """Arrivals and capacity of all nodes together, and the recent shares of kinds of work."""
        return self._accounts.known_load(now)

    def digest(self, groups: NDArray[np.intp], now: float) -> Digest:
        """What is known in all, by group of nodes."""
        return self._accounts.digest(self._names, groups, now)

    def recall(self, known: KnownNode) -> None:
        """Take over what is known of a node, unless more is known here.

        Its state is not taken over: that rests on what runs there now, and will be found again.
        """
        row = self._rows.get(known.node)
        if row is None or known.epoch <= self._epochs[row]:
            return
        self._fade(max(self._now, known.at))
        self.rates.clear(row)
        for work in known.work:
            workload = self.rates.workload(self._told_apart(work.workload))
            self.rates.recall(workload, row, work.rate, work.samples, known.at)
        self._epochs[row], self._is_stale = known.epoch, True
        self._beliefs.renew()
