"""The texts of explanations: of a pod, a node, a job, and of what would be different."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from eclectus.cli.output import aligned, count
from eclectus.model import explanation
from eclectus.model.explanation import PolicyAnswer, WhatIfExplanation
from eclectus.model.learned import LearnedNode, NodePrice
from eclectus.model.printed import ABSENT, span

_BYTES = ("memory", "ephemeral-storage")
_UNITS = (("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10))


def quantity(resource: str, amount: int) -> str:
    """As Kubernetes writes quantities: 300m, 2, 1.5Gi."""
    if resource == "cpu":
        return f"{amount}m" if amount % 1000 else f"{amount // 1000}"
    if resource in _BYTES or resource.startswith("hugepages-"):
        for suffix, unit in _UNITS:
            if abs(amount) >= unit:
                return f"{amount / unit:.4g}{suffix}"
    return str(amount)


def lack(each: explanation.Lack) -> str:
    """What a node lacks: `300m cpu short`, or `needs` and a condition, or a rule's refusal."""
    if not each.amount:
        return f"needs {each.what}" if each.permanent else each.what.removeprefix("node(s) ")
    also = ", also when it is empty" if each.permanent else ""
    return f"{quantity(each.what, each.amount)} {each.what} short{also}"


def pods(named: Sequence[explanation.OtherPod], not_listed: int = 0) -> str:
    """Names and priorities, and how many more there are."""
    words = [_pod(each) for each in named]
    if not_listed:
        words.append(f"{not_listed} more")
    return ", ".join(words)


def _pod(pod: explanation.OtherPod) -> str:
    name = f"{pod.namespace}/{pod.name}" if pod.name else "a pod of another namespace"
    leaving = ", on its way out" if pod.leaving else ""
    nominated = ", nominated" if pod.nominated else ""
    return f"{name} (priority {pod.priority}{leaving}{nominated})"


STATES: Mapping[explanation.PodState, str] = {
    "active": "waits for the next scheduling cycle",
    "deferred": "waits for a busy node",
    "withheld": "kept back for now",
    "unschedulable": "unschedulable",
    "nodeQueue": "waits in the queue of a node",
    "gang": "waits to be placed together with its pod group",
    "heldBack": "waits for room in its pool",
    "backOff": "backs off after a failed attempt",
    "arriving": "waits until its namespace may have another pod completed",
    "gated": "gated",
    "deleting": "being deleted",
    "binding": "being bound",
    "bound": "bound",
    "otherScheduler": "waits for another scheduler",
    "unknown": "unknown",
}

Field = tuple[str, str]


def _head(fields: Iterable[Field]) -> Iterator[str]:
    return aligned([(f"{name}:", text) for name, text in fields])


# -- pods ------------------------------------------------------------------------------------------


def pod_lines(pod: explanation.PodExplanation) -> Iterator[str]:
    """A head as `kubectl describe` has, then a part for each question."""
    yield from _head(_pod_head(pod))
    yield from parts(pod)


def parts(pod: explanation.PodExplanation) -> Iterator[str]:
    """The lines after the head: the funnel, the nearest nodes, preemption, and the placement."""
    if pod.funnel is not None:
        yield from ("", *_funnel(pod.funnel))
    if pod.nearest:
        yield from ("", "Nearest nodes:", *indented([(miss.node, _miss(miss)) for miss in pod.nearest]))
    if pod.preemption is not None:
        yield from ("", *_preemption(pod.preemption))
    if pod.reclaim is not None:
        at = pod.reclaim.next_check
        yield f"Reclaim: {pod.reclaim.reason}{_asked_again(at)}"
    if pod.flow is not None:
        yield from ("", *_flow(pod.flow))
    if pod.placement is not None and pod.placement.not_kept:
        yield from ("", f"Not kept of the decision: {pod.placement.not_kept}.")


def _pod_head(pod: explanation.PodExplanation) -> Iterator[Field]:
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
    if pod.pool is not None:
        yield "Pool", "; ".join(_pool(pod.pool))
    if pod.pools_ahead:
        yield "Pools ahead", "; ".join(map(_pools_ahead, pod.pools_ahead))
    yield from (
        (of, said) for of, said in (("Pool refused", pod.pool_refused), ("Copies", pod.copies)) if said
    )
    if pod.expected_wait is not None:
        more = f"{span(pod.expected_wait)} more" if pod.expected_wait else "less than it has waited"
        yield "Expected", more
    if pod.turnaround is not None:
        yield "Turnaround", f"a slot is held for {pod.turnaround:.2g} s beside the run of such a pod"
    if pod.constraint_demand is not None:
        of = pod.constraint_demand
        demand = f"pods with these demand {of.demand:.0%} of all nodes, and may use {of.supply:.0%}"
        yield "Constraints", f"{of.constraints}: {demand}"
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


def _pool(pool: explanation.PoolStanding) -> Iterator[str]:
    yield pool.path
    for each in pool.resources:
        held, share = (quantity(each.resource, amount) for amount in (each.held, each.share))
        least = f", minimum {quantity(each.resource, each.least)}" if each.least else ""
        most = "" if each.most is None else f", at most {quantity(each.resource, each.most)}"
        of = f"on nodes with {each.nodes}" if each.nodes else f"of a share of {share}"
        yield f"holds {held} {each.resource} {of}{least}{most}"
    if pool.below_minimum is not None:
        yield f"below its minimum for {span(pool.below_minimum)}"
    elif pool.below_share is not None:
        yield f"far below its share for {span(pool.below_share)}"


def _pools_ahead(level: explanation.PoolsAhead) -> str:
    words = [_pool_ahead(each) for each in level.pools]
    if level.not_listed:
        words.append(f"{level.not_listed} more")
    return f"{f'in {level.parent}: ' if level.parent else ''}{', '.join(words)}"


def _pool_ahead(pool: explanation.PoolAhead) -> str:
    waiting = f"{count(pool.waiting_pods, 'pod')} {'waits' if pool.waiting_pods == 1 else 'wait'}"
    lacks = ", below its minimum" if pool.below_minimum else ""
    return f"{pool.path or 'another pool'} ({waiting}{lacks})"


def _waiting(waiting: explanation.Waiting) -> Iterator[Field]:
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


def _attempts(pod: explanation.PodExplanation) -> Iterator[Field]:
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


def _placement(placement: explanation.Placement) -> Iterator[Field]:
    yield "Node", f"{placement.node} for {span(placement.since)}"
    if placement.evicted:
        yield "Eviction", "was sent: it makes room for another pod"
    if placement.policy:
        yield "Placed by", placement.policy
    if placement.feasible is not None:
        feasible = count(placement.feasible, "node")
        yield "Now", f"{feasible} could run it when empty, {placement.with_room} have room for another"
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


def _funnel(funnel: explanation.Funnel) -> Iterator[str]:
    of_them = f"{funnel.feasible} could run it when empty; {funnel.with_room} have room now"
    yield f"Nodes: {funnel.nodes}; {of_them}"
    before, lines = funnel.nodes, [["RULE", "REFUSES", "LEAVES", "WHY"]]
    for step in funnel.steps:
        # A node can count under several reasons: then each has its number of nodes.
        is_sole = len(step.refusals) == 1
        why = ", ".join(each.reason if is_sole else f"{each.count} {each.reason}" for each in step.refusals)
        lines.append([step.rule, str(before - step.left), str(step.left), why])
        before = step.left
    yield from indented(lines)


def _miss(miss: explanation.NearMiss) -> str:
    lacks = "; ".join(map(lack, miss.lacks))
    if miss.planned:
        return f"{lacks}; only because of room that is planned for pods that wait"
    if not miss.fits_without:
        return lacks
    return f"{lacks}; would fit without {pods(miss.fits_without, miss.not_listed)}"


def _flow(flow: explanation.FlowPart) -> Iterator[str]:
    group = f"one of {count(flow.pods, 'equal pod')} in a problem of {count(flow.arcs, 'arc')}"
    why = f": {flow.why}" if flow.why else ""
    yield f"Flow: {group}, asked {span(flow.asked)} ago, {flow.answer}{why}"
    if flow.is_beyond:
        yield "  too many pods have data of their own: in this problem its data cost the same on all nodes"
    has_data = flow.data is not None
    if has_data:
        yield f"  {_bytes(flow.data)} of its data are on known nodes"
    lines = [["TO", "COST", "FLOW", "SLOTS"], [flow.without_node, str(flow.staying), str(flow.stay), ""]]
    lines += ([each.node, str(each.cost), str(each.flow), str(each.slots)] for each in flow.nodes)
    if has_data:
        moves = [["FROM RACK", "ACROSS"], ["", ""]]
        moves += ([_bytes(each.in_rack), _bytes(each.across)] for each in flow.nodes)
        lines = [line + more for line, more in zip(lines, moves, strict=True)]
    yield from indented(lines)
    if flow.not_listed:
        yield f"  and {count(flow.not_listed, 'dearer node')}"


def _bytes(size: int | None) -> str:
    return "" if size is None else quantity("memory", size)


def _preemption(preemption: explanation.Preemption) -> Iterator[str]:
    yield f"Preemption: {preemption.reason}{_asked_again(preemption.next_check)}"
    lines = []
    for each in preemption.candidates:
        budgets = count(each.violated_budgets, "disruption budget")
        violated = f"; {budgets} would be violated" if each.violated_budgets else ""
        lines.append((each.node, f"{pods(each.victims, each.not_listed)}{violated}"))
    yield from indented(lines)


def _asked_again(seconds: float | None) -> str:
    return "" if seconds is None else f"; asked again in {span(seconds)}"


def indented(lines: list[list[str]] | list[tuple[str, str]]) -> Iterator[str]:
    """The lines as columns, below a heading."""
    return (f"  {line}" for line in (aligned(lines) if lines else ()))


# -- what would be different -----------------------------------------------------------------------


def what_if_lines(found: WhatIfExplanation) -> Iterator[str]:
    """What would differ, then the pod as it would be explained."""
    yield from _head(_what_if_head(found))
    if found.rules:
        lines = [["RULE", "REFUSES", "INSTEAD OF"]]
        lines += [[each.rule, str(each.refused), str(each.refused_before)] for each in found.rules]
        yield from ("", "What differs:", *indented(lines))
    if found.placement.candidates:
        yield from ("", *_candidates(found.placement))
    yield from parts(found.pod)


def _what_if_head(found: WhatIfExplanation) -> Iterator[Field]:
    yield "Pod", f"{found.pod.namespace}/{found.pod.name}"
    for text in found.changes:
        yield "What if", text
    yield "Answer", found.summary
    nodes = 0 if found.pod.funnel is None else found.pod.funnel.nodes
    is_other = found.with_room != found.with_room_before
    as_it_is = f"; as it is, on {found.with_room_before}" if is_other else ""
    yield "Room", f"on {found.with_room} of {nodes} nodes{as_it_is}"
    yield "Policy", found.placement.policy


def _candidates(answer: PolicyAnswer) -> Iterator[str]:
    """In the policy's order; with costs where it has some, and draws where it draws."""
    has_costs = any(each.cost is not None for each in answer.candidates)
    draws = any(0 < each.draws < answer.draws for each in answer.candidates)
    yield f"Nodes that {answer.policy} would take, the best one first:"
    columns = ["NODE", *(["COST"] if has_costs else []), *(["CHOSEN"] if draws else [])]
    lines = [columns]
    for each in answer.candidates:
        cost = "" if each.cost is None else f"{each.cost:.6g}"
        chosen = f"{each.draws} of {answer.draws} times"
        lines.append([each.node, *([cost] if has_costs else []), *([chosen] if draws else [])])
    yield from indented(lines)


# -- nodes and jobs --------------------------------------------------------------------------------


def node_lines(node: explanation.NodeExplanation) -> Iterator[str]:
    """What a node holds, and why it takes none of the pods that wait."""
    yield from _head(_node_head(node))
    if node.resources:
        heads = ["RESOURCE", "ALLOCATABLE", "HELD", "BY SERVICES", "PLANNED", "LEFT"]
        yield from ("", *aligned([heads, *map(_use, node.resources)]))
    if node.learned is not None and node.learned.work:
        heads = ["WORK", "TASKS/S", "SAMPLES", "CONFIDENCE", "PRICE"]
        yield from ("", *aligned([heads, *_work(node.learned)]))
    if node.waiting_pods:
        text = f"Of the pods that wait, {node.waiting_pods} were compared with this node. It does not take:"
        refused = [(f"  {each.count}", each.reason) for each in node.refused]
        yield from ("", text, *aligned(refused or [("  0", "each of them fits")]))


def _node_head(node: explanation.NodeExplanation) -> Iterator[Field]:
    yield "Node", node.name
    yield "State", ", ".join(node.conditions)
    yield "Why", node.summary
    if node.background_load >= 0.005:
        yield "Load", f"{node.background_load:.0%} of it is used beyond the requests of its pods"
    if node.pod_count:
        yield "Pods", f"{node.pod_count}: {pods(node.pods, node.pod_count - len(node.pods))}"
    if node.nominated:
        yield "Nominated", pods(node.nominated)
    if node.queued:
        yield "Queue", f"{count(node.queued, 'pod')} in its queue"
    if node.price is not None:
        yield "Price", f"{node.price:.2f}: demand over supply of the constraints that it satisfies"
    if node.learned is not None:
        each = node.learned
        yield "Learned", f"{each.state}; {each.speed:.2f} of a typical node, confidence {each.confidence:.2f}"


def _use(use: explanation.ResourceUse) -> list[str]:
    left = use.allocatable - use.held - use.planned
    amounts = (use.allocatable, use.held, use.services, use.planned, left)
    return [use.resource, *(quantity(use.resource, each) for each in amounts)]


def _work(learned: LearnedNode) -> Iterator[list[str]]:
    for work in learned.work:
        price = ABSENT if work.price is None else f"{work.price:.1f}"
        yield [work.workload, f"{work.rate:.3g}", str(work.samples), f"{work.confidence:.2f}", price]


def job_lines(job: explanation.JobExplanation) -> Iterator[str]:
    """The pods of a job that wait, in groups of those that are alike."""
    yield from _head([("Job", f"{job.namespace}/{job.name}"), ("Pods", job.summary)])
    if job.groups:
        lines = [["PODS", "STATE", "FOR EXAMPLE", "WHY"]]
        for each in job.groups:
            why = f"{each.reason}; {each.message}".rstrip("; ")
            lines.append([str(each.pods), each.state, each.example, why])
        yield from ("", *aligned(lines))
    if job.not_listed:
        yield f"and {count(job.not_listed, 'pod')} of other kinds"
