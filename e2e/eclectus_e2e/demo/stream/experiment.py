"""The stream experiment: one seeded stream of pods to Eclectus and its rivals at several loads."""

import os
from abc import ABC
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from rich.table import Table

from eclectus_e2e.demo.environment import Environment, started
from eclectus_e2e.demo.experiment import Experiment
from eclectus_e2e.demo.screen import Screen
from eclectus_e2e.demo.stream.plan import StreamPlan
from eclectus_e2e.demo.stream.plots import draw
from eclectus_e2e.demo.stream.report import Report, Run, make_report
from eclectus_e2e.demo.stream.run import run_all
from eclectus_e2e.demo.stream.tables import tables
from eclectus_e2e.paths import CLUSTER_DIRECTORY
from eclectus_e2e.testbed.command import ENVIRONMENT_FILE
from eclectus_e2e.testbed.controlplane.plane import environment_text

StreamReport = TypeVar("StreamReport", bound=Report)


class StreamRuns(Experiment[StreamPlan, Environment, list[Run], StreamReport], ABC):
    """An experiment that sends a stream to one scheduler after another.

    With `keep`, control plane and nodes go on running in the place of `make up`.
    """

    def __init__(self, plan: StreamPlan, *, keep: bool = False) -> None:
        self._plan, self._keep = plan, keep

    def plan(self) -> StreamPlan:
        """The plan that was given."""
        return self._plan

    @contextmanager
    def environment(self, plan: StreamPlan, directory: Path) -> Iterator[Environment]:
        """Control plane, the plan's fake nodes and the chart."""
        place = CLUSTER_DIRECTORY if self._keep else directory
        with started(place, plan.nodes, keep=self._keep) as environment:
            yield environment
            if self._keep:
                ENVIRONMENT_FILE.write_text(environment_text(environment.plane.environment()))

    def run(self, environment: Environment, plan: StreamPlan, shown: Screen) -> list[Run]:
        """Send every stream to every scheduler."""
        return list(run_all(environment, plan, shown))

    def note(self) -> Iterator[str]:
        """How to use the cluster, if it is kept."""
        if self._keep:
            yield f"the cluster runs on: source {os.path.relpath(ENVIRONMENT_FILE)}; `make down` ends it"


class StreamExperiment(StreamRuns[Report]):
    """All pods at the main load to all schedulers, and shorter streams at other loads."""

    report_file, picture_file = "stream.json", "stream.png"

    def report(self, plan: StreamPlan, observations: list[Run]) -> Report:
        """Response times of every run, and the ratios to kube-scheduler."""
        return make_report(
            observations, plan.nodes_at_end, seed=plan.seed, main_load=plan.main_load, capacity=plan.capacity
        )

    def plot(self, plan: StreamPlan, observations: list[Run], report: Report, file: Path) -> None:
        """Response times, learned speeds, cores in use, pods waiting and ratios."""
        draw(report, observations, plan.nodes, file)

    def tables(self, plan: StreamPlan, observations: list[Run], report: Report) -> Iterator[Table | str]:
        """Response times, learned speeds, and what must not happen."""
        yield from tables(report)
        yield from self.note()
