"""Times of pods by what they demand of their node: nothing, a preference, or a hard constraint. Pure."""

from collections.abc import Mapping, Sequence

import msgspec

from eclectus_e2e.demo.stream.summary import Summary, summarise
from eclectus_e2e.demo.workload.arrivals import Arrival
from eclectus_e2e.testbed.kubelet.pod_times import PodRecord

FREE, PREFERRING, CONSTRAINED = "free", "preferring", "constrained"
GROUPS = (FREE, PREFERRING, CONSTRAINED)  # every pod is in exactly one; the others are parts of these


class GroupTimes(msgspec.Struct, frozen=True):
    """Timed pods of one group."""

    pods: int
    response_seconds: Summary  # from sending the creation to the end of the work
    wait_seconds: Summary  # from sending the creation to the start of the work


def group(arrival: Arrival) -> str:
    """Which of GROUPS a pod is in."""
    if arrival.constraint is None:
        return FREE
    return CONSTRAINED if arrival.constraint.is_hard else PREFERRING


def times_by_group(
    entries: Sequence[PodRecord], arrivals: Mapping[str, Arrival], sent: Mapping[str, float]
) -> dict[str, GroupTimes]:
    """GROUPS, then each constraint by its text; both only where there are pods. Arrivals are by pod name."""
    members: dict[str, list[PodRecord]] = {name: [] for name in GROUPS}
    parts: dict[str, list[PodRecord]] = {}
    for entry in entries:
        arrival = arrivals[entry.name]
        members[group(arrival)].append(entry)
        if arrival.constraint is not None:
            parts.setdefault(arrival.constraint.text, []).append(entry)
    return {
        name: GroupTimes(
            len(found),
            summarise([entry.finished - sent[entry.name] for entry in found]),
            summarise([entry.started - sent[entry.name] for entry in found]),
        )
        for name, found in {**members, **dict(sorted(parts.items()))}.items()
        if found
    }
