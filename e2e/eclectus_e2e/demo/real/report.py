"""From observations on real nodes to the figures of build/demo/real.json. Pure.

docs/demo.md describes the fields. Figures of paired runs have a 95 % confidence interval, by Student's t over
the pairs. Co-location trials ask whether a probe delays a real pod on its node: pairs of the same pod go to
each node, one while a probe runs there, one while none does, and the next pair the other way round. Each asks
for all cores of its node, so it would wait if the probe's requests were not zero.
"""

from collections.abc import Mapping, Sequence

import msgspec

from eclectus.policies.rosella import RosellaLearn
from eclectus_e2e.demo.pod_waits import ProbeUsage, probe_usage
from eclectus_e2e.demo.real.observations import Observations, QuotaInterval, RatesAt, Stream
from eclectus_e2e.demo.real.plan import SCHEDULER_NAMES, Plan
from eclectus_e2e.demo.schedulers import ECLECTUS, KUBE_SCHEDULER
from eclectus_e2e.demo.speeds import samples_until_alarm
from eclectus_e2e.demo.stream.report import Summary, summarise
from eclectus_e2e.pairs import Interval, mean_interval, ratio_interval

# Of pods and probes: a class of its own, so that they are no samples of the streams' class.
TRIAL_CLASS = "colocation"
POD_UNITS_SHARE = 0.25  # units of a pod, as a share of the plan's
PROBE_UNITS_FACTOR = 20.0  # units of a probe, times the plan's: it outlasts the pods of two pairs


class PodTimes(msgspec.Struct, frozen=True):
    """Times of one node's pods; `start`: from being sent to running, `run`: from there to the end."""

    pods: int
    start_seconds: float  # mean
    start_most_seconds: float
    run_seconds: float  # mean


class ColocationTrials(msgspec.Struct, frozen=True, kw_only=True):
    """One node's pods beside a probe and alone; differences are of pairs, positive where probes delay."""

    node: str
    quota: float
    beside: PodTimes | None  # None: no pod
    alone: PodTimes | None
    start_difference_seconds: Interval
    run_difference_seconds: Interval


class _Trial(msgspec.Struct, frozen=True):
    """One pod's times."""

    start_seconds: float
    run_seconds: float

    @property
    def seconds(self) -> float:
        """From being sent to the end."""
        return self.start_seconds + self.run_seconds


def trial_name(node: str, trial: int, *, is_probed: bool) -> str:
    """The name of a pod of one pair."""
    return f"{'beside' if is_probed else 'alone'}-{node}-{trial}"


def colocation_trials(
    observations: Observations, quotas: Mapping[str, float], trials: int
) -> list[ColocationTrials]:
    """The trials of every node; a pod beside which no probe ran, though one should have, is left out."""
    return [
        _of_node(
            node, quota, *(_node_trials(observations, node, trials, is_probed=each) for each in (True, False))
        )
        for node, quota in quotas.items()
    ]


def colocation_ratio(observations: Observations, quotas: Mapping[str, float], trials: int) -> Interval:
    """Response time beside a probe over that without one, of the pairs of all nodes."""
    ratios = []
    for node in quotas:
        beside, alone = (_node_trials(observations, node, trials, is_probed=each) for each in (True, False))
        ratios += [beside[trial].seconds / alone[trial].seconds for trial in beside.keys() & alone.keys()]
    return ratio_interval(ratios)


def _of_node(
    node: str, quota: float, beside: Mapping[int, _Trial], alone: Mapping[int, _Trial]
) -> ColocationTrials:
    pairs = [(beside[trial], alone[trial]) for trial in sorted(beside.keys() & alone.keys())]
    return ColocationTrials(
        node=node,
        quota=quota,
        beside=_pod_times(list(beside.values())),
        alone=_pod_times(list(alone.values())),
        start_difference_seconds=mean_interval([one.start_seconds - two.start_seconds for one, two in pairs]),
        run_difference_seconds=mean_interval([one.run_seconds - two.run_seconds for one, two in pairs]),
    )


def _node_trials(observations: Observations, node: str, trials: int, *, is_probed: bool) -> dict[int, _Trial]:
    """A node's pods that ended, by the number of their pair."""
    stream = observations.colocated if is_probed else observations.alone
    names = {trial: trial_name(node, trial, is_probed=is_probed) for trial in range(trials)}
    return {
        trial: _trial(stream, name)
        for trial, name in names.items()
        if name in stream.ended and (not is_probed or _met(observations, name, node))
    }


def _met(observations: Observations, name: str, node: str) -> bool:
    """Whether a probe ran on the node when the pod was sent."""
    sent = observations.colocated.sent[name]
    return any(one.node == node and one.started < sent < one.ended for one in observations.probes.values())


def _trial(stream: Stream, name: str) -> _Trial:
    _, ended = stream.ended[name]
    return _Trial(stream.started[name] - stream.sent[name], ended - stream.started[name])


def _pod_times(trials: Sequence[_Trial]) -> PodTimes | None:
    if not trials:
        return None
    starts = [one.start_seconds for one in trials]
    runs = [one.run_seconds for one in trials]
    return PodTimes(len(trials), sum(starts) / len(starts), max(starts), sum(runs) / len(runs))


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
