"""An independent check whether a pod may run on a node, written from Kubernetes' rules without the engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import permutations

from eclectus.model.objects import Amounts, HostPort, Node, Spec, Taint, Task, Toleration


def refusal(task: Task, node: Node | None, placed: Iterable[Task]) -> str:
    """Why the pod may not be placed on this node beside the placed pods; empty if it may."""
    return unfit(task.spec, node) or crowded(task.spec, node, list(placed))  # type: ignore[arg-type]


def unfit(  # noqa: PLR0911 — one line a rule reads best
    spec: Spec, node: Node | None
) -> str:
    """Why the pod could not run on the node even if it were empty; empty if it could."""
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


def crowded(spec: Spec, node: Node, placed: list[Task]) -> str:
    """What is missing on the node beside the placed pods; empty if the pod fits."""
    free = Counter(dict(node.allocatable))
    for pod in placed:
        free.subtract(dict(pod.holding))
        free["pods"] -= 1
    if free["pods"] < 1:
        return "too many pods"
    for name, amount in spec.requests:
        if amount > free[name]:
            return f"insufficient {name}"
    if not _packs(spec, node, placed):
        return "devices"
    held = [port for pod in placed for port in pod.spec.host_ports]
    return "ports" if any(_clash(port, other) for port in spec.host_ports for other in held) else ""


def overfull(node: Node, placed: list[Task]) -> str:
    """A resource of which the placed pods hold more than the node has; empty if there is none."""
    held: Counter[str] = Counter({"pods": len(placed)})
    for pod in placed:
        held.update(dict(pod.holding))
    room = dict(node.allocatable)
    return next((name for name, amount in sorted(held.items()) if amount > room.get(name, 0)), "")


def devices_left(node: Node, placed: Iterable[Task]) -> dict[int, int]:
    """Free thousandths of each device beside the placed pods; below 0 if they hold more than it has."""
    left = dict(enumerate(_parts(node.allocatable)))
    for pod in placed:
        for device, part in zip(pod.grant.devices, _parts(pod.holding), strict=True):
            left[device] = left.get(device, 0) - part
    return left


def _packs(spec: Spec, node: Node, placed: list[Task]) -> bool:
    """Whether some choice of devices has room; tries all choices."""
    parts = _parts(spec.requests)
    choices = permutations(devices_left(node, placed).values(), len(parts))
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
