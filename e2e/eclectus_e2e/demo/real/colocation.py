"""Co-location trials: does a probe delay a real pod on its node? Pure.

The same pods go to each node while a probe runs there, and while none does. Each asks for all cores of its
node, so it would wait if the probe's requests were not zero.
"""

from collections.abc import Mapping

import msgspec

from eclectus_e2e.demo.real.observations import Observations, Stream

PODS_PER_NODE = 4  # with a probe, and as many without
CLASS = (
    "colocation"  # of pods and probes: a class of its own, so that they are no samples of the streams' class
)
POD_UNITS_SHARE = 0.25  # units of a pod, as a share of the plan's
PROBE_UNITS_FACTOR = 20.0  # units of a probe, times the plan's: it outlasts the pods


class PodTimes(msgspec.Struct, frozen=True):
    """Times of one node's pods; `start`: from being sent to running, `run`: from there to the end."""

    pods: int
    start_seconds: float  # mean
    start_most_seconds: float
    run_seconds: float  # mean


class ColocationTrials(msgspec.Struct, frozen=True):
    """One node's pods beside a probe, and alone."""

    node: str
    quota: float
    beside: PodTimes | None  # None: no pod
    alone: PodTimes | None


def colocation_trials(observations: Observations, quotas: Mapping[str, float]) -> list[ColocationTrials]:
    """The trials of every node; a pod beside which no probe ran, though one should have, is left out."""
    colocated, alone = observations.colocated, observations.alone
    return [
        ColocationTrials(
            node,
            quota,
            _times(colocated, [one for one in _sent_to(colocated, node) if _met(observations, one, node)]),
            _times(alone, _sent_to(alone, node)),
        )
        for node, quota in quotas.items()
    ]


def _sent_to(stream: Stream, node: str) -> list[str]:
    return [name for name, (where, _) in stream.ended.items() if where == node]


def _met(observations: Observations, name: str, node: str) -> bool:
    """Whether a probe ran on the node when the pod was sent."""
    sent = observations.colocated.sent[name]
    return any(one.node == node and one.started < sent < one.ended for one in observations.probes.values())


def _times(stream: Stream, names: list[str]) -> PodTimes | None:
    if not names:
        return None
    starts = [stream.started[name] - stream.sent[name] for name in names]
    runs = [stream.ended[name][1] - stream.started[name] for name in names]
    return PodTimes(len(names), sum(starts) / len(starts), max(starts), sum(runs) / len(runs))
