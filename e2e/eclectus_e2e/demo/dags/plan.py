"""What the experiment on DAG jobs does: the nodes, the jobs and the schedulers, in pairs of runs. Pure.

All Eclectus schedulers place by learned speeds and differ in their order alone. The operator makes the pods
for all of them, and for kube-scheduler too, so what differs is which task is next and where it runs.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from msgspec.structs import replace

from eclectus.api.names import API_VERSION, CLASS_LABEL, DAG_JOB, WORK_SECONDS
from eclectus_e2e.demo.schedulers import CARBYNE, DAG_SCHEDULERS, KUBE_SCHEDULER
from eclectus_e2e.demo.workload.pods import NAMESPACE
from eclectus_e2e.demo.workload.queries import Query, Stage, queries
from eclectus_e2e.testbed.kubelet.nodes import DEFAULT_SEED, NodeSpec, default_nodes
from eclectus_e2e.testbed.kubelet.quantities import amount

JOBS, QUICK_JOBS = 30, 4
LOAD = 0.8  # work that arrives over what the nodes can do, while jobs arrive
QUICK_GROUPS = {2.0: 4, 8.0: 4}
OVERHEAD_SECONDS = 45.0  # of a run: the scheduler's start, and the end of the last jobs
Json = dict[str, Any]
CORES = "2"  # of a node: with twice as many, twice as many pods were needed for the same load


@dataclass(frozen=True)
class DagPlan:
    """The same jobs to each scheduler, one after another on the same nodes."""

    nodes: Sequence[NodeSpec]
    jobs: Sequence[Query]
    schedulers: Sequence[str]
    seed: int

    @property
    def mean_speed(self) -> float:
        """Of the nodes: work of one second takes 1 / this on an average node."""
        return sum(node.speed for node in self.nodes) / len(self.nodes)

    def job_object(self, job: Query, scheduler: str) -> Json:
        """The DagJob that is created for a job."""
        return dag_job(job, scheduler, self.mean_speed)


@dataclass(frozen=True)
class DagPlans:
    """A plan for each pair, each with jobs of its own. `str` of it says what is done."""

    pairs: Sequence[DagPlan]

    def __str__(self) -> str:
        first, count = self.pairs[0], len(self.pairs)
        last, pods = first.jobs[-1].at_seconds, sum(job.pods for job in first.jobs)
        minutes = count * len(first.schedulers) * (last + OVERHEAD_SECONDS) / 60
        to = " and then to ".join(first.schedulers)
        several = f"; {count} times with other jobs, in alternating order" if count > 1 else ""
        return "\n".join(
            [
                f"DAG jobs: about {max(1, round(minutes))} min",
                f"  {len(first.nodes)} nodes of hidden speeds; {len(first.jobs)} jobs of the shape of TPC-H "
                f"queries with {pods} pods, seed {first.seed}",
                f"  they come within {last:.0f} s, the same to {to}{several}",
            ]
        )


def dag_plan(seed: int, schedulers: Sequence[str] | None = None, *, quick: bool = False) -> DagPlan:
    """The plan; `quick`: few jobs on eight nodes, to Carbyne and kube-scheduler."""
    groups = {"group_sizes": QUICK_GROUPS} if quick else {}
    nodes = [_smaller(node) for node in default_nodes(DEFAULT_SEED, **groups)]
    names = schedulers or ((CARBYNE, KUBE_SCHEDULER) if quick else DAG_SCHEDULERS)
    count = QUICK_JOBS if quick else JOBS
    gap = mean_gap(queries(seed, count, 1.0), nodes, LOAD)
    return DagPlan(nodes, queries(seed, count, gap), names, seed)


def dag_plans(
    seed: int, pairs: int, schedulers: Sequence[str] | None = None, *, quick: bool = False
) -> DagPlans:
    """The plans of so many pairs, with seeds that follow each other."""
    return DagPlans([dag_plan(seed + pair, schedulers, quick=quick) for pair in range(pairs)])


def mean_gap(jobs: Sequence[Query], nodes: Sequence[NodeSpec], load: float) -> float:
    """Seconds between two arrivals at which these jobs need this share of what the nodes can do."""
    a_second = sum(node.speed * amount("cpu", node.allocatable["cpu"]) / 1000 for node in nodes)
    return sum(job.core_seconds for job in jobs) / len(jobs) / (load * a_second)


def _smaller(node: NodeSpec) -> NodeSpec:
    return replace(node, allocatable={**node.allocatable, "cpu": CORES})


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
