"""Whether two answers about one pod agree. Pure: what was answered in, a difference or nothing out."""

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum

from eclectus_e2e.differential.case import Case
from eclectus_e2e.differential.evictions import cost, has_pods_of_several_budgets, nodes_of
from eclectus_e2e.differential.known_differences import NO_OUTCOME, ORDER_OF_BUDGETS, without_known
from eclectus_e2e.differential.questions import SILENCE, Answer


class Kind(StrEnum):
    """How answers differ."""

    SILENT = "a scheduler does not answer"
    PLACED = "Eclectus places what kube-scheduler refuses"
    REFUSED = "Eclectus refuses what kube-scheduler places"
    INFEASIBLE = "Eclectus places it where kube-scheduler says that it may not run or does not fit"
    NOT_BEST = "with kube-scheduler's scores, Eclectus takes a node that has fewer points than another"
    NOT_THERE = "Eclectus refuses a node on which the pod fits for kube-scheduler"
    REASONS = "different reasons"
    PREEMPTION = "different words about preemption"
    EVICTS = "one of them evicts pods, and the other does not"
    VICTIMS = "they evict different pods of one node"
    COST = "they evict pods of different nodes, and one choice is better by kube-scheduler's criteria"
    ELSEWHERE = "Eclectus places the pod on another node than its victims had"


@dataclass(frozen=True)
class Difference:
    """What kube-scheduler and Eclectus answered, as text."""

    kind: Kind
    theirs: str
    ours: str

    def __str__(self) -> str:
        return f"{self.kind}\n  kube-scheduler: {self.theirs}\n  Eclectus:       {self.ours}"


def compare(theirs: Answer, ours: Answer, used: "Counter[str]", *, by_score: bool) -> Difference | None:
    """The difference between two answers about one pod on one cluster; None where they agree.

    `by_score`: Eclectus places by kube-scheduler's scores; any node with the greatest sum is right then,
    because both draw among those. `used` counts the known differences.
    """
    if SILENCE in (theirs.message, ours.message):
        return _difference(Kind.SILENT, theirs, ours)
    if not theirs.node:
        return _compare_refusal(theirs, ours, used)
    if not ours.node:
        return _difference(Kind.REFUSED, theirs, ours)
    if ours.node not in theirs.feasible:
        return _difference(Kind.INFEASIBLE, theirs, ours)
    if by_score and ours.node not in theirs.best:
        return _difference(Kind.NOT_BEST, theirs, ours)
    return None


def compare_pinned(node: str, ours: Answer) -> Difference | None:
    """As `compare`, for a pod that may run on one node alone, where it fits for kube-scheduler."""
    if ours.node == node:
        return None
    return Difference(Kind.NOT_THERE, f"fits on {node}", _text(ours))


def compare_evictions(case: Case, theirs: Answer, ours: Answer, used: "Counter[str]") -> Difference | None:
    """As `compare`, where one of them has evicted pods; of victims that cost the same both may take any."""
    kind = _kind_of_evictions(case, theirs, ours)
    if kind in (Kind.VICTIMS, Kind.COST) and has_pods_of_several_budgets(case.objects):
        used[ORDER_OF_BUDGETS] += 1
        return None
    return _difference(kind, theirs, ours)


def _kind_of_evictions(case: Case, theirs: Answer, ours: Answer) -> Kind | None:
    if SILENCE in (theirs.message, ours.message):
        return Kind.SILENT
    if not (theirs.victims and ours.victims):
        return Kind.EVICTS
    if nodes_of(case.objects, ours.victims) != {ours.node}:
        return Kind.ELSEWHERE
    if ours.node == theirs.node:
        return None if ours.victims == theirs.victims else Kind.VICTIMS
    their_cost, our_cost = (cost(case.objects, each.victims, case.pod) for each in (theirs, ours))
    return None if their_cost == our_cost else Kind.COST


def _compare_refusal(theirs: Answer, ours: Answer, used: "Counter[str]") -> Difference | None:
    if ours.node:
        return _difference(Kind.PLACED, theirs, ours)
    their_reasons, _, their_preemption = without_known(theirs.message, "kube-scheduler", used).partition(
        " preemption: "
    )
    our_reasons, _, our_preemption = without_known(ours.message, "eclectus", used).partition(" preemption: ")
    if their_reasons != our_reasons:
        return _difference(Kind.REASONS, theirs, ours)
    if their_preemption != our_preemption and not NO_OUTCOME.words.search(theirs.message):
        return _difference(Kind.PREEMPTION, theirs, ours)
    return None


def _difference(kind: Kind | None, theirs: Answer, ours: Answer) -> Difference | None:
    return None if kind is None else Difference(kind, _text(theirs), _text(ours))


def _text(answer: Answer) -> str:
    if not answer.node:
        return answer.message
    if answer.victims:
        names = ", ".join(sorted(path.rpartition("/")[2] for path in answer.victims))
        return f"{answer.node} in place of {names}"
    scores = ", ".join(f"{node} {score}" for node, score in sorted(answer.scores.items()))
    return answer.node + (f" of {scores}" if scores else "")
