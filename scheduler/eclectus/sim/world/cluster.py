"""The `cluster:` and `events:` of a scenario: groups of equal machines, a list of others, what befalls."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from eclectus.config.reading import join, nearest, read_value
from eclectus.kube.requests import FieldError, amounts, counted, parsed
from eclectus.model.errors import SettingsError
from eclectus.model.objects import DEVICE_MILLI, Amounts, Node, Taint, Toleration
from eclectus.model.settings import Setting
from eclectus.sim.base.machine import Machine
from eclectus.sim.world.node_file import NodeFile
from eclectus.sim.world.perturbations import Shock

SLOT_CPU = 1000  # a slot is one core, and a task that asks for nothing else takes one
_DEVICES = Setting("thousandths of devices that tasks may share", least=0, most=1e6)
PODS = 110  # what a kubelet allows, where resources are given and pods are not


@dataclass(frozen=True)
class TaintField:
    """A taint, spelled as on a node."""

    key: str
    value: str = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = "NoSchedule"

    @property
    def taint(self) -> Taint:
        """As the core knows it."""
        return Taint(self.key, self.value, self.effect)


@dataclass(frozen=True)
class TolerationField:
    """A toleration, spelled as on a pod."""

    key: str = ""
    operator: Literal["Equal", "Exists"] = "Equal"
    value: str = ""
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] = ""

    @property
    def toleration(self) -> Toleration:
        """As the core knows it."""
        return Toleration(self.key, self.operator, self.value, self.effect)


@dataclass(frozen=True)
class Group:
    """Machines that are alike."""

    count: Annotated[int, Setting("how many machines", least=1, most=100_000)] = 1
    name: Annotated[str, Setting("for reports and events; g0, g1, … if left out")] = ""
    slots: Annotated[int, Setting("tasks at a time, one core each", least=1, most=100_000)] = 1
    resources: Annotated[
        dict[str, object] | None, Setting("allocatable amounts, as on a node; instead of slots")
    ] = None
    speed: Annotated[
        float,
        Setting("work done a second in one slot: a task takes its size over this", least=1e-6, most=1e6),
    ] = 1.0
    speeds: Annotated[
        dict[str, float], Setting("speed by class of work, where it is not `speed`", least=1e-6, most=1e6)
    ] = field(default_factory=dict)
    labels: Annotated[dict[str, str], Setting("labels of the nodes")] = field(default_factory=dict)
    taints: tuple[TaintField, ...] = ()

    @property
    def allocatable(self) -> Amounts:
        """What one of the machines offers. Raises SettingsError."""
        if self.resources is None:
            return (("cpu", SLOT_CPU * self.slots), ("pods", self.slots))
        given = {"pods": PODS, **self.resources}
        return read_amounts(given, "resources")

    def node(self, name: str) -> Node:
        """One of the machines, as the API server shows it."""
        labels = {"kubernetes.io/hostname": name, **self.labels}
        return Node(
            name, self.allocatable, tuple(sorted(labels.items())), tuple(taint.taint for taint in self.taints)
        )


@dataclass(frozen=True)
class Cluster:
    """All machines, and how far they are from the scheduler."""

    groups: tuple[Group, ...] = ()
    nodes: Annotated[NodeFile | None, Setting("a list of machines, beside the groups")] = None
    network_delay: Annotated[
        float,
        Setting("every message between scheduler and machines takes this", unit="s", least=0, most=3600),
    ] = 0.0

    def __post_init__(self) -> None:
        if not self.groups and self.nodes is None:
            raise SettingsError("groups", "an empty cluster runs nothing; write at least one {count: 1}")
        names = [group.name or f"g{at}" for at, group in enumerate(self.groups)]
        for at, name in enumerate(names):
            if name in names[:at]:
                raise SettingsError(f"groups[{at}].name", f"{name!r} is taken by groups[{names.index(name)}]")
            try:
                self.groups[at].node(name)
            except SettingsError as error:
                raise SettingsError(join(f"groups[{at}]", error.path), error.problem) from None

    def named(self) -> Iterator[tuple[str, Group]]:
        """Groups with the names they go by."""
        for at, group in enumerate(self.groups):
            yield group.name or f"g{at}", group

    def within(self, folder: Path) -> Cluster:
        """With the machines of its list, which is looked for in `folder`. Raises SettingsError."""
        if self.nodes is None:
            return self
        try:
            listed = tuple(self.nodes.read(folder))
        except SettingsError as error:
            raise SettingsError(join("nodes", error.path), error.problem) from None
        names = self.machines().keys() & {node.name for _, node in listed}
        if names:
            raise SettingsError(
                "nodes.file", f"{self.nodes.file} has a node {min(names)!r}, and so has a group"
            )
        return _Listed(self.groups, self.nodes, self.network_delay, listed)

    def machines(self) -> dict[str, Machine]:
        """Fresh machines by the names of their nodes, `group-number`."""
        found = {}
        for name, group in self.named():
            for at in range(group.count):
                node = group.node(f"{name}-{at}")
                found[node.name] = Machine(node, name, group.speed, group.speeds)
        return found


@dataclass(frozen=True)
class _Listed(Cluster):
    """With a list that has been read."""

    listed: tuple[tuple[str, Node], ...] = ()  # group, node

    def machines(self) -> dict[str, Machine]:
        """Those of the groups, then those of the list by the names it gives them."""
        listed = {node.name: Machine(node, group, 1.0, {}) for group, node in self.listed}
        return super().machines() | listed


@dataclass(frozen=True)
class Befalls:
    """One entry of `events:`."""

    at: Annotated[float, Setting("when", unit="s", least=0)]
    action: Literal["swap", "scale", "fail", "freeze", "recover"]
    group: Annotated[str, Setting("whose machines")]
    count: Annotated[int | None, Setting("only the first so many of them", least=1)] = None
    partner: Annotated[str, Setting("swap: the group that trades speeds with it")] = ""
    factor: Annotated[float, Setting("scale: new speed over old", least=1e-6, most=1e6)] = 1.0

    def shock(self, cluster: Cluster) -> Shock:
        """As the world knows it. Raises SettingsError."""
        groups: dict[str, list[str]] = {}
        for name, machine in cluster.machines().items():
            groups.setdefault(machine.group, []).append(name)
        if (self.action == "swap") != bool(self.partner):
            raise SettingsError("partner", "belongs to swap, and swap needs it")
        if (self.action == "scale") != (self.factor != 1.0):
            raise SettingsError("factor", "belongs to scale, and scale needs one other than 1")
        ours = _names(groups, self.group, self.count, "group")
        theirs = _names(groups, self.partner, self.count, "partner") if self.partner else ()
        return Shock(self.at, self.action, ours, theirs, self.factor)


def read_amounts(given: dict[str, object], path: str) -> Amounts:
    """Quantities as on a node or a pod, and thousandths of devices, as the core's amounts.

    Raises SettingsError.
    """
    texts: dict[str, str | int | float] = {}
    for name, value in given.items():
        if counted(name):
            texts[name] = value if isinstance(value, str) else repr(value)
        elif name != DEVICE_MILLI:
            known = f"write cpu, memory, {DEVICE_MILLI} or a name such as example.com/gpu"
            raise SettingsError(join(path, name), f"no scheduler counts this; {known}")
    milli = read_value(int, _DEVICES, given.get(DEVICE_MILLI, 0), join(path, DEVICE_MILLI))
    devices = ((DEVICE_MILLI, milli),) if milli else ()
    try:
        return tuple(sorted((*amounts(parsed(texts, path), path), *devices)))
    except FieldError as error:
        raise SettingsError(error.field, error.problem) from None


def _names(groups: dict[str, list[str]], name: str, count: int | None, path: str) -> tuple[str, ...]:
    if name not in groups:
        raise SettingsError(path, f"{name!r} is no group; {nearest(name, list(groups))}")
    return tuple(groups[name][:count])
