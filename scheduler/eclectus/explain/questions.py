"""The questions that may be asked of an engine between two steps. None of them changes anything."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from msgspec.structs import replace

from eclectus.accounts.node_prices import PriceSummary
from eclectus.cluster.node_groups import group_nodes
from eclectus.engine.engine import Engine
from eclectus.engine.state import State
from eclectus.explain.node import node_explanation
from eclectus.explain.pod import job_explanation, pod_explanation
from eclectus.explain.prices import priced, summary_of_prices
from eclectus.explain.what_if import Question, WhatIfExplanation, what_if_explanation
from eclectus.model.explanation import JobExplanation, NodeExplanation, PodExplanation
from eclectus.model.learned import LearnedNode, LearnedSummary


def explain_pod(engine: Engine, namespace: str, name: str, now: float) -> PodExplanation:
    """Explain why a pod waits or where it has gone. `now`: seconds, not before the last step.

    On 15,000 nodes with 150,000 pods it takes 2 to 5 ms for a pod that waits, 20 ms for a bound one.
    """
    return replace(engine.read(pod_explanation, (namespace, name), now), deciding=engine.leads)


def explain_what_if(
    engine: Engine, namespace: str, name: str, question: Question, now: float
) -> WhatIfExplanation:
    """Explain how a waiting pod would be placed on a changed state.

    Raises QuestionError where the pod does not wait here, or what is to be changed does not exist.
    """
    return engine.read(what_if_explanation, (namespace, name), question, now)


def explain_job(
    engine: Engine, namespace: str, name: str, labels: Collection[tuple[str, str]], now: float
) -> JobExplanation:
    """Explain why the pods of a job wait, in groups; a pod belongs to it that has one of the labels."""
    return engine.read(job_explanation, (namespace, name), labels, now)


def explain_node(engine: Engine, name: str) -> NodeExplanation:
    """Explain what a node holds, and why it gets no pods."""
    return engine.read(node_explanation, name)


def price_summary(engine: Engine, label: str, most: int) -> PriceSummary | None:
    """Summarise node prices by groups, at most `most` values of this label; None where none are kept.

    O(nodes).
    """
    return engine.read(summary_of_prices, label, most)


def learned_nodes(engine: Engine) -> Iterator[LearnedNode]:
    """List what was learned of every node, with its prices, for another process to recall; O(cells).

    Steps may come between two nodes.
    """
    return engine.read(_learned_nodes)


def learned_summary(
    engine: Engine, label: str, most: int, now: float
) -> tuple[list[str], LearnedSummary | None]:
    """Summarise what was learned by groups of nodes, whose names come first. `most`: groups."""
    return engine.read(_learned_summary, label, most, now)


def _learned_nodes(state: State) -> Iterator[LearnedNode]:
    return priced(state, state.learn.learned_nodes())


def _learned_summary(
    state: State, label: str, most: int, now: float
) -> tuple[list[str], LearnedSummary | None]:
    names, groups = group_nodes(state.cluster, label, most)
    return names, state.learn.summary(groups, now)
