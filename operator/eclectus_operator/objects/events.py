"""Kubernetes events about a NodeProbe: only of what went wrong, so at most one a probe."""

from __future__ import annotations

from typing import Any

from eclectus.api.common import ObjectMeta, micro_time_text
from eclectus.api.names import API_VERSION, NODE_PROBE, OPERATOR
from eclectus.api.node_probe import NodeProbe, Outcome, Run

# Events about objects of the whole cluster lie in this namespace, or the API server refuses them.
NAMESPACE = "default"
PATH = f"/apis/events.k8s.io/v1/namespaces/{NAMESPACE}/events"
_NOTE = 1024  # characters that the API server lets a note have


def run_failed(probe: NodeProbe, run: Run, outcome: Outcome) -> dict[str, Any]:
    """A probe did not run to its end."""
    note = f"on node {run.node}, class {run.class_name}, {outcome.stage}: {outcome.message}"
    return _event(probe.metadata, "ProbeFailed", outcome.reason, note)


def invalid(meta: ObjectMeta, problem: str) -> dict[str, Any]:
    """A NodeProbe cannot be obeyed."""
    return _event(meta, "Check", "InvalidSpec", problem)


def stamped(event: dict[str, Any], instance: str, now: float) -> dict[str, Any]:
    """The event with its time, a name by it, and who reports it."""
    name = f"{event['regarding']['name'][:40].rstrip('.-')}.{int(now * 1e9):x}"
    metadata = {"name": name, "namespace": NAMESPACE}
    time = micro_time_text(now)
    return {**event, "metadata": metadata, "eventTime": time, "reportingInstance": instance}


def _event(meta: ObjectMeta, action: str, reason: str, note: str) -> dict[str, Any]:
    about = {"apiVersion": API_VERSION, "kind": NODE_PROBE, "name": meta.name, "uid": meta.uid}
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "reportingController": OPERATOR,
        "type": "Warning",
        "action": action,
        "reason": reason[:128],
        "note": note[:_NOTE],
        "regarding": about,
    }
