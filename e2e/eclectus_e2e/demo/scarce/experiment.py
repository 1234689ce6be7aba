"""The experiment on scarce nodes: runs of a stream with batches, with its own tables and picture."""

from collections.abc import Iterator
from pathlib import Path

from rich.table import Table

from eclectus_e2e.demo.scarce.plots import draw
from eclectus_e2e.demo.scarce.tables import tables
from eclectus_e2e.demo.stream.experiment import StreamExperiment
from eclectus_e2e.demo.stream.plan import StreamPlan
from eclectus_e2e.demo.stream.report import Report, Run


class ScarceExperiment(StreamExperiment):
    """Batches with hard constraints on few nodes, beside pods that may run anywhere."""

    report_file, picture_file = "scarce.json", "scarce.png"

    def plot(self, plan: StreamPlan, observations: list[Run], report: Report, file: Path) -> None:
        """Waits of each group, and the pods that wait over time."""
        draw(report, observations, file)

    def tables(self, plan: StreamPlan, observations: list[Run], report: Report) -> Iterator[Table | str]:
        """Waits and response times of each group, and what must not happen."""
        yield from tables(report)
        yield from self.note()
