"""From observations on real nodes to the figures of build/demo/real.json. Pure.

docs/demo.md describes the fields.
"""

from collections.abc import Mapping, Sequence

import msgspec

from eclectus.policies.rosella import RosellaLearn
from eclectus_e2e.demo.pairs import Interval, ratio_interval
from eclectus_e2e.demo.pod_waits import ProbeUsage, probe_usage
from eclectus_e2e.demo.real.colocation import ColocationTrials, colocation_ratio, colocation_trials
from eclectus_e2e.demo.real.observations import Observations, QuotaInterval, RatesAt, Stream
from eclectus_e2e.demo.real.plan import SCHEDULER_NAMES, Plan
from eclectus_e2e.demo.schedulers import ECLECTUS, KUBE_SCHEDULER
from eclectus_e2e.demo.speeds import samples_until_alarm
from eclectus_e2e.demo.stream.summary import Summary, summarise

TARGETS = {"mean": 0.8, "p99": 0.7}  # of Eclectus' response times, as shares of kube-scheduler's


class Node(msgspec.Struct, frozen=True):
    """One node: its quota, the learned speed on the same scale, and the number of samples."""

    node: str
    quota: float  # of one core
    learned: float | None
    off: float | None  # relative error: -0.1 is a tenth too slow
    samples: int


class StreamResult(msgspec.Struct, frozen=True):
    """One scheduler's streams of all pairs. A response time ends when a watch sees the pod's end."""

    pods: int
    lost: int  # never ended
    failed: int
    response_seconds: Summary
    by_node: dict[str, int]
    probes: list[ProbeUsage]  # during each stream in which a pod ended; a node has as many cores as its quota


class PairRatios(msgspec.Struct, frozen=True):
    """One pair: Eclectus' response times as shares of kube-scheduler's; lower is better."""

    first: str  # the scheduler whose stream was sent first
    mean: float
    p50: float
    p99: float


class QuotaReport(msgspec.Struct, frozen=True):
    """One set of quotas: how it was learned, and the streams under it."""

    learned_seconds: float | None  # until all nodes were within a third; None: never
    predicted_seconds: float | None  # None: with nothing known before, or the first quotas were never learned
    nodes: list[Node]
    schedulers: dict[str, StreamResult]
    pairs: list[PairRatios]
    mean_ratio: Interval  # over the pairs
    p50_ratio: Interval
    p99_ratio: Interval


class RealReport(msgspec.Struct, frozen=True, kw_only=True):
    """The file."""

    seed: int
    load: float
    units: int
    pods: int  # of each stream
    first: QuotaReport  # learned by probes alone, so `samples` are probes
    again: QuotaReport  # after the quotas had changed
    colocation: list[ColocationTrials]
    colocation_ratio: (
        Interval  # response time beside a probe over that without one, over the pairs of all nodes
    )
    strays: int  # pods of the co-location trials that were lost or failed

    @property
    def sound(self) -> bool:
        """Whether every pod succeeded."""
        streams = [*self.first.schedulers.values(), *self.again.schedulers.values()]
        return not self.strays and not any(one.lost or one.failed for one in streams)


def make_report(plan: Plan, observations: Observations) -> RealReport:
    """Compute every figure."""
    predicted = predict_seconds(observations.readings, observations.intervals[0], plan.changed)
    first, again = (
        _quota_report(interval, observations, seconds)
        for interval, seconds in zip(observations.intervals, (None, predicted), strict=True)
    )
    return RealReport(
        seed=plan.seed,
        load=plan.load,
        units=plan.units,
        pods=plan.pods,
        first=first,
        again=again,
        colocation=colocation_trials(observations, plan.changed, plan.trials),
        colocation_ratio=colocation_ratio(observations, plan.changed, plan.trials),
        strays=observations.colocated.lost_or_failed + observations.alone.lost_or_failed,
    )


def predict_seconds(
    readings: Sequence[RatesAt], first: QuotaInterval, changed: Mapping[str, float]
) -> float | None:
    """Predicted seconds until changed quotas are learned; None where the first ones never were.

    D samples raise an alarm on a node that became four times as fast or slow (`speeds.samples_until_alarm`).
    The probe that runs during the change is of both quotas, and D more begin after it. Probes of a node come
    one after another and sooner on a faster node, so a node gets them at the pace of the node that had its
    quota before, which was T seconds a probe while the first quotas were learned:

        recovery = max over nodes of T (1 + D)
    """
    if first.learned is None:
        return None
    until = first.learned.at
    paces = {}
    for node, quota in first.quotas.items():
        seen = [(one.samples(node), one.at) for one in readings if first.since < one.at <= until]
        most = max(samples for samples, _ in seen)
        paces[quota] = (next(at for samples, at in seen if samples == most) - first.since) / most
    probes = 1 + samples_until_alarm(RosellaLearn(), classes=1)
    return max(paces[quota] for quota in changed.values()) * probes


def _quota_report(
    interval: QuotaInterval, observations: Observations, predicted: float | None
) -> QuotaReport:
    """The speeds are those at the moment when all were learned; if they never were, the last ones."""
    found = interval.learned or observations.readings[-1]
    nodes = [
        Node(one.node, one.true, one.learned, one.error, one.samples) for one in found.speeds(interval.quotas)
    ]
    results = {
        name: _stream_result(interval.streams(name), observations, interval.quotas)
        for name in SCHEDULER_NAMES
    }
    pairs = [_pair_ratios(pair) for pair in interval.pairs]
    return QuotaReport(
        learned_seconds=interval.learned.at - interval.since if interval.learned else None,
        predicted_seconds=predicted,
        nodes=nodes,
        schedulers=results,
        pairs=pairs,
        mean_ratio=ratio_interval([one.mean for one in pairs]),
        p50_ratio=ratio_interval([one.p50 for one in pairs]),
        p99_ratio=ratio_interval([one.p99 for one in pairs]),
    )


def _pair_ratios(pair: Mapping[str, Stream]) -> PairRatios:
    ours, theirs = (summarise(pair[name].response_seconds) for name in (ECLECTUS, KUBE_SCHEDULER))
    return PairRatios(next(iter(pair)), ours.mean / theirs.mean, ours.p50 / theirs.p50, ours.p99 / theirs.p99)


def _stream_result(
    streams: Sequence[Stream], observations: Observations, quotas: Mapping[str, float]
) -> StreamResult:
    nodes = [node for stream in streams for node, _ in stream.ended.values()]
    usages = [_probes_during(stream, observations, quotas) for stream in streams if stream.ended]
    return StreamResult(
        pods=sum(stream.planned for stream in streams),
        lost=sum(stream.planned - len(stream.ended) for stream in streams),
        failed=sum(len(stream.failed) for stream in streams),
        response_seconds=summarise([took for stream in streams for took in stream.response_seconds]),
        by_node={node: nodes.count(node) for node in quotas},
        probes=usages,
    )


def _probes_during(stream: Stream, observations: Observations, quotas: Mapping[str, float]) -> ProbeUsage:
    room = {node: round(1000 * quota) for node, quota in quotas.items()}
    seconds = stream.over - stream.began
    return probe_usage(stream.stays(room), observations.probes_during(stream, room), room, seconds)
