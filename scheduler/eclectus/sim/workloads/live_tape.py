"""`workload: {tape: …}` lets the pods of a tape, live or simulated, arrive again at the same times.

A pod's size is the seconds that it ran times the speed of the node it ran on. Node speeds are not part of a
tape; the scenario gives them, 1 by default, so that a node of speed 2 is twice as fast as the recorded ones.
What the tape does not contain is set as follows.

- A long-running pod, which restarts for ever, never ends.
- A pod that still ran when the tape ended has the size that was observed by then.
- A pod that had not started by then has the mean size of its class. So has one that was deleted before it
  started; it is deleted here too if it has not started within the same time.
- Such a pod is left out if no pod of its class ran, and so is one that ended without having run.
- A pod that ran before the tape began arrives at its beginning with the rest of its size.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import inf
from pathlib import Path
from statistics import fmean

from eclectus.config.configuration import parse
from eclectus.model.errors import SettingsError
from eclectus.model.events import Event, NodeSeen, TaskGone, TaskSeen
from eclectus.model.objects import Task
from eclectus.model.settings import REQUIRED, setting
from eclectus.sim.base.machine import Machine
from eclectus.sim.base.work import Arrival, ArrivalPlan, WorkClass
from eclectus.sim.workloads.constraints import Constraints, constrained
from eclectus.sim.workloads.workload import Workload, recorded_plan
from eclectus.sim.world.cluster import SPEEDS_BY_NAME, check_patterns, speed_of
from eclectus.tape import Step, TapeError, read


class RecordedPod:
    """One pod of the tape's profiles. Times are seconds on the tape's clock, inf for what did not happen."""

    def __init__(self, task: Task, arrived: float) -> None:
        self.task = task
        self.arrived = arrived
        self.node = ""
        self.started = self.ended = self.gone = inf

    @property
    def ran(self) -> bool:
        """Whether it ran."""
        return self.started < inf

    @property
    def over(self) -> float:
        """When it ended or was deleted."""
        return min(self.ended, self.gone)


class TapeRecord:
    """The nodes and pods of a tape."""

    def __init__(self, steps: Iterable[Step], profiles: Iterable[str]) -> None:
        """Read the steps; only pods with these schedulerNames count. Raises what `steps` raises."""
        self._profiles = frozenset(profiles)
        self.pods: dict[str, RecordedPod] = {}
        self.nodes: set[str] = set()
        self.begins = inf
        self.ends = 0.0
        for step in steps:
            self.begins = min(self.begins, step.now)
            self.ends = step.now
            for event in step.events:
                self._apply(event, step.now)

    def seconds(self, pod: RecordedPod) -> float:
        """How long the pod ran within the tape, in seconds."""
        return min(pod.over, self.ends) - max(pod.started, self.begins)

    def _apply(self, event: Event, now: float) -> None:
        match event:
            case NodeSeen(node=node):
                self.nodes.add(node.name)
            case TaskSeen(task=task) if task.profile in self._profiles and not task.gates:
                # A pod arrives when its last scheduling gate is removed.
                pod = self.pods.setdefault(task.uid, RecordedPod(task, now))
                if task.started is not None:
                    pod.node, pod.started = task.node, task.started
                if task.ended:
                    pod.ended = min(pod.ended, now if task.finished is None else task.finished)
            case TaskGone(uid=uid) if uid in self.pods:
                self.pods[uid].gone = min(self.pods[uid].gone, now)


LEAST_SECONDS = 1e-3  # least size of a pod that ran: clocks may show 0


@dataclass(frozen=True)
class Tape(Workload):
    """Settings of the workload."""

    file: str = setting(REQUIRED, "path of the tape, relative to the scenario's folder")
    speeds: dict[str, float] = setting({}, SPEEDS_BY_NAME)
    stretch: float = setting(1.0, "factor on arrival times: 2 halves the load", unit="", least=1e-9, most=1e9)
    constraints: Constraints | None = setting(
        None, "constraint sets that pods draw, if those of the tape have none"
    )

    def plan(self, machines: Mapping[str, Machine], folder: Path) -> ArrivalPlan:
        """Read the tape. Raises SettingsError."""
        record = self._record(folder)
        check_patterns(self.speeds, record.nodes, "on the tape")
        jobs = list(self._jobs(record))
        if not jobs:
            raise SettingsError("file", f"{self.file} contains no pod that ran")
        plan = recorded_plan(jobs, lambda seed: iter(jobs))
        return constrained(plan, self.constraints, machines)

    def _record(self, folder: Path) -> TapeRecord:
        try:
            header, steps = read(folder / self.file)
            profiles = parse(header.configuration).profiles
            return TapeRecord(steps, [profile.scheduler_name for profile in profiles])
        except (OSError, TapeError) as error:
            raise SettingsError("file", f"{self.file} cannot be read: {error}") from error
        except SettingsError as error:
            raise SettingsError("file", f"the configuration in {self.file}: {error}") from error

    def _jobs(self, record: TapeRecord) -> Iterator[Arrival]:
        """One job per pod, in the order of arrival."""
        pods = {uid: pod for uid, pod in record.pods.items() if pod.over > record.begins}
        sizes = {uid: self._size(record, pod) for uid, pod in pods.items() if pod.ran}
        by_class: dict[str, list[float]] = defaultdict(list)
        for uid, size in sizes.items():
            by_class[pods[uid].task.workload].append(size)
        means = {workload: fmean(each) for workload, each in by_class.items()}  # inf of long-running pods
        for uid, pod in pods.items():
            task, known = pod.task, sizes.get(uid)
            if known is None and pod.ended == inf:
                known = means.get(task.workload)
            if known is not None:
                at = max(pod.arrived - record.begins, 0.0) * self.stretch
                work_class = WorkClass(
                    task.workload, task.spec, task.priority, task.namespace, task.asked_pool
                )
                patience = inf if pod.ran else pod.gone - pod.arrived
                yield Arrival(at, work_class, (known,), estimate=task.estimate, patience=patience)

    def _size(self, record: TapeRecord, pod: RecordedPod) -> float:
        """The size of a pod that ran, in seconds at speed 1."""
        if pod.task.spec.long_running:
            return inf
        return max(record.seconds(pod), LEAST_SECONDS) * speed_of(pod.node, self.speeds)
