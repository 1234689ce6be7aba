"""Kubernetes events about a NodeProbe: only of failures, so at most one per run."""

from __future__ import annotations

from typing import Any

from eclectus.api.common import ObjectMeta, micro_time_text
from eclectus.api.names import API_VERSION, NODE_PROBE, OPERATOR
from eclectus.api.node_probe import NodeProbe, Outcome, Run

# The API server accepts events about cluster-scoped objects in no other namespace.
NAMESPACE = "default"
PATH = f"/apis/events.k8s.io/v1/namespaces/{NAMESPACE}/events"
_NOTE_CHARACTERS = 1024  # the API server accepts no longer note


def run_failed(probe: NodeProbe, run: Run, outcome: Outcome) -> dict[str, Any]:
    """A run failed."""
    note = f"on node {run.node}, class {run.class_name}, {outcome.stage}: {outcome.message}"
    return _event(probe.metadata, "ProbeFailed", outcome.reason, note)


def invalid(meta: ObjectMeta, problem: str) -> dict[str, Any]:
    """A NodeProbe's spec is invalid."""
    return _event(meta, "Check", "InvalidSpec", problem)


def stamped(event: dict[str, Any], instance: str, now: float) -> dict[str, Any]:
    """The event with its time, a name made of it, and the reporting instance."""
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
        "note": note[:_NOTE_CHARACTERS],
        "regarding": about,
    }
