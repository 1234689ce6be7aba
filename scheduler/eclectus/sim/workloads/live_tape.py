"""`workload: {tape: …}`: pods of a tape, live or simulated, come again at their times, to another cluster.

A pod's size is the seconds that it ran times the speed of the node it ran on. That speed is no part of a
tape and is given by the scenario, 1 where nothing is said: then a node of speed 2 is one twice as fast
as all those on record. What the tape does not tell is decided as follows.

- A service, which restarts for ever, never ends here either.
- A pod that still ran when the tape ended is as large as what was seen of it.
- A pod that had not started by then has the mean size of its class; likewise one that was deleted before
  it started, which goes away here too unless it starts within the same time.
- Such a pod of a class of which none ran, and one that ended without having run, are left out.
- A pod that ran before the tape began comes at its beginning, with what was left.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from math import inf
from pathlib import Path
from statistics import fmean
from typing import Annotated

from eclectus.config import parse
from eclectus.config.reading import join, nearest
from eclectus.model.errors import SettingsError
from eclectus.model.settings import Setting
from eclectus.sim.base.machine import Machine
from eclectus.sim.base.work import Arrival, Kind, Plan
from eclectus.sim.workloads.recorded import recorded
from eclectus.sim.workloads.tape_records import Pod, Record
from eclectus.sim.workloads.workload import Workload
from eclectus.tape import TapeError, read

LEAST_SECONDS = 1e-3  # what a run counts that was shorter than the clocks can tell


@dataclass(frozen=True)
class Tape(Workload):
    """Settings, and the stream they make."""

    file: Annotated[str, Setting("path of the tape, from the scenario's folder")]
    speeds: Annotated[
        dict[str, float],
        Setting(
            "speed of the nodes on record by name, `*` and `?` standing for any; the first that fits",
            least=1e-6,
            most=1e6,
        ),
    ] = field(default_factory=dict)
    stretch: Annotated[
        float, Setting("factor on arrival times: 2 halves the load", unit="", least=1e-9, most=1e9)
    ] = 1.0

    def plan(self, machines: Mapping[str, Machine], folder: Path) -> Plan:
        """Read the tape. Raises SettingsError."""
        del machines
        record = self._record(folder)
        self._check_speeds(record.nodes)
        jobs = list(self._jobs(record))
        if not jobs:
            raise SettingsError("file", f"{self.file} tells of no pod that ran")
        return recorded(jobs, lambda seed: iter(jobs))

    def _record(self, folder: Path) -> Record:
        try:
            header, steps = read(folder / self.file)
            profiles = parse(header.configuration).profiles
            return Record(steps, [profile.scheduler_name for profile in profiles])
        except (OSError, TapeError) as error:
            raise SettingsError("file", f"{self.file} cannot be read: {error}") from error
        except SettingsError as error:
            raise SettingsError("file", f"the configuration that {self.file} begins with: {error}") from error

    def _jobs(self, record: Record) -> Iterator[Arrival]:
        """One job a pod, in the order of arrival."""
        pods = {uid: pod for uid, pod in record.pods.items() if pod.over > record.begins}
        sizes = {uid: self._size(record, pod) for uid, pod in pods.items() if pod.ran}
        means = _means((pods[uid].task.workload, size) for uid, size in sizes.items())
        for uid, pod in pods.items():
            task, size = pod.task, sizes.get(uid)
            if size is None and pod.ended == inf:
                size = means.get(task.workload)
            if size is not None:
                at = max(pod.arrived - record.begins, 0.0) * self.stretch
                kind = Kind(task.workload, task.spec, task.priority)
                patience = inf if pod.ran else pod.gone - pod.arrived
                yield Arrival(at, kind, (size,), estimate=task.estimate, patience=patience)

    def _size(self, record: Record, pod: Pod) -> float:
        """Of a pod that ran, seconds at speed 1."""
        if pod.task.spec.long_running:
            return inf
        return max(record.seconds(pod), LEAST_SECONDS) * self._speed(pod.node)

    def _speed(self, node: str) -> float:
        fitting = (speed for pattern, speed in self.speeds.items() if fnmatchcase(node, pattern))
        return next(fitting, 1.0)

    def _check_speeds(self, nodes: set[str]) -> None:
        for pattern in self.speeds:
            if not any(fnmatchcase(node, pattern) for node in nodes):
                hint = nearest(pattern, sorted(nodes))
                raise SettingsError(join("speeds", pattern), f"no node on the tape has such a name; {hint}")


def _means(sizes: Iterable[tuple[str, float]]) -> dict[str, float]:
    """By class; inf where it is one of services."""
    by_class: dict[str, list[float]] = defaultdict(list)
    for workload, size in sizes:
        by_class[workload].append(size)
    return {workload: fmean(each) for workload, each in by_class.items()}
