"""The protocol of every experiment: plan, environment, run, report, plot, tables; and its runner."""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import ClassVar, Generic, Protocol, TypeVar

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


class Experiment(ABC, Generic[Plan, Environment, Observations, Report]):
    """One experiment. Only `environment` and `run` touch a cluster; the other methods are pure."""

    report_file: ClassVar[str]  # names in build/demo
    picture_file: ClassVar[str]

    @abstractmethod
    def plan(self) -> Plan:
        """What will be done; `str` of it is printed first. Raises MachineError where it cannot be done."""

    @abstractmethod
    def environment(self, plan: Plan, directory: Path) -> AbstractContextManager[Environment]:
        """The cluster of the experiment for a `with` block; its files are in `directory`."""

    @abstractmethod
    def run(self, environment: Environment, plan: Plan, shown: Screen) -> Observations:
        """Carry out the plan; progress goes to the screen."""

    @abstractmethod
    def report(self, plan: Plan, observations: Observations) -> Report:
        """Compute everything that is written to `report_file`."""

    @abstractmethod
    def plot(self, plan: Plan, observations: Observations, report: Report, file: Path) -> None:
        """Write the picture as PNG."""

    @abstractmethod
    def tables(self, plan: Plan, observations: Observations, report: Report) -> Iterator[Table | str]:
        """The headings and tables to print at the end."""


def run_experiment(
    experiment: Experiment[Plan, Environment, Observations, Report], folder: Path, console: Console
) -> Report:
    """Print the plan, run it, write report and picture into `folder`, print the tables."""
    plan = experiment.plan()
    with screen.opened(console) as shown:
        shown.say(str(plan))
        shown.say("starting the control plane and its nodes")
        with experiment.environment(plan, folder / "cluster") as environment:
            observations = experiment.run(environment, plan, shown)
    report = experiment.report(plan, observations)
    folder.mkdir(parents=True, exist_ok=True)
    text = msgspec.json.format(msgspec.json.encode(report), indent=2)
    (folder / experiment.report_file).write_bytes(text + b"\n")
    experiment.plot(plan, observations, report, folder / experiment.picture_file)
    files = [os.path.relpath(folder / name) for name in (experiment.picture_file, experiment.report_file)]
    for table in experiment.tables(plan, observations, report):
        console.print(table)
    console.print("picture: {}\nreport:  {}".format(*files), highlight=False, soft_wrap=True)
    return report
