"""What every experiment consists of: plan, environment, run, report, picture and tables; and its runner."""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import msgspec
from rich.console import Console
from rich.table import Table

from eclectus_e2e.demo import screen
from eclectus_e2e.demo.screen import Screen


class Judged(Protocol):
    """A report: a value that is written as JSON."""

    @property
    def sound(self) -> bool:
        """Whether nothing happened that must not, such as a lost pod; False makes the exit code 1."""


Plan = TypeVar("Plan")
Environment = TypeVar("Environment")
Observations = TypeVar("Observations")
Report = TypeVar("Report", bound=Judged)


class EndedEarlyError(Exception):
    """A run was interrupted or failed, which is its cause; `observations` is what it had until then."""

    def __init__(self, observations: Any) -> None:
        super().__init__()
        self.observations = observations


@dataclass(frozen=True)
class Experiment(Generic[Plan, Environment, Observations, Report]):
    """One experiment as data. Only `started` and `run` touch a cluster; the other functions are pure."""

    plan: Plan  # `str` of it is printed first
    report_file: str  # names in build/demo
    picture_file: str
    started: Callable[[Plan, Path], AbstractContextManager[Environment]]  # the path is for its files
    run: Callable[[Environment, Plan, Screen], Observations]  # progress on the screen; raises EndedEarlyError
    report: Callable[[Plan, Observations], Report]  # everything that is written to `report_file`
    draw: Callable[[Plan, Observations, Report, Path], None]  # writes the picture as PNG
    tables: Callable[[Plan, Observations, Report], Iterator[Table | str]]  # to print at the end
    note: str = ""  # printed after the tables


def run_experiment(
    experiment: Experiment[Plan, Environment, Observations, Report], folder: Path, console: Console
) -> Report:
    """Print the plan, run it, write report and picture into `folder`, print the tables.

    If the run ends early, the same is done with what it had, and then its cause is raised.
    """
    try:
        observations = _observe(experiment, folder, console)
    except EndedEarlyError as early:
        console.print("\nended early: what follows is of the runs that were over")
        _publish(experiment, early.observations, folder, console)
        raise (early.__cause__ or early) from None
    report = _publish(experiment, observations, folder, console)
    if experiment.note:
        console.print(experiment.note)
    return report


def _observe(
    experiment: Experiment[Plan, Environment, Observations, Report], folder: Path, console: Console
) -> Observations:
    with screen.opened(console) as shown:
        shown.say(str(experiment.plan))
        shown.say("starting the control plane and its nodes")
        with experiment.started(experiment.plan, folder / "cluster") as environment:
            return experiment.run(environment, experiment.plan, shown)


def _publish(
    experiment: Experiment[Plan, Environment, Observations, Report],
    observations: Observations,
    folder: Path,
    console: Console,
) -> Report:
    """Write report and picture, and print the tables."""
    plan = experiment.plan
    report = experiment.report(plan, observations)
    folder.mkdir(parents=True, exist_ok=True)
    text = msgspec.json.format(msgspec.json.encode(report), indent=2)
    (folder / experiment.report_file).write_bytes(text + b"\n")
    experiment.draw(plan, observations, report, folder / experiment.picture_file)
    for table in experiment.tables(plan, observations, report):
        console.print(table)
    files = [os.path.relpath(folder / name) for name in (experiment.picture_file, experiment.report_file)]
    console.print("picture: {}\nreport:  {}".format(*files), highlight=False, soft_wrap=True)
    return report
