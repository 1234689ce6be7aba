"""Gangs: pods in PodGroups of `scheduling.k8s.io`, three in each, of which none may start without the others.

The API server serves PodGroups behind the feature gate GenericWorkload, and kube-scheduler holds to them
behind it too. No controller runs that would protect them.
"""

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from eclectus_bench.drain import UntilSettled
from eclectus_bench.load import Object, pod
from eclectus_bench.workloads.site import Run
from eclectus_e2e.testbed.controlplane.components import POD_GROUPS_VERSION

MEMBERS = 3
KUBE_SCHEDULER_GATES = ("--feature-gates=GenericWorkload=true",)


def member(name: str, scheduler: str, namespaces: Sequence[str]) -> Object:
    """A pod of a group; its place among the names says of which."""
    found = pod(name, scheduler)
    found["spec"]["schedulingGroup"] = {"podGroupName": _group(name)}
    return found


@asynccontextmanager
async def pod_groups(run: Run) -> AsyncIterator[UntilSettled | None]:
    """The PodGroups of the measured pods; each starts with all of its pods alone."""
    path = f"/apis/{POD_GROUPS_VERSION}/namespaces/{run.namespace}/podgroups"
    groups = Counter(_group(name) for name in run.names)  # the last one may be smaller
    run.say(f"creating {len(groups)} PodGroups")
    await run.site.load.send("POST", [(path, _pod_group(*each)) for each in groups.items()])
    try:
        yield None
    finally:
        await run.site.load.delete_protected([f"{path}/{name}" for name in groups])


def _group(pod_name: str) -> str:
    return f"gang-{int(pod_name.rpartition('-')[2]) // MEMBERS:06}"


def _pod_group(name: str, members: int) -> Object:
    return {
        "apiVersion": POD_GROUPS_VERSION,
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"schedulingPolicy": {"gang": {"minCount": members}}},
    }
