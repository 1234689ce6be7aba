"""What a node holds, what is learned of it, what it costs, and why it gets no pods. Changes nothing."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from operator import attrgetter

import numpy as np
from msgspec.structs import replace

from eclectus.accounts.node_prices import PriceSummary
from eclectus.cluster.resources import PODS
from eclectus.engine.queues.class_queues import PendingClass
from eclectus.engine.state import State
from eclectus.explain.nodes_for_pod import named
from eclectus.feasibility.constraint_set import constraint_set
from eclectus.feasibility.fit_error import refusals_of_row
from eclectus.feasibility.static_rules import FEW_TERMS
from eclectus.feasibility.task_class import TaskClass
from eclectus.framework import Place
from eclectus.maths.numbers import Floats
from eclectus.model.explanation import NodeCondition, NodeExplanation, Refusal, ResourceUse
from eclectus.model.learned import ConstraintDemand, LearnedNode, LearnedSummary, LearnedWork, NodePrice
from eclectus.model.objects import Spec, Taint

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
