"""Figures of each interval: learning, recovery after the swap, the frozen node, the idle one.

Pure. All `seconds` count from the event that each is about; None: it did not happen.
"""

from collections.abc import Sequence

import msgspec

from eclectus_e2e.demo.perturbations.observations import Observations, RatesAt
from eclectus_e2e.demo.perturbations.plan import IDLE, Plan
from eclectus_e2e.demo.perturbations.truth import (
    Pair,
    Truth,
    first_learned,
    judged_pairs,
    node_speeds,
    share_within_third,
)
from eclectus_e2e.demo.pod_waits import WaitingPods
from eclectus_e2e.demo.speeds import TOLERANCE
from eclectus_e2e.testbed.kubelet.pod_times import PodRecord


class LearningInterval(msgspec.Struct, frozen=True):
    """The pairs (node, class) that are judged at the end of an interval, and how well they are learned."""

    pairs: int  # judged pairs
    share: float  # of them within a third at the end
    seconds: float | None  # until 95 % of them first were


class RecoveryInterval(msgspec.Struct, frozen=True):
    """The same after the swap, and when the pods had recovered from it.

    They have when 95 % of them go to pairs that are learned, and no more pods wait than before the swap.
    Pairs alone are a stricter measure: a node that has become fast is seldom used, so its pairs are learned
    late, and few pods suffer from it.
    """

    pairs: int
    share: float
    learned_seconds: float | None
    seconds: float | None
    predicted_seconds: float


class FrozenNode(msgspec.Struct, frozen=True):
    """The node whose containers stood still, and which then thawed."""

    node: str
    cut_off_seconds: float  # predicted
    last_start_seconds: float  # of a real pod; 0: none after the freeze
    dead_seconds: float | None
    starts_while_out: int  # of real pods, from its death to the end of the first probe after the thaw
    back_seconds: float | None  # from the thaw until it counts as live
    probes: int  # that succeeded there in that time
    pods: int  # real pods that succeeded there in that time


class IdleNode(msgspec.Struct, frozen=True):
    """The node that real pods may not use."""

    true: float
    learned: float | None
    probes: int
    pods: int

    @property
    def within_third(self) -> bool:
        """Whether its speed is learned."""
        return self.learned is not None and abs(self.learned / self.true - 1) <= TOLERANCE


class Intervals:
    """Computes the figures of each interval from the observations."""

    def __init__(self, plan: Plan, observations: Observations) -> None:
        self._plan, self._seen = plan, observations
        self.truth = Truth(observations.changes)
        self.pods = [one for one in observations.entries if one.name in observations.sent.at]
        self.probes = [one for one in observations.entries if one.name not in observations.sent.at]
        started = [one.started for one in self.pods if one.started]
        self.waiting = WaitingPods(observations.sent.at.values(), started)

    def learning(self) -> LearningInterval:
        """From the first pod to the swap."""
        return LearningInterval(*self._learned(self._seen.sent.began, self._seen.events["swap"]))

    def recovery(self) -> RecoveryInterval:
        """From the swap to the freeze."""
        swap, freeze = self._seen.events["swap"], self._seen.events["freeze"]
        judged, share, learned = self._learned(swap, freeze)
        before = [self.waiting.at(one.at) for one in self._seen.readings if one.at < swap]
        usual = max(before[len(before) // 2 :])
        calm = [one for one in self.readings(swap, freeze) if self.waiting.at(one.at) <= usual]
        recovered = first_learned(calm, self.judged(freeze), self.truth)
        seconds = None if recovered is None else recovered - swap
        return RecoveryInterval(judged, share, learned, seconds, self._plan.prediction.recovery)

    def frozen_node(self) -> FrozenNode:
        """From the freeze to the end."""
        events, node = self._seen.events, self._plan.layout.frozen
        starts = [one.started for one in self.pods if one.node == node and one.started]
        late = [at - events["freeze"] for at in starts if events["freeze"] < at < events["thaw"]]
        dead = self._first_state("dead", events["freeze"], events["thaw"])
        back = None if dead is None else self._first_state("live", events["thaw"], events["end"])
        until = events["end"] if back is None else back
        probes = _succeeded(self.probes, node, events["thaw"], until)
        first_probe = min((one.finished for one in probes), default=until)
        return FrozenNode(
            node=node,
            cut_off_seconds=self._plan.prediction.cut_off,
            last_start_seconds=max(late, default=0.0),
            dead_seconds=None if dead is None else dead - events["freeze"],
            starts_while_out=sum((dead or events["freeze"]) < at < first_probe for at in starts),
            back_seconds=None if back is None else back - events["thaw"],
            probes=len(probes),
            pods=len(_succeeded(self.pods, node, events["thaw"], until)),
        )

    def idle_node(self) -> IdleNode:
        """Over the whole run."""
        last = node_speeds(self._seen.readings[-1], self.truth)
        node = next(one for one in last if one.node == IDLE)
        probes = _succeeded(self.probes, IDLE, 0.0, self._seen.events["end"])
        return IdleNode(node.true, node.learned, len(probes), sum(one.node == IDLE for one in self.pods))

    def judged(self, until: float) -> dict[Pair, int]:
        """The pairs that are judged for an interval that ends then, and the pods that ran there."""
        return judged_pairs(self.pods, self.truth, self._plan.settings.mix.classes, until)

    def readings(self, since: float, until: float) -> list[RatesAt]:
        """The learned rates of an interval."""
        return [one for one in self._seen.readings if since <= one.at <= until]

    def _learned(self, since: float, until: float) -> tuple[int, float, float | None]:
        """Number of judged pairs, share of them learned at the end, seconds until enough were."""
        readings, pairs = self.readings(since, until), dict.fromkeys(self.judged(until), 1)
        first = first_learned(readings, pairs, self.truth)
        share = share_within_third(readings[-1], pairs, self.truth)
        return len(pairs), share, None if first is None else first - since

    def _first_state(self, state: str, since: float, until: float) -> float | None:
        """When the frozen node first had this state."""
        frozen = self._plan.layout.frozen
        return next((one.at for one in self.readings(since, until) if one.state(frozen) == state), None)


def _succeeded(entries: Sequence[PodRecord], node: str, since: float, until: float) -> list[PodRecord]:
    there = (one for one in entries if one.node == node and one.outcome == "succeeded")
    return [one for one in there if since < one.finished <= until]
