"""How long pods waited, and whether pods that started beside a probe started later than others. Pure."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import nan
from typing import Self

import msgspec
import numpy as np

from eclectus_e2e.testbed.kubelet.pod_times import PodRecord

MAX_SPARE_SHARE = 0.1  # target: probes take at most this share of the spare capacity


class WaitingPods:
    """The number of pods that were sent and had not started, at any moment."""

    def __init__(self, sent: Iterable[float], started: Iterable[float]) -> None:
        self._sent = sorted(sent)
        self._started = sorted(started)

    def at(self, moment: float) -> int:
        """Pods waiting then."""
        return bisect_right(self._sent, moment) - bisect_right(self._started, moment)


@dataclass(frozen=True)
class Stay:
    """A pod on its node. Times in seconds on one clock; of a probe `sent` equals `started`."""

    node: str
    sent: float
    started: float
    ended: float
    millicores: int


class StartTimes(msgspec.Struct, frozen=True):
    """Seconds from sending a pod's creation to its start; NaN without any pod."""

    pods: int
    mean_seconds: float
    p99_seconds: float
    most_seconds: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Self:
        """The summary of these times."""
        if not seconds:
            return cls(0, nan, nan, nan)
        p99 = float(np.quantile(seconds, 0.99))
        return cls(len(seconds), sum(seconds) / len(seconds), p99, max(seconds))


class ProbeUsage(msgspec.Struct, frozen=True):
    """What probes took, and the start times of pods with and without a probe in their room."""

    ended: int
    core_seconds: float  # of the probes' notional requests
    spare_core_seconds: float  # that real pods left
    capacity_share: float  # of all core-seconds
    spare_share: float  # of the spare ones
    met: StartTimes  # real pods that arrived while a probe ran in their room
    unmet: StartTimes  # real pods that found their room empty

    @property
    def delay_no_pod(self) -> bool:
        """Whether no pod that met a probe started later than the latest of the others."""
        return not self.met.pods or self.met.most_seconds <= self.unmet.most_seconds


def probe_usage(
    pods: Sequence[Stay], probes: Sequence[Stay], room: Mapping[str, int], seconds: float
) -> ProbeUsage:
    """What probes took in `seconds`. `room`: millicores of each node."""
    capacity, taken = sum(room.values()) / 1000 * seconds, core_seconds(probes)
    spare = capacity - core_seconds(pods)
    met, unmet = start_times(pods, probes, room)
    return ProbeUsage(
        ended=len(probes),
        core_seconds=taken,
        spare_core_seconds=spare,
        capacity_share=taken / capacity,
        spare_share=taken / spare,
        met=met,
        unmet=unmet,
    )


def stays(
    entries: Iterable[PodRecord],
    sent: Mapping[str, float],
    millicores: Mapping[str, int],
    probe_millicores: int,
) -> tuple[list[Stay], list[Stay]]:
    """Everything that ran: real pods, which are those in `sent`, then probes."""
    pods, probes = [], []
    for one in entries:
        if one.started and one.name in sent:
            pods.append(Stay(one.node, sent[one.name], one.started, one.finished, millicores[one.name]))
        elif one.started:
            probes.append(Stay(one.node, one.started, one.started, one.finished, probe_millicores))
    return pods, probes


def core_seconds(stays: Iterable[Stay]) -> float:
    """Cores taken, summed over time."""
    return sum((stay.ended - stay.started) * stay.millicores / 1000 for stay in stays)


def start_times(
    pods: Sequence[Stay], probes: Sequence[Stay], room: Mapping[str, int]
) -> tuple[StartTimes, StartTimes]:
    """Start times of pods that met a probe, and of pods that met none.

    Pods for which other real pods left no room at some time before their start are left out, because they
    waited for those. A pod meets a probe if one runs on its node between its creation and its start, and the
    two do not fit there together. `room`: millicores of each node.
    """
    met: list[float] = []
    unmet: list[float] = []
    for pod in pods:
        others = [one for one in pods if one.node == pod.node and one is not pod]
        left = room[pod.node] - pod.millicores - _peak_millicores(others, pod.sent, pod.started)
        if left < 0:
            continue
        probes_here = [one for one in probes if one.node == pod.node]
        is_met = left < _peak_millicores(probes_here, pod.sent, pod.started)
        (met if is_met else unmet).append(pod.started - pod.sent)
    return StartTimes.of(met), StartTimes.of(unmet)


def start_times_text(found: StartTimes) -> str:
    """Mean, maximum and number, for a table."""
    if not found.pods:
        return "none"
    return f"{found.mean_seconds:.2f} s, {found.most_seconds:.2f} s at most ({found.pods} pods)"


def _peak_millicores(stays: Sequence[Stay], since: float, until: float) -> int:
    """The most that was in use at a time from `since` to `until`."""
    there = [one for one in stays if one.started < until and one.ended > since]
    moments = [since, *(one.started for one in there if one.started > since)]
    return max(sum(one.millicores for one in there if one.started <= at < one.ended) for at in moments)
