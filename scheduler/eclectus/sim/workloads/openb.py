"""`workload: {openb: …}`: the pods of a GPU cluster, one after the other, until it is more than full.

Weng and others, "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient
Descent", USENIX ATC 2023: its trace `openb`, its protocol and its measure. The pods are sorted by name and
shuffled with the seed; then pods drawn from the same file are appended until they ask for 1.3 times the GPUs
there are. They come one at a time, nothing ever leaves, and a pod that finds no node is dropped for good.
What is told is how much of the GPUs is allocated, by how much has been asked for: the curve.

So every pod is `lasting`: nothing ends here, and a policy that waited for an end would wait for ever.
Departs: the shuffle is numpy's and not Go's, so that runs agree on average and not seed by seed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

from eclectus.model.errors import SettingsError
from eclectus.model.objects import DEVICE_MILLI, Requirement, Spec, Term
from eclectus.model.settings import Setting
from eclectus.sim.base.csv_rows import read_rows, wrong
from eclectus.sim.base.machine import Machine
from eclectus.sim.base.random_streams import stream
from eclectus.sim.base.work import Arrival, Kind, Plan
from eclectus.sim.workloads.work_classes import SCORED_MEMORY
from eclectus.sim.workloads.workload import Workload
from eclectus.sim.world.allocation import offered
from eclectus.sim.world.node_file import LABEL, MIB

GAP_SECONDS = 1.0  # between two pods: any that is longer than the patience, since nothing takes time here
PATIENCE_SECONDS = 0.5  # a pod is tried once, on arrival: no back-off and no second look is so short


class _Row(Struct, frozen=True):
    name: str
    cpu_milli: Annotated[int, Meta(ge=0, le=2**40)]
    memory_mib: Annotated[int, Meta(ge=0, le=2**33)]
    num_gpu: Annotated[int, Meta(ge=0, le=1000)]
    gpu_milli: Annotated[int, Meta(ge=0, le=1000)]  # of one GPU
    gpu_spec: str

    @property
    def asked(self) -> int:
        """Thousandths of GPUs in all."""
        return self.num_gpu * self.gpu_milli


@dataclass(frozen=True)
class Openb(Workload):
    """Settings, and the stream they make."""

    file: Annotated[str, Setting("path of the list of pods, from the scenario's folder")]
    demand: Annotated[
        float,
        Setting("pods are appended until they ask for so many times the GPUs", why="the paper's", least=0.01),
    ] = 1.3

    def plan(self, machines: Mapping[str, Machine], folder: Path) -> Plan:
        """Read the list and check every line. Raises SettingsError with the line's number."""
        rows = sorted(self._rows(folder / self.file), key=lambda row: row.name)
        asked = sum(row.asked for row in rows)
        if not asked:
            raise SettingsError("file", f"{self.file} has no pod that asks for GPUs")
        most = self.demand * offered(machines, DEVICE_MILLI)
        if not most:
            raise SettingsError("", "the cluster has no GPUs; name a list of nodes, or give groups gpu-milli")
        return Plan(
            mean_sizes={},
            work_rates={},
            tasks_a_second=1 / GAP_SECONDS,
            tasks=round(len(rows) * max(1.0, most / asked)),
            arrivals=partial(_arrivals, rows, most),
            allocation_of=DEVICE_MILLI,
        )

    def _rows(self, path: Path) -> Iterator[_Row]:
        for number, row in read_rows(path, _Row):
            if row.num_gpu > 1 and row.gpu_milli != 1000:
                raise wrong(
                    path, number, f"shares of {row.num_gpu} GPUs: only one GPU can be shared by a pod"
                )
            if bool(row.num_gpu) != bool(row.gpu_milli):
                raise wrong(path, number, f"num_gpu is {row.num_gpu} and gpu_milli is {row.gpu_milli}")
            yield row


def _arrivals(rows: Sequence[_Row], most: float, seed: int) -> Iterator[Arrival]:
    """Every row once in random order, then rows drawn at random, with replacement."""
    kinds: dict[_Row, Kind] = {}
    for number, row in enumerate(_stream(rows, most, seed)):
        need = replace(row, name="")
        kind = kinds.get(need) or kinds.setdefault(need, _kind(need))
        yield Arrival(GAP_SECONDS * number, kind, (inf,), patience=PATIENCE_SECONDS)


def _stream(rows: Sequence[_Row], most: float, seed: int) -> Iterator[_Row]:
    rng, asked = stream(seed, "openb"), 0
    for at in rng.permutation(len(rows)).tolist():
        asked += rows[at].asked
        yield rows[at]
    while True:
        row = rows[int(rng.integers(len(rows)))]
        # As published: one GPU's worth is looked at, so the last pod may overshoot by the others it asks for.
        if asked + row.gpu_milli > most:
            return
        asked += row.asked
        yield row


def _kind(row: _Row) -> Kind:
    amounts = {"cpu": row.cpu_milli, "memory": row.memory_mib * MIB, DEVICE_MILLI: row.asked}
    models = tuple(sorted(set(row.gpu_spec.split("|")))) if row.gpu_spec else ()
    spec = Spec(
        requests=tuple(sorted((name, amount) for name, amount in amounts.items() if amount)),
        score_requests=(row.cpu_milli or 100, row.memory_mib * MIB or SCORED_MEMORY),
        affinity=(Term((Requirement(LABEL, "In", models),)),) if models else None,
        long_running=True,
    )
    return Kind("no-gpu" if not row.asked else "share" if row.asked < 1000 else "whole", spec)
