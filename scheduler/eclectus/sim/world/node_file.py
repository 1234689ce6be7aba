"""`cluster: {nodes: {file: …}}` reads a list of machines, in one of two formats.

The format `kubernetes` is what `kubectl get nodes -o json` prints: allocatable resources, labels, taints and
cordons are those of the nodes. A machine's group in reports and events is its instance type.

The format `openb` is that of the cluster trace of Weng and others, "Beware of Fragmentation", USENIX ATC
2023: columns sn, cpu_milli, memory_mib, gpu (whole GPUs), model. The model becomes the label `gpu-model` and
the machine's group. The list gives no pod limits: every machine has one that is never reached.

No list gives speeds: a machine has speed 1 unless `speeds` says otherwise, by patterns of names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct

from eclectus.config.settings_reading import join, nearest
from eclectus.kube.objects import decode_list, decode_node
from eclectus.kube.translate import node_from
from eclectus.model.errors import MalformedError, SettingsError
from eclectus.model.objects import DEVICE_MILLI, Node
from eclectus.model.settings import Setting
from eclectus.sim.base.csv_rows import read_rows, row_error

SpeedsByName = Annotated[
    dict[str, float],
    Setting(
        "speed of nodes by name pattern with `*` and `?`; the first match counts, 1 without one",
        least=1e-6,
        most=1e6,
    ),
]


def speed_of(name: str, speeds: Mapping[str, float]) -> float:
    """The speed of a node: that of the first pattern that matches, 1 if none does."""
    return next((speed for pattern, speed in speeds.items() if fnmatchcase(name, pattern)), 1.0)


def check_patterns(speeds: Mapping[str, float], names: Iterable[str], where: str) -> None:
    """Raise SettingsError for a pattern that matches no node; `where` says of which list."""
    known = sorted(names)
    for pattern in speeds:
        if not any(fnmatchcase(name, pattern) for name in known):
            raise SettingsError(
                join("speeds", pattern), f"matches no node {where}; {nearest(pattern, known)}"
            )


LABEL = "gpu-model"
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
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
    format: Annotated[
        Literal["openb", "kubernetes"], Setting("the columns of a trace, or the output of kubectl")
    ] = "openb"
    speeds: SpeedsByName = field(default_factory=dict)

    def read(self, folder: Path) -> list[tuple[str, Node]]:
        """Group and node, in the order of the file. Raises SettingsError naming the line or the node."""
        path = folder / self.file
        found = list(_kubernetes(path) if self.format == "kubernetes" else _openb(path))
        check_patterns(self.speeds, (node.name for _, node in found), f"of {self.file}")
        return found

    def speed(self, name: str) -> float:
        """The speed of a node."""
        return speed_of(name, self.speeds)


def _kubernetes(path: Path) -> Iterator[tuple[str, Node]]:
    try:
        listed = [node_from(decode_node(raw)) for raw in decode_list(path.read_bytes()).items or ()]
    except (OSError, MalformedError) as error:
        raise SettingsError("file", f"{path.name} cannot be read: {error}") from error
    if not listed:
        raise SettingsError("file", f"{path.name} has no nodes; write it by `kubectl get nodes -o json`")
    for node in listed:
        yield dict(node.labels).get(INSTANCE_TYPE, "nodes"), node


def _openb(path: Path) -> Iterator[tuple[str, Node]]:
    names = set[str]()
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
