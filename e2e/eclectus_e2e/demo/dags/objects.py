"""DagJob objects of the jobs, and which task a pod is of. Pure."""

import re
from typing import Any, NamedTuple

from eclectus.api.names import API_VERSION, CLASS_LABEL, DAG_JOB, WORK_SECONDS
from eclectus_e2e.demo.workload.pods import NAMESPACE
from eclectus_e2e.demo.workload.queries import Query, Stage

Json = dict[str, Any]
_POD_NAME = re.compile(
    r"(?P<job>query-\d+)-(?P<stage>[a-z]+-\d+)-(?P<number>\d+)-(?P<attempt>\d+)-[-0-9a-z]+"
)


class TaskName(NamedTuple):
    """Which task a pod runs."""

    job: str
    stage: str
    number: int


def task_of(pod_name: str) -> TaskName | None:
    """The task of a pod, by the name that the operator gave it; None for another pod."""
    found = _POD_NAME.fullmatch(pod_name)
    return TaskName(found["job"], found["stage"], int(found["number"])) if found else None


def dag_job(job: Query, scheduler: str, mean_speed: float) -> Json:
    """The DagJob of a job, whose estimates are right on a node of mean speed."""
    return {
        "apiVersion": API_VERSION,
        "kind": DAG_JOB,
        "metadata": {"name": job.name, "namespace": NAMESPACE},
        "spec": {"stages": [_stage(stage, scheduler, mean_speed) for stage in job.stages]},
    }


def _stage(stage: Stage, scheduler: str, mean_speed: float) -> Json:
    return {
        "name": stage.name,
        "dependsOn": list(stage.parents),
        "tasks": stage.tasks,
        "estimate": {"seconds": round(stage.work_seconds / mean_speed, 3)},
        "template": {
            "metadata": {
                "labels": {CLASS_LABEL: stage.kind.name},
                "annotations": {WORK_SECONDS: f"{stage.work_seconds:.6f}"},
            },
            "spec": _pod_spec(stage, scheduler),
        },
    }


def _pod_spec(stage: Stage, scheduler: str) -> Json:
    requests = {"cpu": f"{stage.kind.cpu_millicores}m", "memory": f"{stage.kind.memory_mib}Mi"}
    return {
        "schedulerName": scheduler,
        "containers": [{"name": "work", "image": stage.kind.name, "resources": {"requests": requests}}],
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
    }
