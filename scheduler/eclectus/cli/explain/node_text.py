"""The text of an explanation of a node."""

from __future__ import annotations

from collections.abc import Iterator

from eclectus.cli.columns import ABSENT, aligned
from eclectus.cli.explain.words import count, pods, quantity
from eclectus.model.explanation import NodeExplanation, ResourceUse
from eclectus.model.learned import LearnedNode


def node_lines(node: NodeExplanation) -> Iterator[str]:
    """The lines of the text."""
    yield from aligned([(f"{name}:", text) for name, text in _head(node)])
    if node.resources:
        yield ""
        heads = ["RESOURCE", "ALLOCATABLE", "HELD", "BY SERVICES", "PLANNED", "LEFT"]
        yield from aligned([heads, *map(_use, node.resources)])
    if node.learned is not None and node.learned.work:
        yield ""
        yield from aligned([["WORK", "TASKS/S", "SAMPLES", "CONFIDENCE", "PRICE"], *_work(node.learned)])
    if node.waiting_pods:
        yield ""
        yield f"Of the pods that wait, {node.waiting_pods} were compared with this node. It does not take:"
        refused = [(f"  {each.count}", each.reason) for each in node.refused]
        yield from aligned(refused or [("  0", "each of them fits")])


def _head(node: NodeExplanation) -> Iterator[tuple[str, str]]:
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


def _use(use: ResourceUse) -> list[str]:
    left = use.allocatable - use.held - use.planned
    amounts = (use.allocatable, use.held, use.services, use.planned, left)
    return [use.resource, *(quantity(use.resource, each) for each in amounts)]


def _work(learned: LearnedNode) -> Iterator[list[str]]:
    for work in learned.work:
        price = ABSENT if work.price is None else f"{work.price:.1f}"
        yield [work.workload, f"{work.rate:.3g}", str(work.samples), f"{work.confidence:.2f}", price]
