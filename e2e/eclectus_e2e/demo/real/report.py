"""From what was noted on real nodes to the numbers of build/demo/real.json. Pure."""

from collections.abc import Mapping

import msgspec

from eclectus_e2e.demo.pod_waits import Probes, taken
from eclectus_e2e.demo.real.colocation import Meeting, meetings
from eclectus_e2e.demo.real.observations import Noted, Spell, Stream
from eclectus_e2e.demo.real.plan import Plan
from eclectus_e2e.demo.real.prediction import predicted_seconds
from eclectus_e2e.demo.stream.report import OURS, RIVAL, Spread, spread


class Node(msgspec.Struct, frozen=True):
    """One node: what its pods may use, what was believed, on the same scale, and from how many samples."""

    node: str
    quota: float  # of one core
    learned: float | None
    off: float | None  # relative error: -0.1 is a tenth too slow
    samples: int


class Answer(msgspec.Struct, frozen=True):
    """One scheduler's stream. A response time ends when the pod's end is seen by a watch."""

    pods: int
    lost: int  # never came to their end
    failed: int
    response_seconds: Spread
    by_node: dict[str, int]
    probes: Probes | None  # beside it; a node has as many cores as its quota. None: no pod has ended


class Half(msgspec.Struct, frozen=True):
    """A set of quotas: how it was learned, and how pods fared under it."""

    learned_seconds: float | None  # until all nodes were within a third; None: never
    predicted_seconds: float | None  # of those; None: from nothing, or the first were never learned
    nodes: list[Node]
    schedulers: dict[str, Answer]
    mean_ratio: float  # Eclectus' response time as a share of kube-scheduler's
    p99_ratio: float


class RealReport(msgspec.Struct, frozen=True, kw_only=True):
    """The file."""

    seed: int
    load: float
    units: int
    seconds: float
    first: Half  # learned from nothing, by probes alone: `samples` are probes
    again: Half  # after the quotas had changed
    meetings: list[Meeting]  # do probes delay anybody?
    strays: int  # pods of the meetings that were lost or failed

    @property
    def sound(self) -> bool:
        """Whether every pod came to a good end."""
        answers = [*self.first.schedulers.values(), *self.again.schedulers.values()]
        return not self.strays and not any(one.lost or one.failed for one in answers)


def report(noted: Noted, plan: Plan) -> RealReport:
    """Judge the act."""
    predicted = predicted_seconds(noted.instants, noted.spells[0], plan.changed)
    first, again = (
        _half(spell, noted, seconds) for spell, seconds in zip(noted.spells, (None, predicted), strict=True)
    )
    return RealReport(
        seed=plan.seed,
        load=plan.load,
        units=plan.units,
        seconds=plan.seconds,
        first=first,
        again=again,
        meetings=meetings(noted, plan.changed),
        strays=noted.beside.strays + noted.alone.strays,
    )


def _half(spell: Spell, noted: Noted, predicted: float | None) -> Half:
    """What was believed when all was learned; if it never was, at the end."""
    found = spell.learned or noted.instants[-1]
    nodes = [
        Node(one.node, one.true, one.learned, one.error, one.samples) for one in found.speeds(spell.quotas)
    ]
    answers = {name: _answer(stream, noted, spell.quotas) for name, stream in spell.streams.items()}
    ours, theirs = answers[OURS].response_seconds, answers[RIVAL].response_seconds
    return Half(
        learned_seconds=spell.learned.at - spell.since if spell.learned else None,
        predicted_seconds=predicted,
        nodes=nodes,
        schedulers=answers,
        mean_ratio=ours.mean / theirs.mean,
        p99_ratio=ours.p99 / theirs.p99,
    )


def _answer(stream: Stream, noted: Noted, quotas: Mapping[str, float]) -> Answer:
    nodes = [node for node, _ in stream.ended.values()]
    return Answer(
        pods=stream.planned,
        lost=stream.planned - len(stream.ended),
        failed=len(stream.failed),
        response_seconds=spread([at - stream.sent[name] for name, (_, at) in stream.ended.items()]),
        by_node={node: nodes.count(node) for node in quotas},
        probes=_beside(stream, noted, quotas),
    )


def _beside(stream: Stream, noted: Noted, quotas: Mapping[str, float]) -> Probes | None:
    if not stream.ended:
        return None
    room = {node: round(1000 * quota) for node, quota in quotas.items()}
    seconds = stream.over - stream.began
    return taken(stream.stays(room), noted.probes_beside(stream, room), room, seconds)
