"""`cluster: {nodes: {file: …}}`: machines from a list, one a line, beside groups of equal ones.

The format `openb` is that of the cluster trace of Weng and others, "Beware of Fragmentation", USENIX ATC
2023: columns sn, cpu_milli, memory_mib, gpu (whole GPUs), model. The model becomes the label `gpu-model`,
and the group that reports and events know the machine by. Every machine has speed 1, and as many places
for pods as anybody could want, because the list says nothing of either.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct

from eclectus.model.objects import DEVICE_MILLI, Node
from eclectus.model.settings import Setting
from eclectus.sim.base.csv_rows import read_rows, wrong

LABEL = "gpu-model"
MIB = 2**20
PODS = 10_000  # more than any machine has thousandths of GPUs to share

Count = Annotated[int, Meta(ge=0, le=2**40)]
"""A whole number that stays exact in every sum."""


class _Row(Struct, frozen=True):
    sn: Annotated[str, Meta(min_length=1)]
    cpu_milli: Count
    memory_mib: Annotated[int, Meta(ge=0, le=2**33)]
    gpu: Annotated[int, Meta(ge=0, le=1000)]
    model: str


@dataclass(frozen=True)
class NodeFile:
    """Where the list is."""

    file: Annotated[str, Setting("path of the list, from the scenario's folder")]
    format: Annotated[Literal["openb"], Setting("what its columns are called")] = "openb"

    def read(self, folder: Path) -> Iterator[tuple[str, Node]]:
        """Group and node, in the order of the file. Raises SettingsError with the line's number."""
        path, names = folder / self.file, set[str]()
        for number, row in read_rows(path, _Row):
            if row.sn in names:
                raise wrong(path, number, f"there is a node {row.sn!r} above already")
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
