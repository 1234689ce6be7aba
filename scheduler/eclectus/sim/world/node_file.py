"""`cluster: {nodes: {file: …}}`: a list of machines, one per line.

The format `openb` is that of the cluster trace of Weng and others, "Beware of Fragmentation", USENIX ATC
2023: columns sn, cpu_milli, memory_mib, gpu (whole GPUs), model. The model becomes the label `gpu-model` and
the machine's group in reports and events. The list gives neither speeds nor pod limits: every machine has
speed 1 and a limit of pods that is never reached.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct

from eclectus.model.objects import DEVICE_MILLI, Node
from eclectus.model.settings import Setting
from eclectus.sim.base.csv_rows import read_rows, row_error

LABEL = "gpu-model"
MIB = 2**20
PODS = 10_000  # more pods than can share the GPUs of any machine

Count = Annotated[int, Meta(ge=0, le=2**40)]
"""A whole number small enough that sums of it stay exact."""


class _Row(Struct, frozen=True):
    sn: Annotated[str, Meta(min_length=1)]
    cpu_milli: Count
    memory_mib: Annotated[int, Meta(ge=0, le=2**33)]
    gpu: Annotated[int, Meta(ge=0, le=1000)]
    model: str


@dataclass(frozen=True)
class NodeFile:
    """Path and format of the list."""

    file: Annotated[str, Setting("path of the list, relative to the scenario's folder")]
    format: Annotated[Literal["openb"], Setting("names of the columns")] = "openb"

    def read(self, folder: Path) -> Iterator[tuple[str, Node]]:
        """Group and node, in the order of the file. Raises SettingsError naming the line."""
        path, names = folder / self.file, set[str]()
        for number, row in read_rows(path, _Row):
            if row.sn in names:
                raise row_error(path, number, f"node {row.sn!r} is listed twice")
            names.add(row.sn)
            yield row.model, _node(row)


def _node(row: _Row) -> Node:
    amounts = {
        "cpu": row.cpu_milli,
        "memory": row.memory_mib * MIB,
        "pods": PODS,
        DEVICE_MILLI: 1000 * row.gpu,
    }
    labels = {"kubernetes.io/hostname": row.sn, LABEL: row.model}
    return Node(
        row.sn,
        tuple(sorted((name, amount) for name, amount in amounts.items() if amount)),
        tuple(sorted(labels.items())),
    )
