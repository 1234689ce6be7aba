"""`workload: {jobtrace: …}`: traces in the line format of the Sparrow, Hawk, Eagle and Megha simulators.

One job per line, fields separated by spaces or tabs: submit time, number of tasks, mean task duration, then
the duration of every task, all in seconds. A name that ends in `.gz` is compressed. The file is streamed
twice, to check it and to run it, and never held in memory.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from math import isfinite
from pathlib import Path

from eclectus.model.errors import SettingsError
from eclectus.model.settings import REQUIRED, setting
from eclectus.sim.base.files import read_lines
from eclectus.sim.base.machine import Machine
from eclectus.sim.base.work import Arrival, ArrivalPlan, WorkClass
from eclectus.sim.workloads.constraints import Constraints, constrained
from eclectus.sim.workloads.workload import TaskNeeds, Workload, recorded_plan


@dataclass(frozen=True)
class Jobtrace(Workload):
    """Settings of the workload."""

    file: str = setting(REQUIRED, "path of the trace, relative to the scenario's folder")
    cut_off: float | None = setting(
        None, "jobs with a mean duration below it are of class `short`, others `long`", unit="s", least=0
    )
    stretch: float = setting(1.0, "factor on submit times: 2 halves the load", unit="", least=1e-9, most=1e9)
    most_jobs: int | None = setting(None, "read only the first so many jobs", least=1)
    tasks: TaskNeeds = setting(TaskNeeds(), "what every task requests")
    constraints: Constraints | None = setting(None, "constraint sets that jobs draw")

    def plan(self, machines: Mapping[str, Machine], folder: Path) -> ArrivalPlan:
        """Read the trace once and check every line. Raises SettingsError naming the line."""
        plan = recorded_plan(self._arrivals(folder, 0), partial(self._arrivals, folder))
        if not plan.tasks:
            raise SettingsError("file", f"{self.file} contains no job")
        return constrained(plan, self.constraints, machines, self._names)

    @property
    def _names(self) -> tuple[str, ...]:
        """The names of the classes."""
        return ("work",) if self.cut_off is None else ("short", "long")

    def _arrivals(self, folder: Path, seed: int) -> Iterator[Arrival]:
        """The jobs in the order of the file, the same for every seed."""
        work_classes, last = {name: self.tasks.work_class(name) for name in self._names}, 0.0
        for number, line in islice(read_lines(folder, self.file), self.most_jobs):
            try:
                job = self._job(line, work_classes)
                if job.at < last:
                    raise ValueError("submitted before the job above; sort by submit time")
            except ValueError as error:
                raise SettingsError("file", f"{self.file}, line {number}: {error}") from None
            last = job.at
            yield job

    def _job(self, line: str, work_classes: dict[str, WorkClass]) -> Arrival:
        fields = line.split()
        if len(fields) < 4:
            needs = "a submit time, a number of tasks, a mean duration and the durations"
            raise ValueError(f"a job needs {needs}")
        at, mean, *sizes = (float(each) for each in (fields[0], *fields[2:]))
        if not fields[1].isdigit() or int(fields[1]) != len(sizes):
            raise ValueError(f"has {fields[1]} tasks but {len(sizes)} durations")
        if not all(isfinite(number) for number in (at, mean, *sizes)) or at < 0 or min(sizes) <= 0:
            raise ValueError("submit times must be 0 or more, and durations above 0")
        name = "work" if self.cut_off is None else "short" if mean < self.cut_off else "long"
        return Arrival(at * self.stretch, work_classes[name], tuple(sizes), estimate=mean or None)
