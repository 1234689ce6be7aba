"""What became of learning, of the swap, of the frozen node and of the idle one. Pure.

All `seconds` count from the event that each is about; None: it did not come to pass.
"""

from collections.abc import Sequence

import msgspec

from eclectus_e2e.demo.perturbations.plan import IDLE, Layout
from eclectus_e2e.demo.perturbations.prediction import Prediction
from eclectus_e2e.demo.perturbations.timeline import Observations
from eclectus_e2e.demo.perturbations.truth import (
    Pair,
    RatesAt,
    Truth,
    first_learned,
    judged_pairs,
    node_speeds,
    share_within_third,
)
from eclectus_e2e.demo.pod_waits import WaitingPods
from eclectus_e2e.demo.speeds import TOLERANCE
from eclectus_e2e.demo.workload.arrivals import WorkClass
from eclectus_e2e.testbed.kubelet.journal import Entry


class LearningInterval(msgspec.Struct, frozen=True):
    """Cells with enough samples at the end of a spell, and how well they are known."""

    cells: int
    share: float  # of them within a third at the end
    seconds: float | None  # until enough of them first were


class RecoveryInterval(msgspec.Struct, frozen=True):
    """The same of the spell after the swap; and when the work had recovered from it.

    That is when as large a share of the pods goes to cells that are right, and no more pods wait than before:
    a node that has become fast is seldom used, so its cells are found late, and few pods suffer.
    """

    cells: int
    share: float
    learned_seconds: float | None
    seconds: float | None
    predicted_seconds: float


class FrozenNode(msgspec.Struct, frozen=True):
    """The node whose work stood still, and which then thawed."""

    node: str
    cut_off_seconds: float  # predicted
    last_start_seconds: float  # of a real pod; 0: none after the frost came
    dead_seconds: float | None
    starts_while_out: int  # of real pods, from its death to the end of the first probe after the thaw
    back_seconds: float | None  # from the thaw until it counts as live
    probes: int  # that ended there in that time
    pods: int  # real ones that did


class IdleNode(msgspec.Struct, frozen=True):
    """The node that real pods may not use."""

    true: float
    learned: float | None
    probes: int
    pods: int

    @property
    def within_third(self) -> bool:
        """Whether it is known."""
        return self.learned is not None and abs(self.learned / self.true - 1) <= TOLERANCE


class Intervals:
    """What was noted, ready to be asked."""

    def __init__(self, noted: Observations, cast: Layout, classes: Sequence[WorkClass]) -> None:
        self._noted, self._cast, self._classes = noted, cast, classes
        self.truth = Truth(noted.changes)
        self.pods = [one for one in noted.entries if one.name in noted.sent.at]
        self.probes = [one for one in noted.entries if one.name not in noted.sent.at]
        started = [one.started for one in self.pods if one.started]
        self.waiting = WaitingPods(noted.sent.at.values(), started)

    def learnt(self) -> LearningInterval:
        """From the first pod to the swap."""
        return LearningInterval(*self._spell(self._noted.sent.began, self._noted.marks["swap"]))

    def recovered(self, expected: Prediction) -> RecoveryInterval:
        """From the swap to the frost."""
        marks, pods = self._noted.marks, self.pairs(self._noted.marks["freeze"])
        cells, share, learned = self._spell(marks["swap"], marks["freeze"])
        before = [self.waiting.at(one.at) for one in self._noted.readings if one.at < marks["swap"]]
        usual = max(before[len(before) // 2 :])
        calm = [
            one for one in self._between(marks["swap"], marks["freeze"]) if self.waiting.at(one.at) <= usual
        ]
        both = first_learned(calm, pods, self.truth)
        seconds = None if both is None else both - marks["swap"]
        return RecoveryInterval(cells, share, learned, seconds, expected.recovery)

    def frozen(self, expected: Prediction) -> FrozenNode:
        """From the frost on."""
        marks, node = self._noted.marks, self._cast.frozen
        starts = [one.started for one in self.pods if one.node == node and one.started]
        in_vain = [at - marks["freeze"] for at in starts if marks["freeze"] < at < marks["thaw"]]
        dead = self._turned("dead", marks["freeze"], marks["thaw"])
        back = None if dead is None else self._turned("live", marks["thaw"], marks["over"])
        until = marks["over"] if back is None else back
        probes = _ended(self.probes, node, marks["thaw"], until)
        sign = min((one.finished for one in probes), default=until)
        return FrozenNode(
            node=node,
            cut_off_seconds=expected.cut_off,
            last_start_seconds=max(in_vain, default=0.0),
            dead_seconds=None if dead is None else dead - marks["freeze"],
            starts_while_out=sum((dead or marks["freeze"]) < at < sign for at in starts),
            back_seconds=None if back is None else back - marks["thaw"],
            probes=len(probes),
            pods=len(_ended(self.pods, node, marks["thaw"], until)),
        )

    def idle(self) -> IdleNode:
        """All the time."""
        end = node_speeds(self._noted.readings[-1], self.truth)
        node = next(one for one in end if one.node == IDLE)
        probes = _ended(self.probes, IDLE, 0.0, self._noted.marks["over"])
        return IdleNode(node.true, node.learned, len(probes), sum(one.node == IDLE for one in self.pods))

    def pairs(self, until: float) -> dict[Pair, int]:
        """The cells that are judged for a spell that ends then, and the pods that ran there."""
        return judged_pairs(self.pods, self.truth, self._classes, until)

    def _spell(self, since: float, until: float) -> tuple[int, float, float | None]:
        pairs, instants = self.pairs(until), self._between(since, until)
        cells = dict.fromkeys(pairs, 1)
        first = first_learned(instants, cells, self.truth)
        share = share_within_third(instants[-1], cells, self.truth)
        return len(pairs), share, None if first is None else first - since

    def _between(self, since: float, until: float) -> list[RatesAt]:
        return [one for one in self._noted.readings if since <= one.at <= until]

    def _turned(self, state: str, since: float, until: float) -> float | None:
        """When the frozen node first counted as that."""
        found = (one.at for one in self._between(since, until) if one.state(self._cast.frozen) == state)
        return next(found, None)


def _ended(entries: Sequence[Entry], node: str, since: float, until: float) -> list[Entry]:
    there = (one for one in entries if one.node == node and one.outcome == "succeeded")
    return [one for one in there if since < one.finished <= until]
