"""What workloads have in common: their interface, classes of work as written, the capacity for them."""

from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass
from math import inf
from pathlib import Path

from msgspec.structs import replace

from eclectus.model.errors import SettingsError
from eclectus.model.objects import Amounts, Preference, Requirement, Spec, Term, Toleration
from eclectus.model.settings import REQUIRED, setting
from eclectus.sim.base.machine import Machine
from eclectus.sim.base.random_draws import SizeDistribution
from eclectus.sim.base.work import Arrival, ArrivalPlan, WorkClass
from eclectus.sim.world.cluster import SLOT_CPU, ClusterSettings, TolerationField, read_amounts
from eclectus.sim.world.judge import forbidden

SCORED_MEMORY = 200 * 2**20  # what kube-scheduler's scores assume for a pod without a memory request


@dataclass(frozen=True)
class PreferenceField:
    """A preferred node affinity of one expression: the node's label `key` should be one of `values`."""

    key: str
    values: tuple[str, ...] = setting(REQUIRED, "values of the label of which any will do")
    weight: int = setting(1, "weight beside the pod's other preferences", least=1, most=100)

    def __post_init__(self) -> None:
        if not self.values:
            raise SettingsError("values", "is empty, so that no node could meet the preference")


@dataclass(frozen=True)
class TaskNeeds:
    """What a task requests and where it may run, written as on a pod."""

    requests: dict[str, object] | None = setting(
        None, "resource requests; by default one core, that is one slot"
    )
    node_selector: dict[str, str] = setting({}, "labels that the node must carry")
    preferences: tuple[PreferenceField, ...] = setting((), "labels that the node should carry, but need not")
    tolerations: tuple[TolerationField, ...] = ()
    priority: int = setting(0, "higher goes first")

    def __post_init__(self) -> None:
        self.amounts()

    def amounts(self) -> Amounts:
        """The requests as amounts. Raises SettingsError."""
        if self.requests is None:
            return (("cpu", SLOT_CPU),)
        return read_amounts(dict(self.requests), "requests")

    def work_class(self, name: str) -> WorkClass:
        """The class with these requests and constraints."""
        requests = self.amounts()
        amounts = dict(requests)
        spec = Spec(
            requests=requests,
            score_requests=(amounts.get("cpu", 0) or 100, amounts.get("memory", 0) or SCORED_MEMORY),
            node_selector=tuple(sorted(self.node_selector.items())),
            preferences=tuple(
                Preference(each.weight, Term((Requirement(each.key, "In", each.values),)))
                for each in self.preferences
            ),
            tolerations=tuple(Toleration(*astuple(each)) for each in self.tolerations),
        )
        return WorkClass(name, spec, self.priority)


Needs = Callable[[str, str], TaskNeeds | None]
"""What the tasks of a stage need, by the names of job and stage; None: what the job's file says."""


@dataclass(frozen=True)
class GeneratedClass(TaskNeeds):
    """One class of a generated workload, with its share and sizes."""

    name: str = setting("work", "name in reports and `speeds`, and the pods' class label")
    share: float = setting(1.0, "share of the jobs, relative to the other classes", least=1e-9)
    tasks_per_job: int = setting(1, "tasks that arrive together", least=1, most=100_000)
    size: SizeDistribution = setting(SizeDistribution(), "distribution of task sizes")
    estimate: float | None = setting(
        None, "duration of its tasks as shown to the scheduler", unit="s", least=1e-9
    )
    workload: str = setting(
        "", "the pods' class label, for reports and learners, which classes may share; else the name"
    )
    gain: float = setting(
        1.0, "how many times faster its tasks run on nodes that meet all its preferences", least=1e-3
    )
    namespace: str = setting("default", "namespace of its pods")
    pool: str = setting("", "name of the pool that its pods ask for; none: default/NAMESPACE")
    gang: int = setting(
        0, "tasks of a job that start together, as a PodGroup; 0: each by itself", least=0, most=1000
    )
    begins: float = setting(0.0, "its jobs arrive from then on", unit="s", least=0)
    speculative: bool = setting(False, "its pods may have copies, where a profile speculates")
    restartable: bool = setting(
        False, "its pods may be ended for others, where a profile's place does that; their work begins anew"
    )
    parallelism: int | None = setting(
        None, "tasks of a job that there are at a time; all by default", least=1
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.gain != 1.0 and not self.preferences:
            raise SettingsError("gain", "is valid only with preferences")
        if self.gang > self.tasks_per_job:
            raise SettingsError("gang", f"is more than tasksPerJob, {self.tasks_per_job}: none would start")
        if self.gain != 1.0 and self.workload:
            problem = "is not valid with a shared workload, whose tasks have one speed on a node"
            raise SettingsError("gain", problem)

    @property
    def generated(self) -> WorkClass:
        """The class of its tasks."""
        of_needs = self.work_class(self.workload or self.name)
        beside = {"namespace": self.namespace, "pool": self.pool, "gang": self.gang}
        return replace(of_needs, speculative=self.speculative, restartable=self.restartable, **beside)


def capacity(work_class: WorkClass, machines: Iterable[Machine]) -> float:
    """Work of this class that the machines can do per second if they do nothing else."""
    total = 0.0
    for machine in machines:
        if not forbidden(work_class.spec, machine.node):
            total += slots(work_class, machine) * machine.nominal_speed(work_class.name)
    return total


def slots(work_class: WorkClass, machine: Machine) -> int:
    """Number of tasks of this class that fit on the empty machine."""
    allocatable = dict(machine.node.allocatable)
    return min(allocatable.get(name, 0) // amount for name, amount in work_class.demand)


def load(work: Mapping[WorkClass, float], machines: Mapping[str, Machine]) -> tuple[float, bool]:
    """Load of `work` (seconds at speed 1 per second) over capacity, and whether the figure is exact.

    It is exact if all classes have the same capacity on each machine. Otherwise it is a lower bound: the
    largest of the load of such classes together, and that of all work if each machine always ran its best
    class. inf if a class can run nowhere, or no work is known.
    """
    alike: dict[tuple[float, ...], float] = defaultdict(float)  # capacity on each machine -> work
    for work_class, amount in work.items():
        alike[tuple(capacity(work_class, (machine,)) for machine in machines.values())] += amount
    if not alike or not all(map(any, alike)):
        return inf, True
    best = sum(map(max, zip(*alike, strict=True)))
    bounds = [amount / sum(capacities) for capacities, amount in alike.items()]
    return max(*bounds, sum(work.values()) / best), len(alike) == 1


def load_of_cluster(work: Mapping[WorkClass, float], machines: Mapping[str, Machine]) -> float | None:
    """Load of `work` (seconds at speed 1 per second) over the capacity of all machines that may run any.

    None if that has no meaning: if some machine has different capacity for the classes that it may run. Gains
    do not count, because how much work runs with one depends on the policy. inf if no machine may run any.
    """
    total = 0.0
    for machine in machines.values():
        found = {capacity(each, (machine,)) / machine.gains.get(each.name, 1.0) for each in work} - {0.0}
        if len(found) > 1:
            return None
        total += sum(found)
    return sum(work.values()) / total if total else inf


class Workload(ABC):
    """Settings of a workload, from which its arrival plan is made."""

    def with_speeds(self, cluster: ClusterSettings, folder: Path) -> ClusterSettings:
        """The cluster with the speeds that the workload's data gives, if any. Raises SettingsError."""
        return cluster

    def asked_pools(self) -> Iterator[tuple[str, str]]:
        """Path and name wherever the settings ask for a pool."""
        return iter(())

    @abstractmethod
    def plan(self, machines: Mapping[str, Machine], folder: Path) -> ArrivalPlan:
        """The arrival plan for these machines; paths in the settings are relative to `folder`.

        Raises SettingsError, its path relative to the workload's own settings.
        """


def recorded_plan(jobs: Iterable[Arrival], arrivals: Callable[[int], Iterator[Arrival]]) -> ArrivalPlan:
    """The plan of recorded jobs, in order of time; `arrivals` yields the same jobs for every seed.

    Classes with the same name get one mean size, because a learner cannot distinguish them. If all jobs
    arrive at once, rates are inf; without a job, the plan has no task.
    """
    counts, ending = Counter[WorkClass](), Counter[str]()
    work: dict[WorkClass, float] = defaultdict(float)  # seconds at speed 1; tasks that never end add none
    work_by_name: dict[str, float] = defaultdict(float)
    last = 0.0
    for job in jobs:
        last, work_class = job.at, job.work_class
        sizes = [size for size in job.sizes if size < inf]
        counts[work_class] += len(job.sizes)
        work[work_class] += sum(sizes)
        ending[work_class.name] += len(sizes)
        work_by_name[work_class.name] += sum(sizes)
    # The mean of a class of which no task ends is not used.
    means = {name: total / ending[name] if ending[name] else 1.0 for name, total in work_by_name.items()}
    tasks = counts.total()
    return ArrivalPlan(
        mean_sizes={work_class: means[work_class.name] for work_class in work},
        work_rates={work_class: total / last if last else inf for work_class, total in work.items()},
        tasks_a_second=tasks / last if last else inf,
        tasks=tasks,
        arrivals=arrivals,
    )
