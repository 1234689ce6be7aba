"""Who waited, when, and whether those who met a probe on their node started later than others. Pure."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import nan
from typing import Self

import msgspec
import numpy as np

from eclectus_e2e.testbed.kubelet.journal import Entry

MAX_SPARE_SHARE = 0.1  # of the spare capacity, wanted for probes at most


class WaitingPods:
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


class StartTimes(msgspec.Struct, frozen=True):
    """How long pods took from being sent to running, seconds; nan of none."""

    pods: int
    mean_seconds: float
    p99_seconds: float
    most_seconds: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Self:
        """Of these times."""
        if not seconds:
            return cls(0, nan, nan, nan)
        p99 = float(np.quantile(seconds, 0.99))
        return cls(len(seconds), sum(seconds) / len(seconds), p99, max(seconds))


class ProbeUsage(msgspec.Struct, frozen=True):
    """What probes took, and whom they met."""

    ended: int
    core_seconds: float  # of the room that they stood for
    spare_core_seconds: float  # what real pods left
    capacity_share: float  # of all core-seconds
    spare_share: float  # of those that real pods left
    met: StartTimes  # real pods that came while a probe ran in their room
    unmet: StartTimes  # and those that found it empty

    @property
    def delay_no_pod(self) -> bool:
        """Whether all who met a probe started as soon as others do."""
        return not self.met.pods or self.met.most_seconds <= self.unmet.most_seconds


def probe_usage(
    pods: Sequence[Stay], probes: Sequence[Stay], room: Mapping[str, int], seconds: float
) -> ProbeUsage:
    """What probes took of so many seconds. `room`: millicores of each node."""
    capacity, took = sum(room.values()) / 1000 * seconds, core_seconds(probes)
    spare = capacity - core_seconds(pods)
    met, unmet = start_times(pods, probes, room)
    return ProbeUsage(
        ended=len(probes),
        core_seconds=took,
        spare_core_seconds=spare,
        capacity_share=took / capacity,
        spare_share=took / spare,
        met=met,
        unmet=unmet,
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


def start_times(
    pods: Sequence[Stay], probes: Sequence[Stay], room: Mapping[str, int]
) -> tuple[StartTimes, StartTimes]:
    """How long pods took to start: those who met a probe, and those who met none.

    Only pods are looked at for which the other pods of their node left enough from the moment they were sent:
    they waited for nobody. One meets a probe that runs before it starts, beside which there is not enough for
    it. `room`: millicores of each node.
    """
    met: list[float] = []
    unmet: list[float] = []
    for pod in pods:
        here = [one for one in pods if one.node == pod.node and one is not pod]
        left = room[pod.node] - pod.millicores - _most_used(here, pod.sent, pod.started)
        if left < 0:
            continue
        theirs = [one for one in probes if one.node == pod.node]
        is_met = left < _most_used(theirs, pod.sent, pod.started)
        (met if is_met else unmet).append(pod.started - pod.sent)
    return StartTimes.of(met), StartTimes.of(unmet)


def start_times_text(found: StartTimes) -> str:
    """For a table."""
    if not found.pods:
        return "none"
    return f"{found.mean_seconds:.2f} s, {found.most_seconds:.2f} s at most ({found.pods} pods)"


def _most_used(stays: Sequence[Stay], since: float, until: float) -> int:
    """The most that was used at a time from `since` to `until`, millicores."""
    there = [one for one in stays if one.started < until and one.ended > since]
    moments = [since, *(one.started for one in there if one.started > since)]
    return max(sum(one.millicores for one in there if one.started <= at < one.ended) for at in moments)
