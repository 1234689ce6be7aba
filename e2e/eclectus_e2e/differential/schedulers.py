"""A control plane with kube-scheduler and Eclectus on it, and what every random cluster needs."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from eclectus_e2e.differential.cluster import ClusterObjects
from eclectus_e2e.differential.generator.words import NAMESPACES, PRIORITY_CLASSES, STORAGE_CLASSES
from eclectus_e2e.differential.questions import Questions
from eclectus_e2e.differential.score_log import ARGUMENTS, ScoreLog
from eclectus_e2e.errors import ApiError, StartError
from eclectus_e2e.testbed import processes, product
from eclectus_e2e.testbed.controlplane.plane import ControlPlane, PlaneOptions
from eclectus_e2e.testbed.kubelet.api import Api, read_access

BY_DEFAULT, BY_SCORES = (
    "eclectus",
    "eclectus-scores",
)  # schedulerNames: the chart's profile, and `place: kube`
_PREEMPTION = {"policy": "preemption"}
PROFILES: list[dict[str, Any]] = [
    {"schedulerName": BY_DEFAULT, "place": {"policy": "rosella"}, "relieve": _PREEMPTION},
    {"schedulerName": BY_SCORES, "place": {"policy": "kube"}, "relieve": _PREEMPTION},
]
# Nothing else may change the cluster between two questions: no controller deletes pods of nodes without
# kubelets, binds claims or taints nodes. Namespaces need their ServiceAccounts.
_OPTIONS = PlaneOptions(taint_nodes_by_condition=False, controllers="serviceaccount-controller")
# One decision may reuse the scores of the pod before otherwise, and these are not in the log then. A pod for
# which others are evicted asynchronously may stay pending after that (kubernetes/kubernetes#141694).
_GATES = "OpportunisticBatching=false,SchedulerAsyncPreemption=false"
_KUBE_SCHEDULER = (*ARGUMENTS, f"--feature-gates={_GATES}")
_ACCOUNT_SECONDS = 60.0


@asynccontextmanager
async def opened(
    directory: Path, changed: Mapping[str, Any] | None = None
) -> AsyncIterator[tuple[ClusterObjects, Questions]]:
    """Start everything in a directory and stop it after the block: an empty cluster, and both to be asked.

    `changed`: fields of both profiles, for tests of the comparison itself. Raises StartError and the errors
    of a control plane.
    """
    with ControlPlane.started(directory, _OPTIONS) as plane:
        async with Api(read_access(plane.kubeconfig)) as api:
            await _set_up(api)
            profiles = [{**each, **(changed or {})} for each in PROFILES]
            installed = product.install(plane.kubeconfig, directory, {"config": {"profiles": profiles}})
            product.start_scheduler(installed, dies_with_caller=True)
            plane.start_kube_scheduler(arguments=_KUBE_SCHEDULER)
            log = ScoreLog(processes.log_path(plane.directory, "kube-scheduler"))
            async with Questions.opened(api, log) as questions:
                yield ClusterObjects(api), questions


async def _set_up(api: Api) -> None:
    for name, labels in NAMESPACES.items():
        await api.request("POST", "/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
    for path, objects in (
        ("/apis/scheduling.k8s.io/v1/priorityclasses", PRIORITY_CLASSES),
        ("/apis/storage.k8s.io/v1/storageclasses", STORAGE_CLASSES),
    ):
        for name, each in objects.items():
            await api.request("POST", path, {"metadata": {"name": name}, **each})
    async with asyncio.timeout(_ACCOUNT_SECONDS):
        for name in NAMESPACES:  # the API server refuses the pods of a namespace before
            await _until_there(api, f"/api/v1/namespaces/{name}/serviceaccounts/default")


async def _until_there(api: Api, path: str) -> None:
    while True:
        try:
            await api.request("GET", path)
            return
        except ApiError as error:
            if error.status != 404:
                raise StartError(f"{path}: {error}") from error
        await asyncio.sleep(0.05)
