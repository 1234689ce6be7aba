"""A dumb judge: may this pod run there? Written from Kubernetes' rules, one pod and one node at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import permutations

from eclectus.model.objects import Amounts, HostPort, Node, Spec, Taint, Task, Toleration


def refusal(task: Task, node: Node | None, residents: Iterable[Task]) -> str:
    """Why the pod may not join these residents on this node; empty if it may."""
    return unfit(task.spec, node) or crowded(task.spec, node, list(residents))  # type: ignore[arg-type]


def unfit(  # noqa: PLR0911 — one line a rule reads best
    spec: Spec, node: Node | None
) -> str:
    """What stands against the node itself, empty as it may be."""
    if node is None:
        return "no such node"
    labels = dict(node.labels)
    if spec.unsupported:
        return "unsupported"
    if node.unschedulable:
        return "cordoned"
    if spec.node_name not in ("", node.name):
        return "another node is named"
    if any(labels.get(key) != value for key, value in spec.node_selector):
        return "labels"
    if any(not _tolerated(taint, spec.tolerations) for taint in node.taints):
        return "taints"
    return crowded(spec, node, [])


def crowded(spec: Spec, node: Node, residents: list[Task]) -> str:
    """What is short beside these residents."""
    free = Counter(dict(node.allocatable))
    for resident in residents:
        free.subtract(dict(resident.holding))
        free["pods"] -= 1
    if free["pods"] < 1:
        return "too many pods"
    for name, amount in spec.requests:
        if amount > free[name]:
            return f"insufficient {name}"
    if not _packs(spec, node, residents):
        return "devices"
    held = [port for resident in residents for port in resident.spec.host_ports]
    return "ports" if any(_clash(port, other) for port in spec.host_ports for other in held) else ""


def overfull(node: Node, residents: list[Task]) -> str:
    """The resource of which the residents hold more than there is; empty if none."""
    held: Counter[str] = Counter({"pods": len(residents)})
    for resident in residents:
        held.update(dict(resident.holding))
    room = dict(node.allocatable)
    return next((name for name, amount in sorted(held.items()) if amount > room.get(name, 0)), "")


def devices_left(node: Node, residents: Iterable[Task]) -> dict[int, int]:
    """Thousandths that the residents leave of each device; below 0 where they hold more than there is."""
    left = dict(enumerate(_parts(node.allocatable)))
    for resident in residents:
        for device, part in zip(resident.devices, _parts(resident.holding), strict=True):
            left[device] = left.get(device, 0) - part
    return left


def _packs(spec: Spec, node: Node, residents: list[Task]) -> bool:
    """Whether some choice of devices has room: all are tried."""
    parts = _parts(spec.requests)
    choices = permutations(devices_left(node, residents).values(), len(parts))
    return any(all(has >= part for has, part in zip(choice, parts, strict=True)) for choice in choices)


def _parts(amounts: Amounts) -> list[int]:
    milli = dict(amounts).get("gpu-milli", 0)
    return [min(1000, milli - first) for first in range(0, milli, 1000)]


def _tolerated(taint: Taint, tolerations: tuple[Toleration, ...]) -> bool:
    if taint.effect == "PreferNoSchedule":
        return True
    return any(
        toleration.effect in ("", taint.effect)
        and toleration.key in ("", taint.key)
        and (toleration.op == "Exists" or toleration.value == taint.value)
        for toleration in tolerations
    )


def _clash(one: HostPort, other: HostPort) -> bool:
    anywhere = HostPort(1).ip in (one.ip, other.ip)
    return (one.port, one.protocol) == (other.port, other.protocol) and (anywhere or one.ip == other.ip)
