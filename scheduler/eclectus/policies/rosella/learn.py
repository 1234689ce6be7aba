"""Learn node speeds from the completions of ordinary pods.

Q. Wu, Z. Liu, "Rosella", 2020: the performance learner, in its first form. Every pod that runs to its
end is a sample of its node; nothing is probed. Departures from the paper:
- task sizes differ, so a rate is expected over actual time, the expected size being that of sibling
  tasks elsewhere (maths/ratio.py), not one over the mean time;
- rates are per node and workload; a pair never seen has node factor over size as its prior;
- the window L is a setting, not c1 ln(n) / eps^2, which at pod scale would take weeks to fill;
  an accuracy of a third is enough at any load, which 64 samples give;
- unknown is not dead: a node without samples counts as a typical one.
Failed, evicted and deleted pods are censored: they teach nothing.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated

from eclectus.core.seam import Completion, Learn, Learned, Speeds
from eclectus.core.settings import Setting
from eclectus.maths.ratio import RatioMatrix

REFRESH_SECONDS = 1.0  # how often sizes and factors are fitted again at least, if there is anything new


@dataclass(eq=False)
class RosellaLearn(Learn):
    """Rates per node and workload from a window of completions."""

    window: Annotated[
        int,
        Setting(
            "newest samples kept of each node and workload (L)",
            why="gives a third in accuracy for work of moderate spread, and follows a change of speed",
            unit="samples",
            least=4,
            most=4096,
        ),
    ] = 64
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
    _matrix: RatioMatrix = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._matrix = RatioMatrix(self.prior_samples)
        self._index: dict[str, int] = {}  # workload -> matrix index, longest unseen first
        self._nodes: dict[int, str] = {}
        self._windows: dict[tuple[int, int], deque[float]] = {}
        self._seen: Counter[int] = Counter()  # samples ever taken, by matrix index
        self._refreshed_at = float("-inf")
        self._epoch = 0
        self._most = 1.0

    def seat(self, row: int, node: str, capacity: int) -> None:
        """A row begins as unknown."""
        self._matrix.open_rows(capacity)
        self._nodes[row] = node

    def unseat(self, row: int) -> None:
        """What was known of the row goes with its node."""
        del self._nodes[row]
        self._matrix.clear_row(row)
        for cell in [cell for cell in self._windows if cell[1] == row]:
            del self._windows[cell]
        self._bound(row)

    def observe(self, done: Completion) -> None:
        """One more sample of a node; the oldest beyond the window goes."""
        workload = self._workload(done.workload)
        window = self._windows.setdefault((workload, done.row), deque())
        window.append(done.seconds)
        if self._matrix.add(workload, done.row, 1, done.seconds):
            self._most = max(self._most, float(self._matrix.rate[workload].max()))
            self._epoch += 1
        if len(window) > self.window:
            self._matrix.add(workload, done.row, -1, -window.popleft())
        self._bound(done.row)
        self._seen[workload] += 1
        # A workload's first samples are its smallest tasks, since those end first: its size must be
        # fitted again each time its samples have doubled, however little time has passed.
        has_doubled = self._seen[workload].bit_count() == 1
        if has_doubled or done.at - self._refreshed_at >= REFRESH_SECONDS:
            self._refresh(done.at)

    def speeds(self, workload: str) -> Speeds:
        """Rates of this workload; for one never seen, what the nodes are worth for all work."""
        index = self._index.get(workload)
        rate = self._matrix.factor if index is None else self._matrix.rate[index]
        return Speeds(rate, self._most, self._epoch)

    def learned(self) -> Iterator[Learned]:
        """Every cell with samples."""
        names = {index: workload for workload, index in self._index.items()}
        for (workload, row), window in sorted(self._windows.items()):
            rate = float(self._matrix.rate[workload, row])
            yield Learned(self._nodes[row], names[workload], rate, len(window))

    def _bound(self, row: int) -> None:
        """Keep `most` above all that is said of a row that has changed."""
        matrix = self._matrix
        self._most = max(self._most, float(matrix.factor[row]), float(matrix.rate[:, row].max(initial=0.0)))

    def _refresh(self, now: float) -> None:
        self._matrix.refresh()
        self._most = max(float(self._matrix.rate.max()), float(self._matrix.factor.max()))
        self._refreshed_at = now
        self._epoch += 1

    def _workload(self, name: str) -> int:
        index = self._index.pop(name, None)
        if index is None:
            index = self._matrix.open_workload() if len(self._index) < self.most_workloads else self._evict()
            self._epoch += 1
        self._index[name] = index  # now the newest seen
        return index

    def _evict(self) -> int:
        index = self._index.pop(next(iter(self._index)))
        self._matrix.clear_workload(index)
        del self._seen[index]
        for cell in [cell for cell in self._windows if cell[0] == index]:
            del self._windows[cell]
        return index
