"""Does a probe delay a real pod? The same pods to each node, while a probe runs there and while none does.

Each asks for every core of its node, so that before probes borrowed their room it would have waited.
"""

from collections.abc import Mapping

import msgspec

from eclectus_e2e.demo.real.observations import Observations, Stream

PODS_PER_NODE = 4  # pods to each node, of each kind
CLASS = "meeting"  # of the pods and the probes: what they take is no sample of the act's own work
POD_UNITS_SHARE = 0.25  # of the act's units, in each pod
PROBE_UNITS_FACTOR = 20.0  # times the act's units, in each probe: none ends before it is met


class PodTimes(msgspec.Struct, frozen=True):
    """Pods of one node, means in seconds: from being sent to running, and from there to their end."""

    pods: int
    start_seconds: float
    start_most_seconds: float
    run_seconds: float


class ColocationTrials(msgspec.Struct, frozen=True):
    """One node's pods beside a probe, and alone."""

    node: str
    quota: float
    beside: PodTimes | None  # None: no pod
    alone: PodTimes | None


def colocation_trials(noted: Observations, quotas: Mapping[str, float]) -> list[ColocationTrials]:
    """Of every node; a pod that was to meet a probe, and did not, counts for nothing."""
    return [
        ColocationTrials(
            node,
            quota,
            _visits(
                noted.colocated, [name for name in _sent_to(noted.colocated, node) if _met(noted, name, node)]
            ),
            _visits(noted.alone, _sent_to(noted.alone, node)),
        )
        for node, quota in quotas.items()
    ]


def _sent_to(stream: Stream, node: str) -> list[str]:
    return [name for name, (where, _) in stream.ended.items() if where == node]


def _met(noted: Observations, name: str, node: str) -> bool:
    sent = noted.colocated.sent[name]
    return any(one.node == node and one.started < sent < one.ended for one in noted.probes.values())


def _visits(stream: Stream, names: list[str]) -> PodTimes | None:
    if not names:
        return None
    starts = [stream.started[name] - stream.sent[name] for name in names]
    runs = [stream.ended[name][1] - stream.started[name] for name in names]
    return PodTimes(len(names), sum(starts) / len(starts), max(starts), sum(runs) / len(runs))
