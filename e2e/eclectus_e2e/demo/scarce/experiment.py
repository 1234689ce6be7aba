"""The experiment on scarce nodes: runs of a stream with batches, with its own tables and picture."""

from collections.abc import Iterator
from pathlib import Path

from rich.table import Table

from eclectus_e2e.demo.scarce.plots import draw
from eclectus_e2e.demo.scarce.tables import tables
from eclectus_e2e.demo.stream.experiment import StreamRuns
from eclectus_e2e.demo.stream.plan import StreamPlan
from eclectus_e2e.demo.stream.report import Report, Run, make_report


class ScarceExperiment(StreamRuns[Report]):
    """Batches with hard constraints on few nodes, beside pods that may run anywhere."""

    report_file, picture_file = "scarce.json", "scarce.png"

    def report(self, plan: StreamPlan, observations: list[Run]) -> Report:
        """Times of every group."""
        return make_report(
            observations, plan.nodes, seed=plan.seed, main_load=plan.main_load, capacity=plan.capacity
        )

    def plot(self, plan: StreamPlan, observations: list[Run], report: Report, file: Path) -> None:
        """Waits of each group, and the pods that wait over time."""
        draw(report, observations, file)

    def tables(self, plan: StreamPlan, observations: list[Run], report: Report) -> Iterator[Table | str]:
        """Waits and response times of each group, and what must not happen."""
        yield from tables(report)
        yield from self.note()
