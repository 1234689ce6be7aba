"""From a task to its pod.

The template is the user's, and the pod gets nothing more than it: it is created in the job's own namespace,
where Pod Security, quotas and admission apply to it as to any other pod. Set are the name, the labels and
annotations of Eclectus, the controller, `restartPolicy: Never`, a schedulerName where there is none, and in
each container the variable TASK_INDEX where it has none of that name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eclectus.api.dag_job import DagJob, Stage
from eclectus.api.names import (
    API_VERSION,
    ATTEMPT_LABEL,
    DAG_JOB,
    DAG_JOB_LABEL,
    ESTIMATED_SECONDS,
    INSTANCE_LABEL,
    JOB_WORK_SECONDS,
    MEMORY_FACTORS,
    NODE_ANNOTATION,
    PATH_SECONDS,
    PROBE_LABEL,
    ROOM_ANNOTATION,
    RUN_ID_LABEL,
    SEQ_LABEL,
    STAGE_LABEL,
    TASK_INDEX_LABEL,
)
from eclectus.kube.quantity import thousandths, units
from eclectus_operator.objects.dag_jobs.task_pods import factors_text

Object = dict[str, Any]
INDEX_VARIABLE = "TASK_INDEX"
SCHEDULER_NAME = "eclectus"
# By these a scheduler or an operator would take the pod for a probe. Admission lets the operator alone create
# pods with them, and a template must not be a way around that.
RESERVED_KEYS = (INSTANCE_LABEL, RUN_ID_LABEL, SEQ_LABEL, PROBE_LABEL, NODE_ANNOTATION, ROOM_ANNOTATION)


def hints(seconds: float | None, path: float | None, job_work: float | None) -> dict[str, str]:
    """The annotations with estimates, of those that are known."""
    known = {ESTIMATED_SECONDS: seconds, PATH_SECONDS: path, JOB_WORK_SECONDS: job_work}
    return {name: f"{value:.6g}" for name, value in known.items() if value}


def pod(
    job: DagJob,
    stage: Stage,
    name: str,
    index: int,
    attempt: int,
    *,
    memory_factors: Mapping[str, int],
    estimates: Mapping[str, str],
) -> Object:
    """The pod of a task, ready to be created. Raises ValueError if its memory cannot be read."""
    metadata, spec = stage.template.get("metadata", {}), stage.template["spec"]
    labels = {
        DAG_JOB_LABEL: job.metadata.name,
        STAGE_LABEL: stage.name,
        TASK_INDEX_LABEL: str(index),
        ATTEMPT_LABEL: str(attempt),
    }
    annotations = {**metadata.get("annotations", {}), **estimates}
    if memory_factors:
        annotations[MEMORY_FACTORS] = factors_text(memory_factors)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": job.metadata.namespace,
            "labels": {**metadata.get("labels", {}), **labels},
            "annotations": annotations,
            "ownerReferences": [_owner(job)],
        },
        "spec": _spec(spec, index, memory_factors),
    }


def _spec(spec: Object, index: int, memory_factors: Mapping[str, int]) -> Object:
    changed = {
        field: [_container(each, index, memory_factors.get(each.get("name", ""), 1)) for each in spec[field]]
        for field in ("initContainers", "containers")
        if spec.get(field)
    }
    return {"schedulerName": SCHEDULER_NAME, **spec, **changed, "restartPolicy": "Never"}


def _container(one: Object, index: int, factor: int) -> Object:
    env = one.get("env") or []
    if not any(each.get("name") == INDEX_VARIABLE for each in env):
        env = [*env, {"name": INDEX_VARIABLE, "value": str(index)}]
    resources = one.get("resources")
    return {**one, "env": env, **({"resources": _with_more_memory(resources, factor)} if resources else {})}


def _with_more_memory(resources: Object, factor: int) -> Object:
    """Request and limit of memory times the factor."""
    return {
        part: {**amounts, "memory": _times(amounts["memory"], factor)}
        if factor > 1 and part in ("requests", "limits") and "memory" in amounts
        else amounts
        for part, amounts in resources.items()
    }


def _times(quantity: str | int, factor: int) -> str:
    return str(units(thousandths(str(quantity)) * factor))


def _owner(job: DagJob) -> Object:
    # Without blockOwnerDeletion, which would take the right to change a DagJob's finalizers.
    return {
        "apiVersion": API_VERSION,
        "kind": DAG_JOB,
        "name": job.metadata.name,
        "uid": job.metadata.uid,
        "controller": True,
    }
