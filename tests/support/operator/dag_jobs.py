"""DagJobs and their pods for tests of the operator, as the API server would store them."""

from __future__ import annotations

from typing import Any

from eclectus.api.common import time_text
from eclectus.api.dag_job import DagJob
from eclectus.api.names import API_VERSION, DAG_JOB
from eclectus_operator.convert import read
from eclectus_operator.dag_jobs.task_pods import TaskPod

Object = dict[str, Any]
NOW = 1_000_000.0


def stage(name: str, *parents: str, **fields: Any) -> Object:
    """A stage of pods with one container; `memory` is its request."""
    memory = fields.pop("memory", None)
    main: Object = {"name": "main", "image": "none"}
    if memory:
        main["resources"] = {"requests": {"memory": memory}, "limits": {"memory": memory}}
    template = fields.pop("template", {"spec": {"containers": [main]}})
    return {"name": name, "dependsOn": list(parents), "template": template, **fields}


def diamond(tasks: int = 2) -> list[Object]:
    """Four stages: a before b and c, both before d."""
    return [stage("d", "b", "c"), stage("a", tasks=tasks), stage("b", "a", tasks=tasks), stage("c", "a")]


def dag_job(name: str = "job", stages: list[Object] | None = None, **spec: Any) -> Object:
    """A DagJob as a user writes it."""
    return {
        "apiVersion": API_VERSION,
        "kind": DAG_JOB,
        "metadata": {"name": name, "namespace": "team"},
        "spec": {"stages": diamond() if stages is None else stages, **spec},
    }


def stored(body: Object, status: Object | None = None, **metadata: Any) -> DagJob:
    """A DagJob as the API server has it."""
    given = {"uid": "uid-1", "generation": 1, "creationTimestamp": time_text(NOW), **metadata}
    whole = {**body, "metadata": {**body["metadata"], **given}, "status": status or {}}
    return read(whole, DagJob)


def task_pod(index: int = 0, attempt: int = 0, phase: str = "Pending", **fields: Any) -> TaskPod:
    """A pod of a task of stage `a`."""
    given = {"name": f"p-{index}-{attempt}", "stage": "a", **fields}
    ended = {"ended": NOW} if phase in ("Succeeded", "Failed") else {}
    return TaskPod(uid=given["name"], index=index, attempt=attempt, phase=phase, **{**ended, **given})
