"""What keeps pods of a DagJob from starting on their nodes, as the kubelets say.

Such a pod has not failed: its kubelet tries again for ever, and no retry of the task would help. So nothing
is done about it but to say so, and it starts as soon as the image or the Secret is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from eclectus_operator.decide.dag_jobs.job_status import Problem
from eclectus_operator.objects.dag_jobs.task_pods import TaskPod
from eclectus_operator.objects.observed import PULL_REASONS


def start_problem(pods: Mapping[str, Iterable[TaskPod]]) -> Problem | None:
    """The problem of the first stage, by name, of which a pod cannot start; `pods`: by stage."""
    for stage in sorted(pods):
        stuck = {pod.name: pod.stuck for pod in pods[stage] if pod.stuck is not None}
        if stuck:
            name = min(stuck)
            first = stuck[name]
            reason = "ImageNotPulled" if first.reason in PULL_REASONS else "ContainerNotCreated"
            cause = f"{first.reason}: {first.message}" if first.message else first.reason
            others = f", nor do {len(stuck) - 1} other pods" if len(stuck) > 1 else ""
            where = f"stage {stage}: container {first.container} of pod {name}"
            return Problem(reason, f"{where} does not start{others}: {cause}")
    return None
