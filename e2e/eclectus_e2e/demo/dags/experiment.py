"""The experiment on DAG jobs: the operator runs them, one scheduler after another places their pods."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from rich.table import Table

from eclectus_e2e.demo.dags.plan import DagPlan
from eclectus_e2e.demo.dags.plots import draw
from eclectus_e2e.demo.dags.report import DagReport, make_report
from eclectus_e2e.demo.dags.run import DagRun, run_all
from eclectus_e2e.demo.dags.tables import tables
from eclectus_e2e.demo.environment import Environment, started
from eclectus_e2e.demo.experiment import Experiment
from eclectus_e2e.demo.schedulers import CARBYNE, SCHEDULERS
from eclectus_e2e.demo.screen import Screen
from eclectus_e2e.demo.workload.queries import KINDS


class DagExperiment(Experiment[DagPlan, Environment, list[DagRun], DagReport]):
    """The same DAG jobs to every scheduler of the plan."""

    report_file, picture_file = "dags.json", "dags.png"

    def __init__(self, plan: DagPlan) -> None:
        self._plan = plan

    def plan(self) -> DagPlan:
        """The plan that was given."""
        return self._plan

    def environment(self, plan: DagPlan, directory: Path) -> AbstractContextManager[Environment]:
        """Control plane, fake nodes, and the chart with its operator."""
        return started(directory, plan.nodes, values=_values())

    def run(self, environment: Environment, plan: DagPlan, shown: Screen) -> list[DagRun]:
        """Create the jobs for every scheduler."""
        return list(run_all(environment, plan, shown))

    def report(self, plan: DagPlan, observations: list[DagRun]) -> DagReport:
        """Times of jobs, and factors between schedulers."""
        return make_report(plan, observations)

    def plot(self, plan: DagPlan, observations: list[DagRun], report: DagReport, file: Path) -> None:
        """When each job ran under each scheduler."""
        draw(report, observations, file)

    def tables(self, plan: DagPlan, observations: list[DagRun], report: DagReport) -> Iterator[Table | str]:
        """Times of jobs, Carbyne beside each other, and what must not happen."""
        yield from tables(report)


def _values() -> dict[str, Any]:
    """The chart's values: the operator, and a profile for which the chart grants the rights on DagJobs."""
    profile = {"schedulerName": "eclectus", **(SCHEDULERS[CARBYNE].profile or {})}
    shared = {"sharedWorkloads": [kind.name for kind in KINDS]}
    operator = {"enabled": True, "dagJobs": {"enabled": True}}
    return {"operator": operator, "config": {"profiles": [profile], "tenancy": shared}}
