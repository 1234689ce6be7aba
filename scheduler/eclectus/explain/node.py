"""What a node holds, what is learned of it and what it costs, why it gets no pods; and the nodes for one pod.

Of those: which lack least, what would have to change on each, and what eviction could do. Victims are looked
for as policies do, and none is evicted. Of other pods few are named, with how many there are.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from heapq import nsmallest
from itertools import islice
from math import isfinite
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from eclectus.accounts.node_prices import PriceSummary
from eclectus.cluster.changelog import Rows
from eclectus.cluster.resources import PODS
from eclectus.engine.places import IN_A_GANG
from eclectus.engine.queues.class_queues import PendingClass
from eclectus.engine.reports import having_room
from eclectus.engine.state import State
from eclectus.feasibility.constraint_set import constraint_set
from eclectus.feasibility.fit_error import ROOM_PLUGIN, counted, left_over, refusals_of_row, shortages_of_row
from eclectus.feasibility.rules.rule import Mask
from eclectus.feasibility.static_rules import FEW_TERMS, static_rules_of
from eclectus.feasibility.task_class import TaskClass
from eclectus.framework import Place
from eclectus.framework.victims import Victims, may_be_victim, victims_on
from eclectus.maths.numbers import Floats
from eclectus.model.explanation import (
    EvictionCandidate,
    Lack,
    Listed,
    NearMiss,
    NodeCondition,
    NodeExplanation,
    OtherPod,
    Preemption,
    PreemptionState,
    Refusal,
    ResourceUse,
)
from eclectus.model.learned import ConstraintDemand, LearnedNode, LearnedSummary, LearnedWork, NodePrice
from eclectus.model.objects import Spec, Taint, Task, may_outrank, outranks

CLASSES_MOST = 64  # pending classes that are compared with the node
CLASSES_BESIDE_PODS_MOST = 4  # of those, with rules about other pods, which cost milliseconds each
BASIC = (PODS, "cpu", "memory")  # a node without any of one of these takes hardly any pod
KEEPS_OFF = ("NoSchedule", "NoExecute")


def node_explanation(state: State, name: str) -> NodeExplanation:
    """The answer about a node by its name."""
    row = state.cluster.rows.get(name)
    if row is None:
        summary = "this scheduler knows no such node"
        return NodeExplanation(name=name, conditions=("unknown",), summary=summary)
    resources, learned = _resources(state, row), state.learn.learned_node(name)
    if learned is not None:
        learned = next(priced(state, [learned]))
    taints = tuple(_words(taint) for taint in _taints(state, row))
    found = list(_conditions(state, row, resources, learned))
    pods = sorted((pod for pod, _ in state.placed.on_row(row)), key=attrgetter("priority"))
    compared, refused = _refused(state, row)
    pricing = state.accounts.pricing
    return NodeExplanation(
        name=name,
        conditions=tuple(condition for condition, _ in found) or ("takesPods",),
        summary="; ".join(words for _, words in found) or "it takes pods",
        taints=taints,
        resources=tuple(resources),
        background_load=1.0 - float(state.cluster.background_free[row]),
        pods=named(state, pods),
        pod_count=len(pods),
        nominated=named(state, state.placed.nominated_on(name)),
        queued=sum(len(each.tasks) for each in state.node_queues.by_row.get(row, ())),
        price=None if pricing is None else pricing.current.price.item(row),
        learned=learned,
        waiting_pods=compared,
        refused=refused,
    )


def learned_nodes(state: State) -> Iterator[LearnedNode]:
    """What was learned of every node, and its prices, to be recalled; steps may come in between. O(cells)."""
    return priced(state, state.learn.learned_nodes())


CELLS_MOST = 1000  # of one page of learned speeds: 10 ms


def learned_page(state: State, after: str, most: int, now: float) -> Listed[LearnedNode, str]:
    """What was learned of so many nodes whose names come after one, in the order of names, and their prices.

    A page ends with the node in which CELLS_MOST kinds of work are reached. O(nodes + kinds of work).
    """
    names = [name for name in state.cluster.rows if name > after]
    found, cells = list[LearnedNode](), 0
    for name in nsmallest(most, names):
        learned = state.learn.learned_node(name)
        found.append(learned or LearnedNode(name, 0, now, "unknown", 1.0, 0.0, ()))
        cells += len(found[-1].work)
        if cells >= CELLS_MOST:
            break
    return Listed(tuple(priced(state, found)), len(names) - len(found), found[-1].node if found else None)


def learned_summary(
    state: State, label: str, most: int, now: float
) -> tuple[list[str], LearnedSummary | None]:
    """What was learned by groups of nodes, whose names come first. `most`: groups."""
    names, groups = state.cluster.groups_by(label, most)
    return names, state.learn.summary(groups, now)


def _conditions(
    state: State, row: int, resources: list[ResourceUse], learned: LearnedNode | None
) -> Iterator[tuple[NodeCondition, str]]:
    """What keeps pods off the node, whichever pods they are, each with its words."""
    if state.cluster.cordoned[row]:
        yield "cordoned", "it is cordoned (spec.unschedulable)"
    taints = [_words(taint) for taint in _taints(state, row)]
    if taints:
        yield "tainted", f"it takes only pods that tolerate {', '.join(taints)}"
    if learned is not None and learned.state == "dead":
        yield "dead", "the learner believes it dead: pods that run there do not end, so it is the last choice"
    basic = (each for each in resources if each.resource in BASIC)
    full = [each.resource for each in basic if each.allocatable <= each.held + each.planned]
    if full:
        yield "full", f"nothing is left of {', '.join(full)}"


def _resources(state: State, row: int) -> list[ResourceUse]:
    """All that the node offers, and what it does not offer and pods hold all the same."""
    layers = zip(*(layer.tolist() for layer in state.cluster.layers[:, row]), strict=True)
    uses = [
        ResourceUse(name, int(allocatable), int(held), services=int(services), planned=int(planned))
        for name, (allocatable, held, planned, services) in zip(state.cluster.columns, layers, strict=True)
    ]
    return [use for use in uses if use.allocatable or use.held]


def _taints(state: State, row: int) -> list[Taint]:
    cluster = state.cluster
    return [taint for taint in cluster.taint_sets[cluster.taint_set[row]] if taint.effect in KEEPS_OFF]


def _words(taint: Taint) -> str:
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"


def _refused(state: State, row: int) -> tuple[int, tuple[Refusal, ...]]:
    """How many waiting pods were compared with the node, and why it takes which of them not."""
    counts, compared, left = Counter[str](), 0, CLASSES_BESIDE_PODS_MOST
    for pending in islice(state.class_queues, CLASSES_MOST):
        spec = pending.class_key[0]
        if len(spec.affinity or ()) > FEW_TERMS:  # thousands would cost some tens of milliseconds
            continue
        reasons = refusals_of_row(spec, state.cluster, row)
        if not reasons and spec.has_pod_rules:
            if not left:
                continue
            left -= 1
            reasons = _refusal_beside_pods(state, pending, row)
        compared += len(pending)
        for reason in reasons:
            counts[reason] += len(pending)
    return compared, tuple(Refusal(reason, count) for reason, count in counts.most_common())


def _refusal_beside_pods(state: State, pending: PendingClass, row: int) -> tuple[str, ...]:
    """The first rule about other pods that refuses the node."""
    topology = TaskClass(state.cluster, *pending.class_key).topology
    if topology is None:
        return ()
    return next(((reason,) for _, reason, refused in topology.refusals(np.array([row])) if refused[0]), ())


# Prices of nodes, as metrics, NodeProfiles and explanations show them.
#
# The price by scarcity is what others want a node for that may run on few (accounts/node_prices.py). The
# price for a workload is by how many times longer a task of it counts as running on a node, because the node
# is better used for other work (`Place.class_prices`); of several classes of a workload the highest counts.


def summary_of_prices(state: State, label: str, most: int) -> PriceSummary | None:
    """Prices by groups of nodes, at most `most` values of this label; None where none are kept. O(nodes)."""
    pricing = state.accounts.pricing
    if pricing is None:
        return None
    names, groups = state.cluster.groups_by(label, most)
    price = pricing.current.price
    return PriceSummary(
        groups=tuple((name, float(price[groups == at].mean())) for at, name in enumerate(names)),
        sets=tuple(pricing.figures()),
        classes=tuple(
            (name, workload, float(of_work[groups == at].mean()))
            for workload, of_work in _by_workload(state).items()
            for at, name in enumerate(names)
        ),
    )


def priced(state: State, nodes: Iterable[LearnedNode]) -> Iterator[LearnedNode]:
    """The nodes with their prices, if a policy asks for any; steps may come between two, and nodes may go."""
    pricing, by_workload = state.accounts.pricing, _by_workload(state)
    for each in nodes:
        row = state.cluster.rows.get(each.node)
        if pricing is None or row is None:
            yield each
        else:
            work = tuple(_priced_work(of_work, by_workload, row) for of_work in each.work)
            yield replace(each, price=pricing.current.price.item(row), work=work)


def price_for(state: State, place: Place, task_class: TaskClass, row: int) -> NodePrice | None:
    """The prices of a node to a class of tasks; None where no policy asks for prices."""
    pricing = state.accounts.pricing
    if pricing is None:
        return None
    price, rows = pricing.current.price, task_class.waitable_rows
    factor = place.class_prices().get((task_class.spec, task_class.workload))
    return NodePrice(
        scarcity=price.item(row),
        least=float(price[rows].min(initial=price.item(row))),
        work=1.0 if factor is None or row >= len(factor) else factor.item(row),
    )


def demand_of(state: State, spec: Spec) -> ConstraintDemand | None:
    """What pods with the constraints of this one demand; None while nothing is known of it."""
    pricing = state.accounts.pricing
    return None if pricing is None else pricing.figures_of(constraint_set(spec))


def _by_workload(state: State) -> dict[str, Floats]:
    """Price by row, of each workload that has one somewhere; shape [capacity] each."""
    found: dict[str, Floats] = {}
    for profile in state.profiles.values():
        for (_, workload), factor in profile.place.class_prices().items():
            if len(factor) == state.cluster.capacity:  # otherwise rows were added since, and it is made anew
                found[workload] = np.maximum(found.get(workload, 1.0), factor)
    return found


def _priced_work(work: LearnedWork, by_workload: Mapping[str, Floats], row: int) -> LearnedWork:
    price = by_workload.get(work.workload)
    return work if price is None or row >= len(price) else replace(work, price=price.item(row))


NAMED_MOST = 5  # of one node: an explanation stays short, and the rest is counted


class InTheWay(NamedTuple):
    """What keeps a node from having room for a pod that it could run."""

    pods: Sequence[Task] = ()  # without these it would fit, most important first
    is_planned: bool = False  # nothing but room that is planned for pods that wait


def named(state: State, pods: Sequence[Task]) -> tuple[OtherPod, ...]:
    """The first of the pods."""
    return tuple(
        OtherPod(
            pod.namespace,
            pod.name,
            pod.priority,
            leaving=is_leaving(state, pod),
            nominated=state.placed.is_nominated(pod.uid),
        )
        for pod in pods[:NAMED_MOST]
    )


def is_leaving(state: State, pod: Task) -> bool:
    """Whether a pod is on its way out: it is terminating, or its eviction was sent."""
    return pod.deleting or pod.uid in state.evictions.sent


def leaving_on(state: State, row: int) -> list[Task]:
    """The pods on a row that are on their way out."""
    return [pod for pod, _ in state.placed.bound_on(row) if is_leaving(state, pod)]


def in_the_way(state: State, task: Task, task_class: TaskClass, row: int) -> InTheWay | None:
    """What keeps the task from a row; None where it could not run there if all pods left.

    Pods of lower priority are named where they suffice, because they may be evicted, and pods on their way
    out or nominated pods where these do.
    """
    ways: tuple[Callable[[Task], bool], ...] = (partial(outranks, task), lambda pod: True)
    for gives_way in ways:
        found = victims_on(state.view, task_class, row, gives_way)
        if found is None:
            continue
        if not found.is_room_free:
            return InTheWay(found.pods or leaving_on(state, row))
        on_node = state.placed.nominated_on(state.cluster.names[row])
        pods = [pod for pod in on_node if gives_way(pod) and pod.uid != task.uid]
        return InTheWay(pods, is_planned=not pods)
    return None


NODES_MOST = 3
LACKS_MOST = 8  # named of one node: a pod may request thousands of resources
WORDS_MOST = 120  # characters of one condition


def near_misses(state: State, task: Task, task_class: TaskClass) -> tuple[NearMiss, ...]:
    """The nearest nodes, the first one first; none where a node has room, or where no node would ever do.

    The class must be up to date. Costs nodes times conditions, as FitError does. Of a pod with very many
    affinity terms only nodes that could run it are considered.
    """
    spec = task_class.spec
    if task_class.fits_now_count or spec.unsupported:
        return ()
    rows = np.flatnonzero(task_class.feasible if _has_many_terms(spec) else state.cluster.present)
    if not len(rows):
        return ()
    conditions = list(_conditions_of(task_class, rows))
    overflow = task_class.overflow[rows]
    lacking = np.sum([lacks for _, lacks in conditions], axis=0) + (overflow > 0)
    nearest = np.lexsort((overflow, lacking))[:NODES_MOST]
    return tuple(
        _miss(state, task, task_class, int(rows[at]), [lack for lack, lacks in conditions if lacks[at]])
        for at in nearest.tolist()
    )


def _has_many_terms(spec: Spec) -> bool:
    return len(spec.affinity or ()) > FEW_TERMS


def _conditions_of(task_class: TaskClass, rows: Rows) -> Iterator[tuple[Lack, Mask]]:
    """All that the pod asks of a node beside room, and which of the rows lack it, shape [len(rows)]."""
    cluster, spec = task_class.cluster, task_class.spec
    # With many terms the rows are those on which these hold.
    for rule in () if _has_many_terms(spec) else static_rules_of(spec):
        for words, holds in rule.predicates(spec):
            cut = words if len(words) <= WORDS_MOST else f"{words[: WORDS_MOST - 1]}…"
            yield Lack(rule.plugin, cut, permanent=True), ~holds(cluster, rows)
    for rule in task_class.usage_rules:
        yield Lack(rule.plugin, rule.reason), ~rule.holds(cluster, spec, rows)
    if task_class.topology is not None:
        for plugin, reason, refused in task_class.topology.refusals(rows):
            yield Lack(plugin, reason), refused


def _miss(state: State, task: Task, task_class: TaskClass, row: int, lacks: list[Lack]) -> NearMiss:
    cluster, spec = task_class.cluster, task_class.spec
    requests = dict(spec.requests)
    for resource, missing in shortages_of_row(spec, cluster, row):
        column = cluster.columns.get(resource)
        offered = 0.0 if column is None else cluster.allocatable[row, column]
        is_permanent = bool(offered < max(requests.get(resource, 0), 1))
        lacks.append(Lack(ROOM_PLUGIN, resource, missing, permanent=is_permanent))
    found = in_the_way(state, task, task_class, row) or InTheWay()
    return NearMiss(
        node=state.cluster.names[row],
        lacks=tuple(lacks[:LACKS_MOST]),
        fits_without=named(state, found.pods),
        not_listed=max(len(found.pods) - NAMED_MOST, 0),
        planned=found.is_planned,
    )


ROWS_MOST = 64  # nodes that are searched for victims: those that are short of least
NO_SUCH_PODS = "without any"
CANDIDATES_MOST = 3  # then the search ends


class _Search(NamedTuple):
    """What a search for victims has found; candidates by row, least harm first."""

    examined: list[int]  # rows
    planned: int  # nodes where nothing but room planned for waiting pods is in the way
    found: list[tuple[int, Victims]]


def preemption(state: State, task: Task, task_class: TaskClass, now: float) -> Preemption:
    """Whether pods could be evicted for a pending pod; the class must be up to date. `now` in seconds."""
    blocked = _blocked(state, task, task_class)
    if blocked is not None and blocked[0] != "profileEvictsNobody":
        return Preemption(*blocked)
    search = _search(state, task, task_class)
    candidates = tuple(_candidate(state, row, victims) for row, victims in search.found)
    if blocked is not None:
        return Preemption(*blocked, len(search.examined), candidates)
    outcome: PreemptionState = "possible" if candidates else "notHelpful"
    reason = _reason(state, task, task_class, search)
    return Preemption(outcome, reason, len(search.examined), candidates, next_check(state, task, now))


def _blocked(state: State, task: Task, task_class: TaskClass) -> tuple[PreemptionState, str] | None:
    """Why no victim is looked for; None where one is."""
    if state.placed.is_nominated(task.uid):
        return "nominated", f"room is held for it on node {state.placed.node_of(task.uid)}"
    if task_class.fits_now_count:
        return "hasRoom", f"nobody is evicted while {having_room(task_class.fits_now_count)}"
    return _may_not_evict(state, task)


def _may_not_evict(state: State, task: Task) -> tuple[PreemptionState, str] | None:
    if state.places.of(task.uid) in IN_A_GANG:
        return "gangIncomplete", "a pod group that is not complete evicts no pods"
    if not task.preempts:
        return "policyNever", "its preemptionPolicy is Never"
    if not may_outrank(task.priority, state.placed.lowest_priority):
        return "noLowerPriority", f"no pod on a node has a priority below {task.priority}"
    if not state.profiles[task.profile].relieve.traits.evicts:
        return "profileEvictsNobody", f"the profile {task.profile} evicts no pods (relieve)"
    return None


def _search(state: State, task: Task, task_class: TaskClass) -> _Search:
    rows = np.flatnonzero(task_class.feasible)
    nearest = rows[np.argsort(task_class.overflow[rows], kind="stable")[:ROWS_MOST]]
    found: list[tuple[int, Victims]] = []
    examined, planned = list[int](), 0
    for row in nearest.tolist():
        examined.append(row)
        victims = victims_on(state.view, task_class, row, partial(may_be_victim, state.view, task))
        if victims is not None and victims.is_room_free:
            planned += 1
        elif victims is not None:
            found.append((row, victims))
            if len(found) == CANDIDATES_MOST:
                break
    found.sort(key=lambda each: each[1].cost)
    return _Search(examined, planned, found)


def _reason(state: State, task: Task, task_class: TaskClass, search: _Search) -> str:
    nodes = f"of the {len(search.examined)} nodes examined"
    if search.found:
        return f"without pods of lower priority it would fit on {len(search.found)} {nodes}"
    if search.planned:
        planned = "room is only planned for pods that wait: nobody is evicted for that"
        return f"on {search.planned} {nodes} {planned}"
    counts = Counter[str]()
    for row in search.examined:
        counts.update(left_over(task_class, row, state.placed.on_row(row), task, NO_SUCH_PODS))
    return (
        f"it would fit on none {nodes} without their pods of a priority below {task.priority} "
        f"({counted(counts)}); "
        f"{task_class.feasible_count} of {len(state.cluster)} nodes could run it when empty"
    )


def _candidate(state: State, row: int, victims: Victims) -> EvictionCandidate:
    return EvictionCandidate(
        node=state.cluster.names[row],
        victims=named(state, victims.pods or leaving_on(state, row)),
        not_listed=max(len(victims.pods) - NAMED_MOST, 0),
        violated_budgets=int(victims.cost[0]),
    )


def next_check(state: State, task: Task, now: float) -> float | None:
    """Seconds until the Relieve policy is asked about its class; None: not before something changes."""
    due = state.relief.due_at((task.profile, (task.spec, task.workload)))
    if due is None:
        return None
    return max(due - now, 0.0) if isfinite(due) else 0.0
