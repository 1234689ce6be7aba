"""DagJobs as the API server writes them."""

from __future__ import annotations

from typing import Any

import msgspec

from eclectus.api.names import API_VERSION, DAG_JOB
from pod_objects import PAUSE


def stage(name: str, *parents: str, cpu: str = "1", seconds: float | None = None, **more: Any) -> Any:
    """A stage of one task; `more` adds to or replaces its fields."""
    container = {**PAUSE, "resources": {"requests": {"cpu": cpu}}}
    found: dict[str, Any] = {"name": name, "template": {"spec": {"containers": [container]}}}
    if parents:
        found["dependsOn"] = list(parents)
    if seconds is not None:
        found["estimate"] = {"seconds": seconds}
    return found | more


def dag_job(*stages: Any, spec: Any = None, status: Any = None, **metadata: Any) -> Any:
    """A DagJob named shop/etl."""
    named = {"name": "etl", "namespace": "shop", "uid": "job-1", "generation": 1, "resourceVersion": "1"}
    return {
        "apiVersion": API_VERSION,
        "kind": DAG_JOB,
        "metadata": {**named, "creationTimestamp": "2026-03-01T12:00:00Z", **metadata},
        "spec": {"stages": list(stages), **(spec or {})},
        "status": status or {},
    }


def raw(*stages: Any, **fields: Any) -> msgspec.Raw:
    """The JSON of the same."""
    return msgspec.Raw(msgspec.json.encode(dag_job(*stages, **fields)))
