"""The short demo as an experiment: runs of a stream, with its own report, picture and tables."""

from collections.abc import Iterator
from pathlib import Path

from rich.table import Table

from eclectus_e2e.demo.short.plots import draw
from eclectus_e2e.demo.short.report import ShortReport, make_short_report
from eclectus_e2e.demo.short.tables import tables
from eclectus_e2e.demo.stream.experiment import StreamRuns
from eclectus_e2e.demo.stream.plan import StreamPlan
from eclectus_e2e.demo.stream.report import Run


class ShortExperiment(StreamRuns[ShortReport]):
    """Eclectus and kube-scheduler at one load; half-way the speeds change."""

    report_file, picture_file = "report.json", "demo.png"

    def report(self, plan: StreamPlan, observations: list[Run]) -> ShortReport:
        """Every figure of the table, and the sentence."""
        return make_short_report(plan, observations)

    def plot(self, plan: StreamPlan, observations: list[Run], report: ShortReport, file: Path) -> None:
        """Response times and pods waiting over time, learned speeds, and the ratios of the table."""
        draw(plan, observations, report, file)

    def tables(self, plan: StreamPlan, observations: list[Run], report: ShortReport) -> Iterator[Table | str]:
        """One table, one sentence, and what must not happen."""
        yield from tables(report)
        yield from self.note()
