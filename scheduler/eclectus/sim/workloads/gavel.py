"""`workload: {gavel: …}`: training jobs of many types on GPUs of a few, with measured rates of every pair.

Narayanan and others, "Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads", OSDI
2020: the generator of its simulations with jobs of one GPU, draw for draw, and its tables of throughputs.
The machines are unrelated: which GPU is the fast one depends on the job. A rate of 0 is a hard constraint.

A job's size is its time on the reference GPU, and the speed of another GPU its rate over the reference's.
That is the paper's steps over steps a second, in a unit that may be added up over types of jobs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from math import log
from pathlib import Path
from random import Random
from typing import Annotated

from msgspec.structs import replace as with_fields

from eclectus.model.errors import SettingsError
from eclectus.model.objects import Requirement, Term
from eclectus.model.settings import Setting
from eclectus.sim.base.machine import Machine
from eclectus.sim.base.work import Arrival, Kind, Plan
from eclectus.sim.workloads.throughputs import Rates, Throughputs
from eclectus.sim.workloads.work_classes import Needs
from eclectus.sim.workloads.workload import Workload
from eclectus.sim.world.cluster import Cluster, Group

LABEL = "gpu-type"
"""The label by which machines say which column of the table is theirs."""

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
"""The paper's, in its generator's order. Another order, such as that of the tables, is another stream."""

_LONG_FROM = 0.8  # a draw from here on is a long job
_SHORT, _LONG = (1.5, 3.0), (3.0, 4.0)  # a job takes a minute times ten to a power between these


def _mean_power(low: float, high: float) -> float:
    """E[10^U] of a U uniform between the bounds."""
    return float((10**high - 10**low) / ((high - low) * log(10)))


MEAN_SECONDS = 60 * (_LONG_FROM * _mean_power(*_SHORT) + (1 - _LONG_FROM) * _mean_power(*_LONG))
"""Mean size: 16.767 h on the reference GPU."""


@dataclass(frozen=True)
class Gavel(Workload):
    """Settings, and the stream they make."""

    throughputs: Annotated[str, Setting("path of the table of rates, .json or .json.gz")]
    jobs_per_hour: Annotated[float, Setting("jobs that arrive an hour", unit="jobs/h", least=1e-6, most=1e9)]
    first_job: Annotated[int, Setting("the first job that is measured", why="the paper's", least=0)] = 4000
    last_job: Annotated[
        int,
        Setting(
            "the last one; jobs arrive until all that are measured have ended", why="the paper's", least=0
        ),
    ] = 4999
    job_types: Annotated[
        tuple[str, ...], Setting("types of jobs, drawn alike", why="the paper's 26, in its order")
    ] = JOB_TYPES
    reference: Annotated[str, Setting("the GPU on which a job's size is its time", why="the paper's")] = (
        "v100"
    )
    tasks: Annotated[Needs, Setting("what every job asks for")] = field(default_factory=Needs)

    def __post_init__(self) -> None:
        if not self.job_types:
            raise SettingsError("jobTypes", "no type of job at all; leave it out for the paper's 26")
        if self.last_job < self.first_job:
            raise SettingsError("lastJob", f"comes before the first job that is measured, {self.first_job}")

    def equip(self, cluster: Cluster, folder: Path) -> Cluster:
        """The machines with their speeds for each type of job. Raises SettingsError."""
        if cluster.nodes is not None:
            raise SettingsError(
                "throughputs", "gives speeds to groups; the machines of cluster.nodes have none"
            )
        table = Throughputs(folder / self.throughputs, self.job_types)
        reference = self._reference(table)
        groups = []
        for name, group in cluster.named():
            rates = table.of(self._gpu(name, group))
            speeds = {job: rate / reference[job] for job, rate in rates.items() if rate}
            groups.append(replace(group, speeds=speeds))
        return replace(cluster, groups=tuple(groups))

    def plan(self, machines: Mapping[str, Machine], folder: Path) -> Plan:
        """Jobs without end, the window of them that counts, and where each type must not go."""
        labels = {dict(machine.node.labels)[LABEL] for machine in machines.values()}
        table = Throughputs(folder / self.throughputs, self.job_types)
        kinds = self._kinds({gpu: table.of(gpu) for gpu in sorted(labels)})
        rate = self.jobs_per_hour / 3600.0
        return Plan(
            mean_sizes=dict.fromkeys(kinds, MEAN_SECONDS),
            work_rates=dict.fromkeys(kinds, rate * MEAN_SECONDS / len(kinds)),
            tasks_a_second=rate,
            tasks=None,
            arrivals=partial(self._arrivals, kinds),
            measured=range(self.first_job, self.last_job + 1),
        )

    def _arrivals(self, kinds: tuple[Kind, ...], seed: int) -> Iterator[Arrival]:
        """Every draw in the order of the paper's generator, the unused one too."""
        draws, gaps, now = Random(seed + 2), Random(seed + 3), 0.0
        while True:
            draws.uniform(0, 1)
            low, high = _LONG if draws.random() >= _LONG_FROM else _SHORT
            seconds = 60.0 * 10.0 ** draws.uniform(low, high)
            yield Arrival(now, draws.choice(kinds), (seconds,))
            now += -log(1.0 - gaps.random()) * 3600.0 / self.jobs_per_hour

    def _kinds(self, rates: Mapping[str, Rates]) -> tuple[Kind, ...]:
        """One for each type of job, bound to GPUs on which it runs where there are others."""
        kinds = []
        for job in self.job_types:
            kind = self.tasks.kind(job)
            runs_on = tuple(gpu for gpu, column in rates.items() if column[job])
            if len(runs_on) < len(rates):
                within = (Term((Requirement(LABEL, "In", runs_on),)),)
                kind = with_fields(kind, spec=with_fields(kind.spec, affinity=within))
            kinds.append(kind)
        return tuple(kinds)

    def _reference(self, table: Throughputs) -> Rates:
        rates = table.of(self.reference)
        for job, rate in rates.items():
            if not rate:
                raise SettingsError(
                    "reference", f"{job} does not run on {self.reference}: choose another GPU"
                )
        return rates

    def _gpu(self, name: str, group: Group) -> str:
        if LABEL not in group.labels:
            problem = f"group {name!r} of the cluster has no label {LABEL} to say which GPU it is"
            raise SettingsError("throughputs", problem)
        return group.labels[LABEL]
