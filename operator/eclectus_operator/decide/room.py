"""Room on a node, as Kubernetes counts it: what is asked for, held and left. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from eclectus.kube.objects import Node, Pod
from eclectus.kube.requests import FieldError, amounts, held, parsed, requested
from eclectus.model.objects import Amounts

Room = Mapping[str, int]
"""Resource name -> thousandths of a core, bytes, or units."""

_FIELD = "status.allocatable"


def hinders(probe_uid: str, node: Node, on_it: Iterable[Pod], wanting: Iterable[Pod]) -> bool:
    """Whether one of the pods would fit on the node without the probe, and does not fit beside it.

    Of what else a pod may ask of its node only the node selector is looked at. Raises FieldError where the
    node or a pod on it cannot be read.
    """
    holders = {pod.metadata.uid: pod for pod in on_it if not _has_ended(pod)}
    if probe_uid not in holders:
        return False
    beside = left(node, holders.values())
    without = _sum(beside, _with_place(held(holders[probe_uid])), 1)
    labels = node.metadata.labels.items()
    asked = [_asked(pod) for pod in wanting if pod.spec.node_selector.items() <= labels]
    return any(each and _fits(each, without) and not _fits(each, beside) for each in asked)


def left(node: Node, on_it: Iterable[Pod]) -> Room:
    """What the pods leave of a node, below 0 where it is over-full. Raises FieldError, as above."""
    room: Room = dict(amounts(parsed(node.status.allocatable, _FIELD), _FIELD))
    for pod in on_it:
        if not _has_ended(pod):
            room = _sum(room, _with_place(held(pod)), -1)
    return room


def lacking(wanted: Amounts, room: Room) -> list[str]:
    """Of which resources less is left than wanted."""
    return [name for name, amount in wanted if amount > room.get(name, 0)]


def _has_ended(pod: Pod) -> bool:
    return pod.status.phase in ("Succeeded", "Failed")


def _asked(pod: Pod) -> Room:
    """What a pod asks for; nothing where that cannot be read, which is its scheduler's to tell it."""
    try:
        return _with_place(requested(pod).amounts)
    except FieldError:
        return {}


def _with_place(held_amounts: Amounts) -> Room:
    """Amounts, and the one place among the node's pods that every pod takes."""
    return {**dict(held_amounts), "pods": 1}


def _sum(one: Room, other: Room, sign: int) -> dict[str, int]:
    return {name: one.get(name, 0) + sign * other.get(name, 0) for name in {**one, **other}}


def _fits(asked: Room, room: Room) -> bool:
    return not lacking(tuple(asked.items()), room)
