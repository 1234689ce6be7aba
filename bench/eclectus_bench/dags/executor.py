"""Plays `argoexec wait`, the container that Argo adds to each pod: no kubelet runs it here.

Argo's controller does not count a step as done until this container has reported. For a step without outputs
it makes three requests (v4.0.5, cmd/argoexec/commands/wait.go): it creates a WorkflowTaskResult that is not
complete when it starts, and when the step has ended it patches outputs, which are empty, and then the label
that says that the report is complete.
"""

import asyncio

import msgspec

from eclectus_bench.dags.plan import ARGO_API_VERSION, Object
from eclectus_bench.dags.writes import TASK_RESULTS
from eclectus_bench.load import IN_FLIGHT
from eclectus_e2e.testbed.kubelet.api import MERGE, Api

WORKFLOW_LABEL = "workflows.argoproj.io/workflow"
REPORTED_LABEL = "workflows.argoproj.io/report-outputs-completed"
NODE_ID = "workflows.argoproj.io/node-id"  # annotation of a pod


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: list[Object] = []


class Pod(msgspec.Struct, frozen=True):
    """A pod of a Workflow."""

    metadata: _Metadata


class Executor:
    """Reports for each pod of a namespace as soon as it runs."""

    def __init__(self, api: Api, namespace: str) -> None:
        self._api, self._namespace = api, namespace
        self._path = f"/apis/{ARGO_API_VERSION}/namespaces/{namespace}/{TASK_RESULTS}"
        self._in_flight = asyncio.Semaphore(IN_FLIGHT)

    async def run(self) -> None:
        """Follow the pods until cancelled."""
        seen, pods = set[str](), f"/api/v1/namespaces/{self._namespace}/pods"
        async with asyncio.TaskGroup() as group:
            async for change in self._api.changes(pods, Pod, "fieldSelector=status.phase!=Pending"):
                for pod in change.items if change.kind != "deleted" else ():
                    if NODE_ID in pod.metadata.annotations and pod.metadata.name not in seen:
                        seen.add(pod.metadata.name)
                        group.create_task(self._report(pod))

    async def _report(self, pod: Pod) -> None:
        created, *patches = reports(pod)
        one = f"{self._path}/{created['metadata']['name']}"
        async with self._in_flight:
            await self._api.request("POST", self._path, created)
            for patch in patches:
                await self._api.request("PATCH", one, patch, MERGE)


def reports(pod: Pod) -> list[Object]:
    """The body of each request for a pod, in their order: one of a POST, then those of merge patches."""
    metadata, (owner,) = pod.metadata, pod.metadata.owner_references
    labels = {WORKFLOW_LABEL: metadata.labels[WORKFLOW_LABEL], REPORTED_LABEL: "false"}
    reference = {name: owner[name] for name in ("apiVersion", "kind", "name", "uid")}
    created = {
        "apiVersion": ARGO_API_VERSION,
        "kind": "WorkflowTaskResult",
        "metadata": {
            "name": metadata.annotations[NODE_ID],
            "labels": labels,
            "ownerReferences": [reference],
        },
    }
    return [created, {"metadata": {}, "outputs": {}}, {"metadata": {"labels": {REPORTED_LABEL: "true"}}}]
