"""`workload: {jobtrace: …}`: the line format of the Sparrow, Hawk, Eagle and Megha simulators.

One job a line, fields separated by spaces or tabs: submit time, number of tasks, mean task duration,
then every task's duration; seconds. A name that ends in `.gz` is compressed. The file is read twice, to
check it and to run it, and never held in memory.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from math import isfinite
from pathlib import Path
from typing import Annotated

from eclectus.model.errors import SettingsError
from eclectus.model.settings import Setting
from eclectus.sim.base.machine import Machine
from eclectus.sim.base.work import Arrival, Kind, Plan
from eclectus.sim.workloads.recorded import recorded
from eclectus.sim.workloads.work_classes import Needs
from eclectus.sim.workloads.workload import Workload


@dataclass(frozen=True)
class Jobtrace(Workload):
    """Settings, and the stream they make."""

    file: Annotated[str, Setting("path of the trace, from the scenario's folder")]
    cut_off: Annotated[
        float | None,
        Setting("jobs of a mean duration below it are class `short`, others `long`", unit="s", least=0),
    ] = None
    stretch: Annotated[
        float, Setting("factor on submit times: 2 halves the load", unit="", least=1e-9, most=1e9)
    ] = 1.0
    most_jobs: Annotated[int | None, Setting("only the first so many jobs", least=1)] = None
    tasks: Annotated[Needs, Setting("what every task asks for")] = field(default_factory=Needs)

    def plan(self, machines: Mapping[str, Machine], folder: Path) -> Plan:
        """Read the trace once and check every line. Raises SettingsError with the line's number."""
        del machines
        plan = recorded(self._arrivals(folder, 0), partial(self._arrivals, folder))
        if not plan.tasks:
            raise SettingsError("file", f"{self.file} holds no job")
        return plan

    def _arrivals(self, folder: Path, seed: int) -> Iterator[Arrival]:
        """The jobs in the order of the file, whatever the seed."""
        del seed
        kinds, last = self._kinds(), 0.0
        for number, line in islice(self._lines(folder), self.most_jobs):
            try:
                job = self._job(line, kinds)
            except ValueError as error:
                raise SettingsError("file", f"{self.file}, line {number}: {error}") from None
            if job.at < last:
                raise SettingsError(
                    "file",
                    f"{self.file}, line {number}: submitted before the job above; sort by the first field",
                )
            last = job.at
            yield job

    def _kinds(self) -> dict[str, Kind]:
        names = ("short", "long") if self.cut_off is not None else ("work",)
        return {name: self.tasks.kind(name) for name in names}

    def _lines(self, folder: Path) -> Iterator[tuple[int, str]]:
        path = folder / self.file
        try:
            with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
                for number, line in enumerate(file, start=1):
                    if line.strip():
                        yield number, line
        except (OSError, EOFError, UnicodeDecodeError) as error:
            raise SettingsError("file", f"{self.file} cannot be read: {error}") from error

    def _job(self, line: str, kinds: dict[str, Kind]) -> Arrival:
        words = line.split()
        if len(words) < 4:
            raise ValueError("a job needs a submit time, a number of tasks, a mean and durations")
        at, mean, *sizes = (float(word) for word in (words[0], *words[2:]))
        if not words[1].isdigit() or int(words[1]) != len(sizes):
            raise ValueError(f"says {words[1]} tasks and gives {len(sizes)} durations")
        if not all(isfinite(number) for number in (at, mean, *sizes)) or at < 0 or min(sizes) <= 0:
            raise ValueError("submit times start at 0, and every task lasts")
        name = "work" if self.cut_off is None else "short" if mean < self.cut_off else "long"
        return Arrival(at * self.stretch, kinds[name], tuple(sizes), estimate=mean or None)
