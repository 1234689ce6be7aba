"""Why a class fits on no node now, in kube-scheduler's words: autoscalers parse them, people search for them.

Byte-compatible with the FitError of kube-scheduler 1.36:

    0/<nodes> nodes are available: <count> <reason>, <count> <reason>…

The counts are those of funnel.py. The parts are sorted as strings ("10 x" before "2 y").

The outcome of preemption ("preemption: 0/4 nodes …"), which kube-scheduler appends, is added by
engine/explain/fit_errors.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from eclectus.cluster.nodes import Cluster
from eclectus.feasibility.messages.funnel import StaticRefusals, funnel
from eclectus.feasibility.rules import node_affinity, unsupported, volume_binding
from eclectus.feasibility.task_class import TaskClass
from eclectus.model.explanation import FilterStep
from eclectus.model.objects import Spec

NO_NODES = "no nodes available to schedule pods"
MAX_REASONS = 64  # a pod may name thousands of resources, and the message must fit into its status


def fit_error(task_class: TaskClass, cluster: Cluster, refusals: StaticRefusals | None = None) -> str:
    """The message for a pod of this class that fits on no node; names no reason if it does fit on one.

    The class must be up to date. `refusals`: those of the other messages of this step.
    """
    if not len(cluster):
        return NO_NODES
    reasons = _pre_filter(task_class.spec)
    if not reasons:
        refusals = StaticRefusals(cluster) if refusals is None else refusals
        reasons = _reasons(funnel(task_class, cluster, refusals).steps)
    end = f" {reasons}." if reasons else ""
    return f"0/{len(cluster)} nodes are available:{end}"


def _reasons(steps: Iterable[FilterStep]) -> str:
    counts = Counter[str]()
    for step in steps:
        for refusal in step.refusals:
            counts[refusal.reason] += refusal.count
    parts = sorted(f"{count} {reason}" for reason, count in counts.items())
    if len(parts) > MAX_REASONS:
        parts[MAX_REASONS:] = [f"{len(parts) - MAX_REASONS} more reasons"]
    return ", ".join(parts)


def _pre_filter(spec: Spec) -> str:
    """What refuses the pod on all nodes at once, as kube-scheduler's PreFilter; empty if nothing does."""
    if spec.unsupported:
        return unsupported.message(spec)
    if spec.volumes.is_blocked:
        return volume_binding.BLOCKED.reason
    if node_affinity.pinned_names(spec) == frozenset():
        return "pod affinity terms conflict"
    return ""
