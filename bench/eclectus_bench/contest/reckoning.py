"""What a run shows: shares held and entitled, evictions, waits and rates, from its pods' records alone."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

import msgspec

from eclectus.maths.pool_shares import level_shares


class PodRun(msgspec.Struct, frozen=True):
    """A pod that ran. Times are seconds after the contest began; `ended` may be after its end."""

    tenant: str
    started: float
    ended: float
    succeeded: bool  # otherwise it was evicted, or the contest's end ended it


class Sample(msgspec.Struct, frozen=True):
    """Slots by tenant at a second of the contest, in the order of the tenants."""

    at: float  # seconds
    held: tuple[int, ...]
    demanded: tuple[int, ...]  # held and waiting
    entitled: tuple[float, ...]  # by the formula of docs/pools.md


class Played(msgspec.Struct, frozen=True):
    """One run of one contestant, as it was observed."""

    contestant: str
    pair: int
    tenants: tuple[str, ...]  # the last one comes late
    slots: int
    minimum: int  # slots of each tenant
    measured_from: float  # seconds
    ends: float  # seconds
    pods_of_a_job: int
    submitted: Mapping[str, Sequence[float]]  # seconds, of each Job, by tenant
    pods: Sequence[PodRun]
    burst_starts: Sequence[float]  # seconds after the first Job of the burst was submitted
    cpu_seconds: Mapping[str, float]  # by process, of the contest
    strangers_cores: float  # that processes outside of the bench used meanwhile


class Outcome(msgspec.Struct, frozen=True):
    """The figures of a run. None: it did not come to that."""

    furthest_percent: float  # of the tenant whose mean is furthest from its share, of the share
    astray_percent: float  # slots that a tenant holds above its share, mean over seconds, of all
    jain: float
    in_use_percent: float
    first_start_seconds: float | None
    minimum_seconds: float | None
    evictions: int
    lost_seconds: float  # of work of evicted pods
    starts_a_second: float
    burst_a_second: float
    scheduler_cpu_seconds: float
    plane_cpu_seconds: float


PLANE = ("kube-apiserver", "etcd", "kube-controller-manager")
SCHEDULERS = ("eclectus", "kueue", "kube-scheduler")


def outcome(played: Played) -> Outcome:
    """Reckon up a run. Means are over the seconds from `measured_from` to the end."""
    samples = list(measured(played))
    means = [fmean(values) for values in zip(*(each.held for each in samples), strict=True)]
    due = [fmean(values) for values in zip(*(each.entitled for each in samples), strict=True)]
    parts = [held / share for held, share in zip(means, due, strict=True) if share]
    lost = evicted(played)
    in_window = [each for each in played.pods if played.measured_from <= each.started < played.ends]
    cpu = played.cpu_seconds
    return Outcome(
        furthest_percent=100 * max(abs(part - 1.0) for part in parts),
        astray_percent=100 * fmean(_astray(each) for each in samples) / played.slots,
        jain=jain(parts),
        in_use_percent=100 * sum(means) / played.slots,
        first_start_seconds=first_start(played),
        minimum_seconds=minimum_held(played),
        evictions=len(lost),
        lost_seconds=sum(each.ended - each.started for each in lost),
        starts_a_second=len(in_window) / (played.ends - played.measured_from),
        burst_a_second=rate(played.burst_starts),
        scheduler_cpu_seconds=sum(spent for name, spent in cpu.items() if name in SCHEDULERS),
        plane_cpu_seconds=sum(spent for name, spent in cpu.items() if name in PLANE),
    )


def measured(played: Played) -> Iterator[Sample]:
    """The samples of each second that counts."""
    first, last = int(played.measured_from), int(played.ends)
    return (sample(played, float(at)) for at in range(first, last))


def sample(played: Played, at: float) -> Sample:
    """What each tenant holds, demands and is entitled to at a moment."""
    held = [
        sum(each.started <= at < each.ended for each in played.pods if each.tenant == tenant)
        for tenant in played.tenants
    ]
    demanded = [_demanded(played, tenant, at) for tenant in played.tenants]
    minima, weights = [float(played.minimum)] * len(held), [1.0] * len(held)
    entitled = level_shares(float(played.slots), [float(each) for each in demanded], minima, weights)
    return Sample(at, tuple(held), tuple(demanded), tuple(entitled))


def _demanded(played: Played, tenant: str, at: float) -> int:
    """Pods of its Jobs that have not succeeded."""
    done = sum(each.succeeded and each.ended <= at for each in played.pods if each.tenant == tenant)
    return played.pods_of_a_job * bisect_right(played.submitted[tenant], at) - done


def _astray(at: Sample) -> float:
    return sum(max(0.0, held - share) for held, share in zip(at.held, at.entitled, strict=True))


def jain(parts: Sequence[float]) -> float:
    """Jain's index: 1 if all are equal, down to 1 over their number."""
    squares = sum(part * part for part in parts)
    return sum(parts) ** 2 / (len(parts) * squares) if squares else 0.0


def evicted(played: Played) -> list[PodRun]:
    """The pods that were ended before their work was done, and before the contest's end."""
    return [each for each in played.pods if not each.succeeded and each.ended < played.ends]


def first_start(played: Played) -> float | None:
    """From the late tenant's first Job to its first start: seconds."""
    late = played.tenants[-1]
    starts = [each.started for each in played.pods if each.tenant == late and each.started < played.ends]
    return min(starts) - played.submitted[late][0] if starts else None


def minimum_held(played: Played) -> float | None:
    """From the late tenant's first Job until it holds its minimum: seconds."""
    late, held = played.tenants[-1], 0
    changes = sorted(
        change
        for each in played.pods
        if each.tenant == late
        for change in ((each.started, 1), (each.ended, -1))
    )
    for at, change in changes:
        held += change
        if held >= played.minimum and at < played.ends:
            return at - played.submitted[late][0]
    return None


def rate(starts: Sequence[float]) -> float:
    """Starts a second from the first to the last."""
    return (len(starts) - 1) / (max(starts) - min(starts))
