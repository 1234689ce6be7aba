"""The text of an explanation of a pod: a head as `kubectl describe` has, then a part for each question."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from eclectus.cli.columns import aligned, span
from eclectus.cli.explain.words import count, lack, pods
from eclectus.model.explanation import (
    EvictionCandidate,
    FilterStep,
    Funnel,
    NearMiss,
    Placement,
    PodExplanation,
    PodState,
    Preemption,
    Waiting,
)
from eclectus.model.learned import ConstraintDemand, NodePrice

STATES: Mapping[PodState, str] = {
    "active": "waits for the next scheduling cycle",
    "deferred": "waits for a busy node",
    "withheld": "withheld by the order of pods",
    "unschedulable": "unschedulable",
    "nodeQueue": "waits in the queue of a node",
    "gang": "waits to be placed together with its pod group",
    "backOff": "backs off after a failed attempt",
    "gated": "gated",
    "deleting": "being deleted",
    "binding": "being bound",
    "bound": "bound",
    "otherScheduler": "waits for another scheduler",
    "unknown": "unknown",
}

Field = tuple[str, str]


def pod_lines(pod: PodExplanation) -> Iterator[str]:
    """The lines of the text."""
    yield from aligned([(f"{name}:", text) for name, text in _head(pod)])
    yield from parts(pod)


def parts(pod: PodExplanation) -> Iterator[str]:
    """The lines after the head: the funnel, the nearest nodes, preemption, and the placement."""
    if pod.funnel is not None:
        yield ""
        yield from _funnel(pod.funnel)
    if pod.nearest:
        yield ""
        yield "Nearest nodes:"
        yield from indented([(miss.node, _miss(miss)) for miss in pod.nearest])
    if pod.preemption is not None:
        yield ""
        yield from _preemption(pod.preemption)
    if pod.placement is not None and pod.placement.not_kept:
        yield ""
        yield f"Not kept of the decision: {pod.placement.not_kept}."


# -- the head --------------------------------------------------------------------------------------


def _head(pod: PodExplanation) -> Iterator[Field]:
    yield "Pod", f"{pod.namespace}/{pod.name}"
    yield "State", STATES[pod.state]
    yield "Why", pod.summary
    if not pod.deciding:
        yield "Scheduler", "does not decide now: its caches are not complete, or another replica leads"
    if pod.scheduler_name:
        priority = "" if pod.priority is None else f", priority {pod.priority}"
        yield "Profile", f"{pod.scheduler_name}{priority}"
    if pod.age is not None:
        yield "Age", span(pod.age)
    if pod.waiting is not None:
        yield from _waiting(pod.waiting)
    if pod.expected_wait is not None:
        yield (
            "Expected",
            f"{span(pod.expected_wait)} more" if pod.expected_wait else "less than it has waited",
        )
    if pod.constraint_demand is not None:
        yield "Constraints", _demand(pod.constraint_demand)
    if pod.dead_with_room:
        yield "Believed dead", f"{', '.join(pod.dead_with_room)}: they have room, and are the last choice"
    if pod.nomination is not None:
        each = pod.nomination
        leaving = f"; on their way out there: {pods(each.leaving)}" if each.leaving else ""
        kept = "; the node is kept free for it until pods there have ended" if each.reserved else ""
        yield "Nominated", f"to node {each.node} for {span(each.since)}{leaving}{kept}"
    yield from _attempts(pod)
    if pod.placement is not None:
        yield from _placement(pod.placement)


def _waiting(waiting: Waiting) -> Iterator[Field]:
    if waiting.policy:
        yield "Decided by", waiting.policy
    if waiting.since is not None:
        yield "Since", span(waiting.since)
    if waiting.next_check is not None:
        yield "Next check", f"in {span(waiting.next_check)}"
    if len(waiting.nodes) > 1:
        yield "Nodes", ", ".join(waiting.nodes)
    if waiting.class_pods:
        group = f" of group {waiting.group}" if waiting.group else ""
        yield "Queue", f"{waiting.ahead} ahead{group}, in a class of {waiting.class_pods}"


def _demand(of: ConstraintDemand) -> str:
    return (
        f"{of.constraints}: pods with these demand {of.demand:.0%} of all nodes, and may use {of.supply:.0%}"
    )


def _attempts(pod: PodExplanation) -> Iterator[Field]:
    message = "" if pod.funnel is None else pod.funnel.message
    if message:
        yield "Message", message
    if pod.attempts is None:
        return
    if pod.attempts.failures:
        yield "Failed", count(pod.attempts.failures, "attempt")
    if pod.attempts.message:
        at = pod.attempts.reported
        when = "by an earlier process" if at is None else f"{span(at)} ago"
        is_same = pod.attempts.message == message
        yield "Last report", f"{when}, the same message" if is_same else f"{when}: {pod.attempts.message}"


def _placement(placement: Placement) -> Iterator[Field]:
    yield "Node", f"{placement.node} for {span(placement.since)}"
    if placement.evicted:
        yield "Eviction", "was sent: it makes room for another pod"
    if placement.policy:
        yield "Placed by", placement.policy
    if placement.feasible is not None:
        feasible = count(placement.feasible, "node")
        yield (
            "Now",
            f"{feasible} could run it when empty, {placement.with_room} have room for another",
        )
    if placement.speed is not None:
        yield "Node speed", f"{placement.speed:.2f} of a typical node ({placement.node_state})"
    if placement.price is not None:
        yield "Node price", _price(placement.price)
    if placement.unmet_preferences:
        yield "Not preferred", "; ".join(placement.unmet_preferences)


def _price(price: NodePrice) -> str:
    work = f"; it counts as {price.work:.1f} times as slow, being better used for other work"
    of_least = f"{price.scarcity:.2f} by scarcity, {price.least:.2f} on the cheapest node that could run it"
    return of_least + (work if price.work >= 1.05 else "")


# -- nodes -----------------------------------------------------------------------------------------


def _funnel(funnel: Funnel) -> Iterator[str]:
    yield (
        f"Nodes: {funnel.nodes}; {funnel.feasible} could run it when empty; {funnel.with_room} have room now"
    )
    before, lines = funnel.nodes, [["RULE", "REFUSES", "LEAVES", "WHY"]]
    for step in funnel.steps:
        lines.append([step.rule, str(before - step.left), str(step.left), _refusals(step)])
        before = step.left
    yield from indented(lines)


def _refusals(step: FilterStep) -> str:
    """Each reason; with the number of nodes where a node can count under several."""
    if len(step.refusals) == 1:
        return step.refusals[0].reason
    return ", ".join(f"{each.count} {each.reason}" for each in step.refusals)


def _miss(miss: NearMiss) -> str:
    lacks = "; ".join(map(lack, miss.lacks))
    if miss.planned:
        return f"{lacks}; only because of room that is planned for pods that wait"
    if not miss.fits_without:
        return lacks
    return f"{lacks}; would fit without {pods(miss.fits_without, miss.not_listed)}"


def _preemption(preemption: Preemption) -> Iterator[str]:
    at = "" if preemption.next_check is None else f"; asked again in {span(preemption.next_check)}"
    yield f"Preemption: {preemption.reason}{at}"
    yield from indented([(each.node, _victims(each)) for each in preemption.candidates])


def _victims(candidate: EvictionCandidate) -> str:
    budgets = candidate.violated_budgets
    violated = f"; {count(budgets, 'disruption budget')} would be violated" if budgets else ""
    return f"{pods(candidate.victims, candidate.not_listed)}{violated}"


def indented(lines: list[list[str]] | list[tuple[str, str]]) -> Iterator[str]:
    """The lines as columns, below a heading."""
    return (f"  {line}" for line in (aligned(lines) if lines else ()))
