"""The `cluster:` of a scenario is groups of identical machines and a list of others; `events:` disturb it.

Properties of machines are drawn as wholes from a table of machine types, after Sharma and others,
"Modeling and Synthesizing Task Placement Constraints in Google Compute Clusters" (SoCC 2011): the labels
of a machine are drawn together, because labels drawn one by one make machines that do not exist.
Departure: every type gets its share of the machines exactly (by largest remainders), and only
which machines these are is random, so that a small cluster lacks no type by chance.

A list has one of two formats. `kubernetes` is what `kubectl get nodes -o json` prints: allocatable resources,
labels, taints and cordons are those of the nodes. A machine's group in reports and events is its instance
type. `openb` is that of the cluster trace of Weng and others, "Beware of Fragmentation", USENIX ATC 2023:
columns sn, cpu_milli, memory_mib, gpu (whole GPUs), model. The model becomes the label `gpu-model` and the
machine's group. The list gives no pod limits: every machine has one that is never reached. No list gives
speeds: a machine has speed 1 unless `speeds` says otherwise, by patterns of names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import repeat
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Literal

from msgspec import Meta, Struct

from eclectus.cluster.devices import DEVICE_MILLI
from eclectus.config.settings_reading import join, read_value
from eclectus.kube.objects import decode_list, decode_node
from eclectus.kube.requests import MOST, FieldError, amounts, counted, parsed
from eclectus.kube.translate import node_from
from eclectus.model.errors import MalformedError, SettingsError, errors_below
from eclectus.model.objects import Amounts, Node, Taint
from eclectus.model.printed import nearest
from eclectus.model.settings import REQUIRED, Setting, setting
from eclectus.sim.base.files import read_rows, row_error
from eclectus.sim.base.machine import Machine
from eclectus.sim.base.random_draws import stream
from eclectus.sim.base.work import Gain
from eclectus.sim.world.judge import preferences_met

SPEEDS_BY_NAME = Setting(
    "speed of nodes by name pattern with `*` and `?`; the first match counts, 1 without one",
    least=1e-6,
    most=1e6,
)


def speed_of(name: str, speeds: Mapping[str, float]) -> float:
    """The speed of a node: that of the first pattern that matches, 1 if none does."""
    return next((speed for pattern, speed in speeds.items() if fnmatchcase(name, pattern)), 1.0)


def check_distinct(names: Iterable[str], where: str) -> None:
    """Raise SettingsError for a name that two items of the list at `where` have."""
    places: dict[str, int] = {}
    for at, name in enumerate(names):
        if (first := places.setdefault(name, at)) != at:
            raise SettingsError(f"{where}[{at}].name", f"{name!r} is already used by {where}[{first}]")


def check_patterns(speeds: Mapping[str, float], names: Iterable[str], where: str) -> None:
    """Raise SettingsError for a pattern that matches no node; `where` says of which list."""
    known = sorted(names)
    for pattern in speeds:
        if not any(fnmatchcase(name, pattern) for name in known):
            problem = f"matches no node {where}; {nearest(pattern, known)}"
            raise SettingsError(join("speeds", pattern), problem)


MODEL_LABEL = "gpu-model"
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
MIB = 2**20
PODS_UNLIMITED = 10_000  # more pods than can share the GPUs of any machine

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

    file: str = setting(REQUIRED, "path of the list, relative to the scenario's folder")
    format: Literal["openb", "kubernetes"] = setting(
        "openb", "the columns of a trace, or the output of kubectl"
    )
    speeds: dict[str, float] = setting({}, SPEEDS_BY_NAME)

    def read(self, folder: Path) -> list[tuple[str, Node]]:
        """Group and node, in the order of the file. Raises SettingsError naming the line or the node."""
        path = folder / self.file
        found = list(_kubernetes(path) if self.format == "kubernetes" else _openb(path))
        check_patterns(self.speeds, (node.name for _, node in found), f"of {self.file}")
        return found


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
        amounts = {"cpu": row.cpu_milli, "memory": row.memory_mib * MIB, "pods": PODS_UNLIMITED}
        amounts[DEVICE_MILLI] = 1000 * row.gpu
        offered = tuple(sorted((name, amount) for name, amount in amounts.items() if amount))
        labels = {"kubernetes.io/hostname": row.sn, MODEL_LABEL: row.model}
        yield row.model, Node(row.sn, offered, tuple(sorted(labels.items())))


@dataclass(frozen=True)
class MachineType:
    """One line of the table."""

    labels: dict[str, str] = setting({}, "labels of the nodes of this type")
    share: float = setting(1.0, "share of the machines, relative to the other types", least=1e-9)


@dataclass(frozen=True)
class MachineTypes:
    """The table, and the seed of which machine is of which type."""

    types: tuple[MachineType, ...]
    seed: int = setting(
        1,
        "seed of which machine is of which type",
        why="properties in the order of the machines would coincide with partitions by number",
        least=0,
    )

    def __post_init__(self) -> None:
        if not self.types:
            raise SettingsError("types", "is empty; write at least one type such as {labels: {disk: ssd}}")

    def labels(self, machines: int) -> list[dict[str, str]]:
        """The labels of each of so many machines, in random order; the same for equal seeds."""
        counts = zip(self.types, self.counts(machines), strict=True)
        labels = [each.labels for each, count in counts for _ in range(count)]
        order = stream(self.seed, "machine types").permutation(machines)
        return [labels[at] for at in order.tolist()]

    def counts(self, machines: int) -> list[int]:
        """How many of the machines are of each type."""
        total = sum(each.share for each in self.types)
        quotas = [machines * each.share / total for each in self.types]
        counts = [int(quota) for quota in quotas]
        by_remainder = sorted(range(len(quotas)), key=lambda at: counts[at] - quotas[at])
        for at in by_remainder[: machines - sum(counts)]:
            counts[at] += 1
        return counts


SLOT_CPU = 1000  # a slot is one core, and a task requests one core by default
_DEVICES = Setting("thousandths of devices, which tasks may share", least=0, most=1e6)
PODS = 110  # the kubelet's default, used if resources are given without pods


@dataclass(frozen=True)
class TaintField:
    """A taint, written as on a node."""

    key: str
    value: str = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = "NoSchedule"


@dataclass(frozen=True)
class TolerationField:
    """A toleration, written as on a pod."""

    key: str = ""
    operator: Literal["Equal", "Exists"] = "Equal"
    value: str = ""
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] = ""


@dataclass(frozen=True)
class MachineGroup:
    """A group of identical machines."""

    count: int = setting(1, "how many machines", least=1, most=100_000)
    name: str = setting("", "name in reports and events; g0, g1, … by default")
    slots: int = setting(1, "tasks that run at a time, one core each", least=1, most=100_000)
    resources: dict[str, object] | None = setting(
        None, "allocatable resources as on a node, instead of slots"
    )
    speed: float = setting(
        1.0, "work done per second in one slot: a task runs for its size over this", least=1e-6, most=1e6
    )
    speeds: dict[str, float] = setting(
        {}, "speed of single classes of work, instead of `speed`", least=1e-6, most=1e6
    )
    labels: dict[str, str] = setting({}, "labels of the nodes")
    taints: tuple[TaintField, ...] = ()

    @property
    def allocatable(self) -> Amounts:
        """The allocatable resources of each machine. Raises SettingsError."""
        if self.resources is None:
            return (("cpu", SLOT_CPU * self.slots), ("pods", self.slots))
        return read_amounts({"pods": PODS, **self.resources}, "resources")

    def node(self, name: str, properties: Mapping[str, str] = MappingProxyType({})) -> Node:
        """The node of one of the machines, as the API server would show it; `properties` are more labels."""
        labels = {"kubernetes.io/hostname": name, **properties, **self.labels}
        taints = tuple(Taint(each.key, each.value, each.effect) for each in self.taints)
        return Node(name, self.allocatable, tuple(sorted(labels.items())), taints)


@dataclass(frozen=True)
class ClusterSettings:
    """All machines, and the network delay between them and the scheduler."""

    groups: tuple[MachineGroup, ...] = ()
    machine_types: MachineTypes | None = setting(
        None, "more labels of the groups' machines, drawn from a table of types"
    )
    nodes: NodeFile | None = setting(None, "a list of machines, in addition to the groups")
    network_delay: float = setting(
        0.0, "delay of every message between scheduler and machines", unit="s", least=0, most=3600
    )

    termination_period: float = setting(
        1.0,
        "how long an evicted task runs on before its room is free; its work is lost all the same",
        why="programs that end at SIGTERM take about a second",
        unit="s",
        least=0,
        most=3600,
    )

    def __post_init__(self) -> None:
        if not self.groups and self.nodes is None:
            raise SettingsError("groups", "the cluster is empty; write at least one group such as {count: 1}")
        check_distinct((name for name, _ in self.named_groups()), "groups")
        for at, (name, group) in enumerate(self.named_groups()):
            with errors_below(f"groups[{at}]"):
                group.node(name)

    def named_groups(self) -> Iterator[tuple[str, MachineGroup]]:
        """Name and group, with default names filled in."""
        for at, group in enumerate(self.groups):
            yield group.name or f"g{at}", group

    def with_node_list(self, folder: Path) -> ClusterSettings:
        """A copy with the node list read; its path is relative to `folder`. Raises SettingsError."""
        if self.nodes is None:
            return self
        with errors_below("nodes"):
            listed = tuple(self.nodes.read(folder))
        names = self.machines().keys() & {node.name for _, node in listed}
        if names:
            what = f"{self.nodes.file} has a node {min(names)!r}"
            raise SettingsError("nodes.file", f"{what}, which is also the name of a group's machine")
        return _CompleteCluster(**{**vars(self), "listed": listed})

    def with_gains(self, gains: Sequence[Gain]) -> ClusterSettings:
        """A copy whose machines are faster for classes whose preferences they meet."""
        return _CompleteCluster(**{**vars(self), "gains": tuple(gains)}) if gains else self

    def machines(self) -> dict[str, Machine]:
        """New machines by node name, `group-number`."""
        found = {}
        count = sum(group.count for group in self.groups)
        properties = iter(self.machine_types.labels(count)) if self.machine_types else repeat({})
        for name, group in self.named_groups():
            for at, drawn in zip(range(group.count), properties, strict=False):
                node = group.node(f"{name}-{at}", drawn)
                found[node.name] = Machine(node, name, group.speed, group.speeds)
        return found


@dataclass(frozen=True)
class _CompleteCluster(ClusterSettings):
    """A cluster whose node list has been read, and which knows the gains of the workload."""

    listed: tuple[tuple[str, Node], ...] = ()  # group, node
    gains: tuple[Gain, ...] = ()

    def machines(self) -> dict[str, Machine]:
        """The machines of the groups, then those of the list under the names that it gives them."""
        speeds = self.nodes.speeds if self.nodes else {}
        found = super().machines()
        for group, node in self.listed:
            found[node.name] = Machine(node, group, speed_of(node.name, speeds), {})
        for machine in found.values() if self.gains else ():
            met = (gain for gain in self.gains if preferences_met(gain.spec, machine.node) == 1.0)
            machine.gains = {gain.workload: gain.factor for gain in met}
        return found


def read_amounts(given: dict[str, object], path: str) -> Amounts:
    """Quantities as on a node or a pod, and `gpu-milli`, as the model's amounts. Raises SettingsError."""
    texts: dict[str, str | int | float] = {}
    for name, value in given.items():
        if counted(name):
            texts[name] = value if isinstance(value, str) else repr(value)
        elif name != DEVICE_MILLI:
            known = f"write cpu, memory, {DEVICE_MILLI} or a name such as example.com/gpu"
            raise SettingsError(join(path, name), f"is not a resource that a scheduler counts; {known}")
    milli = read_value(int, _DEVICES, given.get(DEVICE_MILLI, 0), join(path, DEVICE_MILLI))
    devices = ((DEVICE_MILLI, milli),) if milli else ()
    try:
        return tuple(sorted((*amounts(parsed(texts, path), MOST), *devices)))
    except FieldError as error:
        raise SettingsError(error.field, error.problem) from None


# What disturbs machines at given times: speeds are swapped or scaled, machines fail, freeze or recover. Tasks
# fail at random.


@dataclass(frozen=True, slots=True)
class Failures:
    """Every attempt fails with the same probability, at a uniform point of its work.

    What happens to an attempt depends on its uid and the seed alone, so that all profiles meet the same
    failures, whatever the order in which they start tasks.
    """

    probability: float
    seed: int

    def share_done(self, uid: str) -> float | None:
        """The share of its work after which this attempt fails, 0..1; None if it does not."""
        fails, share = stream(self.seed, f"failure of {uid}").random(2).tolist()
        return share if fails < self.probability else None


Action = Literal["swap", "scale", "fail", "freeze", "recover"]


@dataclass(frozen=True, slots=True)
class Perturbation:
    """One perturbation. A frozen machine keeps its tasks without progress; a failed one loses them."""

    at: float
    action: Action
    machines: tuple[str, ...]
    partners: tuple[str, ...] = ()  # swap: the machines to trade speeds with
    factor: float = 1.0  # scale


@dataclass(frozen=True)
class PerturbationSettings:
    """One entry of `events:` in a scenario."""

    at: float = setting(REQUIRED, "when", unit="s", least=0)
    action: Action = REQUIRED
    group: str = setting(REQUIRED, "the machine group")
    count: int | None = setting(None, "only the first so many machines of the group", least=1)
    partner: str = setting("", "swap: the group to trade speeds with")
    factor: float = setting(1.0, "scale: new speed over old", least=1e-6, most=1e6)

    def perturbation(self, cluster: ClusterSettings) -> Perturbation:
        """The perturbation with the names of its machines. Raises SettingsError."""
        groups: dict[str, list[str]] = {}
        for name, machine in cluster.machines().items():
            groups.setdefault(machine.group, []).append(name)
        if (self.action == "swap") != bool(self.partner):
            raise SettingsError("partner", "is required by action: swap and valid only there")
        if (self.action == "scale") != (self.factor != 1.0):
            raise SettingsError("factor", "is required by action: scale (other than 1) and valid only there")
        machines = _names(groups, self.group, self.count, "group")
        partners = _names(groups, self.partner, self.count, "partner") if self.partner else ()
        return Perturbation(self.at, self.action, machines, partners, self.factor)


def apply_to_speeds(
    perturbation: Perturbation, machines: Sequence[Machine], partners: Sequence[Machine], now: float
) -> None:
    """Change the speeds; the caller reschedules the tasks' due times, and handles failed machines."""
    touched = (*machines, *partners)
    for machine in touched:
        machine.before_speed_change(now)
    match perturbation.action:
        case "swap":
            ours, theirs = ((each.own_speed, each.class_speeds) for each in (machines[0], partners[0]))
            for machine in machines:
                machine.own_speed, machine.class_speeds = theirs
            for machine in partners:
                machine.own_speed, machine.class_speeds = ours
        case "scale":
            for machine in machines:
                machine.factor *= perturbation.factor
        case "freeze":
            for machine in machines:
                machine.is_frozen = True
        case "recover":
            for machine in machines:
                machine.is_frozen, machine.factor = False, 1.0
        case "fail":
            pass  # speeds stay as they are
    for machine in touched:
        machine.after_speed_change(now)


def _names(groups: dict[str, list[str]], name: str, count: int | None, path: str) -> tuple[str, ...]:
    if name not in groups:
        raise SettingsError(path, f"{name!r} is not a group; {nearest(name, list(groups))}")
    return tuple(groups[name][:count])
