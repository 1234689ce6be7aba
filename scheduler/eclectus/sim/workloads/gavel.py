"""`workload: {gavel: …}` draws training jobs on several types of GPU, with measured rates of all pairs.

Narayanan and others, "Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads", OSDI
2020: the generator of its simulations with single-GPU jobs, draw for draw, and its tables of throughputs. The
machines are unrelated: which GPU is the fastest depends on the job. A rate of 0 is a hard constraint.

A job's size is its duration on the reference GPU, and the speed of another GPU is its rate over the
reference's. This equals the paper's steps over steps per second, in a unit common to all types of jobs.

A table of throughputs has one mapping per type of GPU:

    {"v100": {"('A3C', 1)": {"null": 7.18, ...}, ...}, ...}

A key is a type of job and a number of GPUs; "null" holds the rate of the job running alone, in iterations per
second, or 0 if it cannot run. Rates beside other jobs and on several GPUs are ignored.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import log
from pathlib import Path
from random import Random
from typing import Annotated

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace as with_fields

from eclectus.model.errors import SettingsError
from eclectus.model.objects import Requirement, Term
from eclectus.model.printed import nearest
from eclectus.model.settings import REQUIRED, setting
from eclectus.sim.base.files import read_data
from eclectus.sim.base.machine import Machine
from eclectus.sim.base.work import Arrival, ArrivalPlan, WorkClass
from eclectus.sim.workloads.workload import TaskNeeds, Workload
from eclectus.sim.world.cluster import ClusterSettings

Rates = dict[str, float]
"""Type of job -> iterations per second, alone on one GPU of a given type."""


class _Entry(Struct, frozen=True):
    null: Annotated[float, Meta(ge=0)]


class Throughputs:
    """One file of throughputs."""

    def __init__(self, folder: Path, name: str, job_types: tuple[str, ...]) -> None:
        """Raises SettingsError if the file cannot be read or is not such a table."""
        self._path = folder / name
        self._job_types = job_types
        data = read_data(folder, name, "throughputs")
        try:
            self._table = msgspec.json.decode(data, type=dict[str, dict[str, _Entry]])
        except msgspec.DecodeError as error:
            raise SettingsError("throughputs", f"{self._path} is not a table of rates: {error}") from error

    def of(self, gpu: str) -> Rates:
        """The rates on one type of GPU. Raises SettingsError if the file lacks any of them."""
        column: Mapping[str, _Entry] | None = self._table.get(gpu)
        if column is None:
            problem = f"{self._path} has no GPU {gpu!r}; {nearest(gpu, list(self._table))}"
            raise SettingsError("throughputs", problem)
        keys = {job: f"('{job}', 1)" for job in self._job_types}
        for key in keys.values():
            if key not in column:
                problem = f"{self._path} has no rate of {key} on {gpu}; {nearest(key, list(column))}"
                raise SettingsError("throughputs", problem)
        return {job: column[key].null for job, key in keys.items()}


LABEL = "gpu-type"
"""Node label that names the machine's column of the table."""

_BATCHES = {
    "ResNet-18": (16, 32, 64, 128, 256),
    "ResNet-50": (16, 32, 64, 128),
    "Transformer": (16, 32, 64, 128, 256),
    "LM": (5, 10, 20, 40, 80),
    "Recommendation": (512, 1024, 2048, 4096, 8192),
}
JOB_TYPES = (
    *(f"{model} (batch size {size})" for model, sizes in _BATCHES.items() for size in sizes),
    "A3C",
    "CycleGAN",
)
"""The paper's types, in the order of its generator; another order would give another random stream."""

_LONG_FROM = 0.8  # a draw of at least this makes a long job
_SHORT, _LONG = (1.5, 3.0), (3.0, 4.0)  # a job takes 60 s * 10^U, U uniform between these


def _mean_power(low: float, high: float) -> float:
    """E[10^U] for U uniform between the bounds."""
    return float((10**high - 10**low) / ((high - low) * log(10)))


MEAN_SECONDS = 60 * (_LONG_FROM * _mean_power(*_SHORT) + (1 - _LONG_FROM) * _mean_power(*_LONG))
"""Mean size of a job: 16.767 h on the reference GPU."""


@dataclass(frozen=True)
class Gavel(Workload):
    """Settings of the workload."""

    throughputs: str = setting(REQUIRED, "path of the table of rates, .json or .json.gz")
    jobs_per_hour: float = setting(REQUIRED, "jobs that arrive per hour", unit="jobs/h", least=1e-6, most=1e9)
    first_job: int = setting(4000, "number of the first measured job", why="the paper's", least=0)
    last_job: int = setting(
        4999,
        "number of the last one; jobs arrive until all measured jobs have ended",
        why="the paper's",
        least=0,
    )
    job_types: tuple[str, ...] = setting(
        JOB_TYPES, "types of jobs, all equally likely", why="the paper's 26, in its order"
    )
    reference: str = setting("v100", "the GPU on which a job's duration is its size", why="the paper's")
    tasks: TaskNeeds = setting(TaskNeeds(), "what every job requests")

    def __post_init__(self) -> None:
        if not self.job_types:
            raise SettingsError("jobTypes", "is empty; leave it out for the paper's 26 types")
        if self.last_job < self.first_job:
            raise SettingsError("lastJob", f"is before the first measured job, {self.first_job}")

    def with_speeds(self, cluster: ClusterSettings, folder: Path) -> ClusterSettings:
        """The cluster with the speed of each type of job. Raises SettingsError."""
        if cluster.nodes is not None:
            problem = "gives speeds to groups of machines; cluster.nodes is not supported"
            raise SettingsError("throughputs", problem)
        table = Throughputs(folder, self.throughputs, self.job_types)
        reference = table.of(self.reference)
        for job, rate in reference.items():
            if not rate:
                problem = f"{job} does not run on {self.reference}: choose another GPU"
                raise SettingsError("reference", problem)
        groups = []
        for name, group in cluster.named_groups():
            if LABEL not in group.labels:
                problem = f"group {name!r} of the cluster has no label {LABEL} that names its GPU"
                raise SettingsError("throughputs", problem)
            rates = table.of(group.labels[LABEL]).items()
            speeds = {job: rate / reference[job] for job, rate in rates if rate}
            groups.append(replace(group, speeds=speeds))
        return replace(cluster, groups=tuple(groups))

    def plan(self, machines: Mapping[str, Machine], folder: Path) -> ArrivalPlan:
        """The plan: endless arrivals, the measured window, and the node affinity of each type of job."""
        labels = {dict(machine.node.labels)[LABEL] for machine in machines.values()}
        table = Throughputs(folder, self.throughputs, self.job_types)
        work_classes = self._work_classes({gpu: table.of(gpu) for gpu in sorted(labels)})
        rate = self.jobs_per_hour / 3600.0
        return ArrivalPlan(
            mean_sizes=dict.fromkeys(work_classes, MEAN_SECONDS),
            work_rates=dict.fromkeys(work_classes, rate * MEAN_SECONDS / len(work_classes)),
            tasks_a_second=rate,
            tasks=None,
            arrivals=partial(self._arrivals, work_classes),
            measured=range(self.first_job, self.last_job + 1),
        )

    def _arrivals(self, work_classes: tuple[WorkClass, ...], seed: int) -> Iterator[Arrival]:
        """Jobs in the order of the paper's generator, including its unused draws."""
        draws, gaps, now = Random(seed + 2), Random(seed + 3), 0.0
        while True:
            draws.uniform(0, 1)
            low, high = _LONG if draws.random() >= _LONG_FROM else _SHORT
            seconds = 60.0 * 10.0 ** draws.uniform(low, high)
            yield Arrival(now, draws.choice(work_classes), (seconds,))
            now += -log(1.0 - gaps.random()) * 3600.0 / self.jobs_per_hour

    def _work_classes(self, rates: Mapping[str, Rates]) -> tuple[WorkClass, ...]:
        """A class for each type of job, with node affinity where it cannot run on all GPUs."""
        work_classes = []
        for job in self.job_types:
            work_class = self.tasks.work_class(job)
            runs_on = tuple(gpu for gpu, column in rates.items() if column[job])
            if len(runs_on) < len(rates):
                within = (Term((Requirement(LABEL, "In", runs_on),)),)
                work_class = with_fields(work_class, spec=with_fields(work_class.spec, affinity=within))
            work_classes.append(work_class)
        return tuple(work_classes)
