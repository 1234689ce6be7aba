"""`workload: {openb: …}`: pods that share GPUs are added to a cluster one by one until it is more than full.

Weng and others, "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient
Descent", USENIX ATC 2023: its trace `openb`, its protocol and its measure. The pods are sorted by name and
shuffled with the seed; then pods drawn from the same file are appended until they request 1.3 times all
GPUs. They arrive one at a time, none ever ends, and a pod that fits no node is dropped. The result is the
allocation curve: the share of GPUs that is allocated, by the share that has been requested.

All pods are long-running, so that no policy waits for one to end. Difference from the paper: the shuffle is
numpy's and not Go's, so runs agree on average and not seed by seed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

from eclectus.cluster.devices import DEVICE_MILLI
from eclectus.model.errors import SettingsError
from eclectus.model.objects import Requirement, Spec, Term
from eclectus.model.settings import REQUIRED, setting
from eclectus.sim.base.files import read_rows, row_error
from eclectus.sim.base.machine import Machine
from eclectus.sim.base.random_draws import stream
from eclectus.sim.base.work import Arrival, ArrivalPlan, WorkClass
from eclectus.sim.workloads.workload import SCORED_MEMORY, Workload
from eclectus.sim.world.cluster import MIB, MODEL_LABEL
from eclectus.sim.world.run_record import total_allocatable

GAP_SECONDS = 1.0  # between two pods; any value above the patience gives the same result
PATIENCE_SECONDS = 0.5  # shorter than any back-off, so that a pod is tried once, on arrival


class _Row(Struct, frozen=True):
    name: str
    cpu_milli: Annotated[int, Meta(ge=0, le=2**40)]
    memory_mib: Annotated[int, Meta(ge=0, le=2**33)]
    num_gpu: Annotated[int, Meta(ge=0, le=1000)]
    gpu_milli: Annotated[int, Meta(ge=0, le=1000)]  # of one GPU
    gpu_spec: str = ""  # four of the published lists have no such column: all models will do

    @property
    def requested(self) -> int:
        """Requested thousandths of GPUs."""
        return self.num_gpu * self.gpu_milli


@dataclass(frozen=True)
class Openb(Workload):
    """Settings of the workload."""

    file: str = setting(REQUIRED, "path of the list of pods, relative to the scenario's folder")
    demand: float = setting(
        1.3, "pods are appended until they request so many times all GPUs", why="the paper's", least=0.01
    )

    def plan(self, machines: Mapping[str, Machine], folder: Path) -> ArrivalPlan:
        """Read the list and check every line. Raises SettingsError naming the line."""
        rows = sorted(self._rows(folder / self.file), key=lambda row: row.name)
        requested = sum(row.requested for row in rows)
        if not requested:
            raise SettingsError("file", f"{self.file} has no pod that requests GPUs")
        most = self.demand * total_allocatable(machines, DEVICE_MILLI)
        if not most:
            raise SettingsError("", "the cluster has no GPUs; give it a node list, or groups with gpu-milli")
        return ArrivalPlan(
            mean_sizes={},
            work_rates={},
            tasks_a_second=1 / GAP_SECONDS,
            tasks=round(len(rows) * max(1.0, most / requested)),
            arrivals=partial(_arrivals, rows, most),
            allocated_resource=DEVICE_MILLI,
        )

    def _rows(self, path: Path) -> Iterator[_Row]:
        for number, row in read_rows(path, _Row):
            if row.num_gpu > 1 and row.gpu_milli != 1000:
                raise row_error(path, number, f"shares of {row.num_gpu} GPUs: a pod can share only one GPU")
            if bool(row.num_gpu) != bool(row.gpu_milli):
                raise row_error(path, number, f"num_gpu is {row.num_gpu} and gpu_milli is {row.gpu_milli}")
            yield row


def _arrivals(rows: Sequence[_Row], most: float, seed: int) -> Iterator[Arrival]:
    """Every row once in random order, then rows drawn at random, with replacement."""
    work_classes: dict[_Row, WorkClass] = {}
    for number, row in enumerate(_stream(rows, most, seed)):
        unnamed = replace(row, name="")
        work_class = work_classes.get(unnamed) or work_classes.setdefault(unnamed, _work_class(unnamed))
        yield Arrival(GAP_SECONDS * number, work_class, (inf,), patience=PATIENCE_SECONDS)


def _stream(rows: Sequence[_Row], most: float, seed: int) -> Iterator[_Row]:
    rng, requested = stream(seed, "openb"), 0
    for at in rng.permutation(len(rows)).tolist():
        requested += rows[at].requested
        yield rows[at]
    while True:
        row = rows[int(rng.integers(len(rows)))]
        # As in the paper's code, only one GPU is counted, so the last pod may exceed the limit by its others.
        if requested + row.gpu_milli > most:
            return
        requested += row.requested
        yield row


def _work_class(row: _Row) -> WorkClass:
    amounts = {"cpu": row.cpu_milli, "memory": row.memory_mib * MIB, DEVICE_MILLI: row.requested}
    models = tuple(sorted(set(row.gpu_spec.split("|")))) if row.gpu_spec else ()
    spec = Spec(
        requests=tuple(sorted((name, amount) for name, amount in amounts.items() if amount)),
        score_requests=(row.cpu_milli or 100, row.memory_mib * MIB or SCORED_MEMORY),
        affinity=(Term((Requirement(MODEL_LABEL, "In", models),)),) if models else None,
        long_running=True,
    )
    return WorkClass("no-gpu" if not row.requested else "share" if row.requested < 1000 else "whole", spec)
