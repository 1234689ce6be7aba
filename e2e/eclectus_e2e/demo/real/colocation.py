"""Does a probe delay a real pod? The same pods to each node, while a probe runs there and while none does.

Each asks for every core of its node, so that before probes borrowed their room it would have waited.
"""

from collections.abc import Mapping

import msgspec

from eclectus_e2e.demo.real.observations import Noted, Stream

ROUNDS = 4  # pods to each node, of each kind
CLASS = "meeting"  # of the pods and the probes: what they take is no sample of the act's own work
SHARE = 0.25  # of the act's units, in each pod
LONG = 20.0  # times the act's units, in each probe: none ends before it is met


class Visits(msgspec.Struct, frozen=True):
    """Pods of one node, means in seconds: from being sent to running, and from there to their end."""

    pods: int
    start_seconds: float
    start_most_seconds: float
    run_seconds: float


class Meeting(msgspec.Struct, frozen=True):
    """One node's pods beside a probe, and alone."""

    node: str
    quota: float
    beside: Visits | None  # None: no pod
    alone: Visits | None


def meetings(noted: Noted, quotas: Mapping[str, float]) -> list[Meeting]:
    """Of every node; a pod that was to meet a probe, and did not, counts for nothing."""
    return [
        Meeting(
            node,
            quota,
            _visits(noted.beside, [name for name in _sent_to(noted.beside, node) if _met(noted, name, node)]),
            _visits(noted.alone, _sent_to(noted.alone, node)),
        )
        for node, quota in quotas.items()
    ]


def _sent_to(stream: Stream, node: str) -> list[str]:
    return [name for name, (where, _) in stream.ended.items() if where == node]


def _met(noted: Noted, name: str, node: str) -> bool:
    sent = noted.beside.sent[name]
    return any(one.node == node and one.started < sent < one.ended for one in noted.probes.values())


def _visits(stream: Stream, names: list[str]) -> Visits | None:
    if not names:
        return None
    starts = [stream.started[name] - stream.sent[name] for name in names]
    runs = [stream.ended[name][1] - stream.started[name] for name in names]
    return Visits(len(names), sum(starts) / len(starts), max(starts), sum(runs) / len(runs))
