"""The perturbation experiment: Eclectus alone, while speeds are swapped and a node freezes and thaws."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from rich.box import SIMPLE
from rich.table import Table

from eclectus_e2e.demo.environment import Environment, started
from eclectus_e2e.demo.experiment import Experiment
from eclectus_e2e.demo.perturbations.observations import Observations
from eclectus_e2e.demo.perturbations.plan import Plan, Settings, make_plan
from eclectus_e2e.demo.perturbations.plots import draw
from eclectus_e2e.demo.perturbations.report import PerturbationReport, make_report
from eclectus_e2e.demo.perturbations.timeline import run
from eclectus_e2e.demo.screen import Screen


class PerturbationExperiment(Experiment[Plan, Environment, Observations, PerturbationReport]):
    """Eight nodes at work and an idle one, by default; the operator probes three of them."""

    report_file, picture_file = "perturbations.json", "perturbations.png"

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def plan(self) -> Plan:
        """Nodes, events and predictions."""
        return make_plan(self._settings)

    def environment(self, plan: Plan, directory: Path) -> AbstractContextManager[Environment]:
        """Control plane, fake nodes, and the chart with its operator."""
        return started(directory, plan.layout.nodes, values=_values(plan.settings.learn))

    def run(self, environment: Environment, plan: Plan, shown: Screen) -> Observations:
        """Send the stream and change speeds meanwhile."""
        return run(environment, plan, shown)

    def report(self, plan: Plan, observations: Observations) -> PerturbationReport:
        """Learning, recovery, the frozen and the idle node, probes; each with its target."""
        return make_report(plan, observations)

    def plot(self, plan: Plan, observations: Observations, report: PerturbationReport, file: Path) -> None:
        """Learned against true speeds over time, pairs learned, pods waiting."""
        draw(plan, observations, report, file)

    def tables(
        self, plan: Plan, observations: Observations, report: PerturbationReport
    ) -> Iterator[Table | str]:
        """Every target with what was measured, and what must not happen."""
        yield (
            f"\n[bold]Perturbations[/]: {report.pods} pods on {report.nodes} nodes at load {report.load:g}; "
            "speeds swapped, one node frozen and thawed, one only probed"
        )
        table = Table("", "measured", "target", "", box=SIMPLE)
        for one in report.wanted:
            verdict = "[green]met[/]" if one.met else "[yellow]missed[/]"
            table.add_row(one.what, one.found, one.wanted, verdict)
        yield table
        counts = (
            f"{report.lost} lost, {report.doubled} ran twice, {report.overcommitted} over-committed, "
            f"{report.violations} violations; {report.sent_again} stood still and were sent again"
        )
        yield f"What must not happen: {counts if report.sound else f'[red]{counts}[/]'}"


def _values(learn: Mapping[str, float]) -> dict[str, Any]:
    """The chart's values: the operator enabled, and the settings of the learner that differ.

    What was learned is written to NodeProfiles every two seconds, because the experiment is short.
    """
    settings = {_camel(name): value for name, value in learn.items()}
    config = {"learn": settings, "nodeProfiles": {"interval": "2s"}}
    return {"operator": {"enabled": True}, "config": config}


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)
