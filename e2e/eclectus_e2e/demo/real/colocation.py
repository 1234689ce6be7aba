"""Co-location trials: does a probe delay a real pod on its node? Pure.

Pairs of the same pod go to each node: one while a probe runs there, one while none does, and the next pair
the other way round. Each asks for all cores of its node, so it would wait if the probe's requests were
not zero.
"""

from collections.abc import Mapping, Sequence

import msgspec

from eclectus_e2e.demo.pairs import Interval, mean_interval, ratio_interval
from eclectus_e2e.demo.real.observations import Observations, Stream

# Of pods and probes: a class of its own, so that they are no samples of the streams' class.
CLASS = "colocation"
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


def trial_order(trial: int) -> tuple[bool, bool]:
    """Whether the first and the second pod of a pair run beside a probe.

    Where one pair ends the next one begins, so a probe starts and ends once for two pairs.
    """
    return (False, True) if trial % 2 == 0 else (True, False)


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
        beside=_times(list(beside.values())),
        alone=_times(list(alone.values())),
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


def _times(trials: Sequence[_Trial]) -> PodTimes | None:
    if not trials:
        return None
    starts = [one.start_seconds for one in trials]
    runs = [one.run_seconds for one in trials]
    return PodTimes(len(trials), sum(starts) / len(starts), max(starts), sum(runs) / len(runs))
