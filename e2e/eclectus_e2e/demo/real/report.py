"""From what was noted on real nodes to the numbers of build/demo/real.json. Pure."""

from collections.abc import Mapping

import msgspec

from eclectus_e2e.demo.pod_waits import ProbeUsage, probe_usage
from eclectus_e2e.demo.real.colocation import ColocationTrials, colocation_trials
from eclectus_e2e.demo.real.observations import Observations, QuotaInterval, Stream
from eclectus_e2e.demo.real.plan import Plan
from eclectus_e2e.demo.real.prediction import predicted_seconds
from eclectus_e2e.demo.stream.report import ECLECTUS, KUBE_SCHEDULER, Summary, summarise


class Node(msgspec.Struct, frozen=True):
    """One node: what its pods may use, what was believed, on the same scale, and from how many samples."""

    node: str
    quota: float  # of one core
    learned: float | None
    off: float | None  # relative error: -0.1 is a tenth too slow
    samples: int


class StreamResult(msgspec.Struct, frozen=True):
    """One scheduler's stream. A response time ends when the pod's end is seen by a watch."""

    pods: int
    lost: int  # never came to their end
    failed: int
    response_seconds: Summary
    by_node: dict[str, int]
    probes: ProbeUsage | None  # beside it; a node has as many cores as its quota. None: no pod has ended


class QuotaReport(msgspec.Struct, frozen=True):
    """A set of quotas: how it was learned, and how pods fared under it."""

    learned_seconds: float | None  # until all nodes were within a third; None: never
    predicted_seconds: float | None  # of those; None: from nothing, or the first were never learned
    nodes: list[Node]
    schedulers: dict[str, StreamResult]
    mean_ratio: float  # Eclectus' response time as a share of kube-scheduler's
    p99_ratio: float


class RealReport(msgspec.Struct, frozen=True, kw_only=True):
    """The file."""

    seed: int
    load: float
    units: int
    seconds: float
    first: QuotaReport  # learned from nothing, by probes alone: `samples` are probes
    again: QuotaReport  # after the quotas had changed
    meetings: list[ColocationTrials]  # do probes delay anybody?
    strays: int  # pods of the meetings that were lost or failed

    @property
    def sound(self) -> bool:
        """Whether every pod came to a good end."""
        answers = [*self.first.schedulers.values(), *self.again.schedulers.values()]
        return not self.strays and not any(one.lost or one.failed for one in answers)


def report(noted: Observations, plan: Plan) -> RealReport:
    """Judge the act."""
    predicted = predicted_seconds(noted.readings, noted.intervals[0], plan.changed)
    first, again = (
        _half(spell, noted, seconds)
        for spell, seconds in zip(noted.intervals, (None, predicted), strict=True)
    )
    return RealReport(
        seed=plan.seed,
        load=plan.load,
        units=plan.units,
        seconds=plan.seconds,
        first=first,
        again=again,
        meetings=colocation_trials(noted, plan.changed),
        strays=noted.colocated.lost_or_failed + noted.alone.lost_or_failed,
    )


def _half(spell: QuotaInterval, noted: Observations, predicted: float | None) -> QuotaReport:
    """What was believed when all was learned; if it never was, at the end."""
    found = spell.learned or noted.readings[-1]
    nodes = [
        Node(one.node, one.true, one.learned, one.error, one.samples) for one in found.speeds(spell.quotas)
    ]
    answers = {name: _answer(stream, noted, spell.quotas) for name, stream in spell.streams.items()}
    ours, theirs = answers[ECLECTUS].response_seconds, answers[KUBE_SCHEDULER].response_seconds
    return QuotaReport(
        learned_seconds=spell.learned.at - spell.since if spell.learned else None,
        predicted_seconds=predicted,
        nodes=nodes,
        schedulers=answers,
        mean_ratio=ours.mean / theirs.mean,
        p99_ratio=ours.p99 / theirs.p99,
    )


def _answer(stream: Stream, noted: Observations, quotas: Mapping[str, float]) -> StreamResult:
    nodes = [node for node, _ in stream.ended.values()]
    return StreamResult(
        pods=stream.planned,
        lost=stream.planned - len(stream.ended),
        failed=len(stream.failed),
        response_seconds=summarise([at - stream.sent[name] for name, (_, at) in stream.ended.items()]),
        by_node={node: nodes.count(node) for node in quotas},
        probes=_beside(stream, noted, quotas),
    )


def _beside(stream: Stream, noted: Observations, quotas: Mapping[str, float]) -> ProbeUsage | None:
    if not stream.ended:
        return None
    room = {node: round(1000 * quota) for node, quota in quotas.items()}
    seconds = stream.over - stream.began
    return probe_usage(stream.stays(room), noted.probes_during(stream, room), room, seconds)
