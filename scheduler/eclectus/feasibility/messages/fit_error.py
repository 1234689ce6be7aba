"""Why a class fits on no node now, in kube-scheduler's words: autoscalers parse them, people search for them.

Byte-compatible with the FitError of kube-scheduler 1.36:

    0/<nodes> nodes are available: <count> <reason>, <count> <reason>…

The counts are those of funnel.py. The parts are sorted as strings ("10 x" before "2 y").

The outcome of preemption ("preemption: 0/4 nodes …"), which kube-scheduler appends, is added by
engine/explain/fit_errors.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from eclectus.cluster.changelog import Rows
from eclectus.cluster.nodes import Cluster
from eclectus.feasibility.messages.funnel import NO_ROWS, StaticRefusals, funnel
from eclectus.feasibility.rules import node_affinity, unsupported, volume_binding
from eclectus.feasibility.task_class import TaskClass
from eclectus.model.explanation import FilterStep
from eclectus.model.objects import Spec

PINS_CONFLICT = "pod affinity terms conflict"
NO_NODES = "no nodes available to schedule pods"
MAX_REASONS = 64  # a pod may name thousands of resources, and the message must fit into its status


class FitError(NamedTuple):
    """A message, and the rows of the nodes on which pods that leave might make the pod fit."""

    message: str
    resolvable: Rows


def fit_error(task_class: TaskClass, cluster: Cluster, refusals: StaticRefusals | None = None) -> FitError:
    """For a pod of this class that fits on no node; the message names no reason if it does fit on one.

    The class must be up to date. `refusals`: those of the other messages of this step.
    """
    if not len(cluster):
        return FitError(NO_NODES, NO_ROWS)
    if reasons := _pre_filter(task_class.spec):
        return FitError(_message(cluster, reasons), NO_ROWS)
    found = funnel(task_class, cluster, StaticRefusals(cluster) if refusals is None else refusals)
    return FitError(_message(cluster, _reasons(found.steps)), found.resolvable)


def _message(cluster: Cluster, reasons: str) -> str:
    return f"0/{len(cluster)} nodes are available:" + (f" {reasons}." if reasons else "")


def _reasons(steps: Iterable[FilterStep]) -> str:
    counts = Counter[str]()
    for step in steps:
        for refusal in step.refusals:
            counts[refusal.reason] += refusal.count
    return counted(counts)


def counted(counts: Mapping[str, int]) -> str:
    """Numbers of nodes by reason, as kube-scheduler writes them; of many reasons the first."""
    parts = sorted(f"{count} {reason}" for reason, count in counts.items() if count)
    if len(parts) > MAX_REASONS:
        parts[MAX_REASONS:] = [f"{len(parts) - MAX_REASONS} more reasons"]
    return ", ".join(parts)


def _pre_filter(spec: Spec) -> str:
    """What refuses the pod on all nodes at once, as kube-scheduler's PreFilter; empty if nothing does."""
    if is_blocked_by_claims(spec):
        return volume_binding.BLOCKED.reason
    if spec.unsupported:
        return unsupported.message(spec)
    return PINS_CONFLICT if _names_conflict(spec) else ""


def is_blocked_by_claims(spec: Spec) -> bool:
    """Whether the pod's claims are what the message is about, of all that refuses it on all nodes at once."""
    return spec.volumes.is_blocked and not spec.unsupported and not _names_conflict(spec)


def _names_conflict(spec: Spec) -> bool:
    return node_affinity.pinned_names(spec) == frozenset()
