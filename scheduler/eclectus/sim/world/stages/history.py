"""How long the stages of recurring jobs took: the source of estimates where none is declared."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from statistics import median

from eclectus.sim.base.work import Dag


class History:
    """The run times of the last runs of each stage, by the names of job and stage."""

    def __init__(self, runs: int) -> None:
        self._runs: dict[tuple[str, str], deque[float]] = defaultdict(lambda: deque(maxlen=runs))

    def add(self, job: str, stage: str, seconds: Sequence[float]) -> None:
        """A stage has ended, whose tasks ran for so long; one outlier among them counts little."""
        self._runs[job, stage].append(median(seconds))

    def estimates(self, dag: Dag) -> tuple[float | None, ...]:
        """For each stage the median of its last runs, seconds; None before its first run has ended."""
        known = [self._runs.get((dag.name, stage.name)) for stage in dag.stages]
        return tuple(median(runs) if runs else None for runs in known)
