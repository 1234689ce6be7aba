"""Kubernetes events about a NodeProbe (only of failures, so at most one per run) or a DagJob."""

from __future__ import annotations

from typing import Any

from eclectus.api.common import ObjectMeta, micro_time_text
from eclectus.api.dag_job import DagJobMeta
from eclectus.api.names import API_VERSION, DAG_JOB, NODE_PROBE, OPERATOR
from eclectus.api.node_probe import NodeProbe, Outcome, Run

# The API server accepts events about cluster-scoped objects in no other namespace.
CLUSTER_NAMESPACE = "default"
_NOTE_CHARACTERS = 1024  # the API server accepts no longer note


def run_failed(probe: NodeProbe, run: Run, outcome: Outcome) -> dict[str, Any]:
    """A run failed."""
    note = f"on node {run.node}, class {run.class_name}, {outcome.stage}: {outcome.message}"
    return _event(probe.metadata, "ProbeFailed", outcome.reason, note)


def invalid(meta: ObjectMeta, problem: str) -> dict[str, Any]:
    """A NodeProbe's spec is invalid."""
    return _event(meta, "Check", "InvalidSpec", problem)


def of_job(meta: DagJobMeta, reason: str, note: str, *, is_warning: bool = True) -> dict[str, Any]:
    """Something about a DagJob."""
    about = {"kind": DAG_JOB, "name": meta.name, "uid": meta.uid, "namespace": meta.namespace}
    return _about(about, "Reconcile", reason, note, "Warning" if is_warning else "Normal")


def path(event: dict[str, Any]) -> str:
    """Where the event is created: in the namespace of what it is about."""
    return f"/apis/events.k8s.io/v1/namespaces/{_namespace(event)}/events"


def stamped(event: dict[str, Any], instance: str, now: float) -> dict[str, Any]:
    """The event with its time, a name made of it, and the reporting instance."""
    name = f"{event['regarding']['name'][:40].rstrip('.-')}.{int(now * 1e9):x}"
    metadata = {"name": name, "namespace": _namespace(event)}
    time = micro_time_text(now)
    return {**event, "metadata": metadata, "eventTime": time, "reportingInstance": instance}


def _event(meta: ObjectMeta, action: str, reason: str, note: str) -> dict[str, Any]:
    return _about({"kind": NODE_PROBE, "name": meta.name, "uid": meta.uid}, action, reason, note, "Warning")


def _about(about: dict[str, Any], action: str, reason: str, note: str, kind: str) -> dict[str, Any]:
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "reportingController": OPERATOR,
        "type": kind,
        "action": action,
        "reason": reason[:128],
        "note": note[:_NOTE_CHARACTERS],
        "regarding": {"apiVersion": API_VERSION, **about},
    }


def _namespace(event: dict[str, Any]) -> str:
    return str(event["regarding"].get("namespace", CLUSTER_NAMESPACE))
