"""Who waited, when, and whether it was a probe that kept a real pod from its node. Pure."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import msgspec

from eclectus_e2e.kubelet.journal import Entry

SPARE_MOST = 0.1  # of the spare capacity, wanted for probes at most


class Waiting:
    """How many pods were sent and not started, at any moment."""

    def __init__(self, sent: Iterable[float], started: Iterable[float]) -> None:
        self._sent, self._started = sorted(sent), sorted(started)

    def at(self, moment: float) -> int:
        """Pods waiting then."""
        return bisect_right(self._sent, moment) - bisect_right(self._started, moment)


@dataclass(frozen=True)
class Stay:
    """A pod on the node it got: when it was sent, when it ran there, and what it took."""

    node: str
    sent: float
    started: float
    ended: float
    millicores: int


class Probes(msgspec.Struct, frozen=True):
    """What probes took."""

    ended: int
    core_seconds: float
    spare_core_seconds: float  # what real pods left
    capacity_share: float  # of all core-seconds
    spare_share: float  # of those that real pods left
    held_up_pods: int  # real ones that waited for their node while a probe held the room they needed
    held_up_seconds: float  # the longest of these waits


def taken(pods: Sequence[Stay], probes: Sequence[Stay], room: Mapping[str, int], seconds: float) -> Probes:
    """What probes took of so many seconds. `room`: millicores of each node."""
    capacity, took = sum(room.values()) / 1000 * seconds, core_seconds(probes)
    spare = capacity - core_seconds(pods)
    held = held_up_seconds(pods, probes, room)
    return Probes(
        ended=len(probes),
        core_seconds=took,
        spare_core_seconds=spare,
        capacity_share=took / capacity,
        spare_share=took / spare,
        held_up_pods=len(held),
        held_up_seconds=max(held, default=0.0),
    )


def stays(
    entries: Iterable[Entry], sent: Mapping[str, float], millicores: Mapping[str, int], probe_millicores: int
) -> tuple[list[Stay], list[Stay]]:
    """What ran: real pods, then probes; only of real ones is it known when they were sent."""
    pods, probes = [], []
    for one in entries:
        if one.started and one.name in sent:
            stay = Stay(one.node, sent[one.name], one.started, one.finished, millicores[one.name])
            pods.append(stay)
        elif one.started:
            probes.append(Stay(one.node, one.started, one.started, one.finished, probe_millicores))
    return pods, probes


def core_seconds(stays: Iterable[Stay]) -> float:
    """Cores taken, over time."""
    return sum((stay.ended - stay.started) * stay.millicores / 1000 for stay in stays)


def held_up_seconds(pods: Sequence[Stay], probes: Iterable[Stay], room: Mapping[str, int]) -> list[float]:
    """For how long pods waited for the node they got while a probe held the room they needed.

    That is: while the node was too full for it, and without the probe would not have been. `room`:
    millicores of each node.
    """
    found = []
    for probe in probes:
        there = [pod for pod in pods if pod.node == probe.node and pod.started > probe.started]
        for pod in there:
            begin, end = max(pod.sent, probe.started), min(pod.started, probe.ended)
            if begin < end:
                others = [one for one in pods if one.node == probe.node and one is not pod]
                found.append(_held(begin, end, others, room[probe.node] - pod.millicores, probe))
    return [seconds for seconds in found if seconds > 0]


def _held(begin: float, end: float, others: Sequence[Stay], left: int, probe: Stay) -> float:
    """For how long the others had left enough, and the probe had not."""
    inside = [at for one in others for at in (one.started, one.ended) if begin < at < end]
    held = 0.0
    for since, until in pairwise(sorted([begin, end, *inside])):
        used = sum(one.millicores for one in others if one.started <= since < one.ended)
        held += until - since if left - probe.millicores < used <= left else 0.0
    return held
