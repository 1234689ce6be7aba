"""The contestants: how each is set up for the tenants and started, and what tells it whose a Job is.

What tenants are guaranteed and their weights are the same for Eclectus and Kueue, and both take back at once
what is a tenant's. kube-scheduler knows no tenants.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any

from eclectus.api.names import API_VERSION, POOL_LABEL
from eclectus_bench.contest import kueue
from eclectus_bench.contest.plan import Sizes
from eclectus_bench.schedulers import ECLECTUS, KUBE_SCHEDULER, QPS
from eclectus_e2e.testbed import product
from eclectus_e2e.testbed.controlplane.plane import ControlPlane
from eclectus_e2e.testbed.kubectl import Kubectl

KUEUE = "kueue"
# As kube-scheduler: the node with most room. So nodes differ for no contestant.
PROFILE = {
    "schedulerName": "eclectus",
    "order": {"policy": "pools"},
    "place": {"policy": "least-allocated"},
    "relieve": [{"policy": "reclaim"}, {"policy": "preemption"}],
}


@dataclass(frozen=True)
class Contestant:
    """`running` is a block in which it runs on a control plane that has the tenants' namespaces.

    `labels` are those of a Job, for its pods' `scheduler`.
    """

    name: str
    scheduler: str
    running: Callable[[ControlPlane, Sizes], AbstractContextManager[None]]
    labels: Mapping[str, str] = field(default_factory=dict)


@contextmanager
def _eclectus(plane: ControlPlane, sizes: Sizes) -> Iterator[None]:
    values = {"config": {"profiles": [PROFILE]}}
    installed = product.install(plane.kubeconfig, plane.directory, values)
    kubectl = Kubectl(plane.binaries, plane.kubeconfig)
    _apply(kubectl, pools([each.name for each in sizes.tenants], sizes.minimum))
    for tenant in sizes.tenants:
        kubectl("label", "namespace", tenant.name, f"{POOL_LABEL}={tenant.name}")
    process = product.start_scheduler(installed, dies_with_caller=True)
    try:
        yield
    finally:
        process.stop()


@contextmanager
def _kueue(plane: ControlPlane, sizes: Sizes) -> Iterator[None]:
    with _kube_scheduler(plane, sizes), kueue.running(plane, QPS):
        tenants = [each.name for each in sizes.tenants]
        _apply(Kubectl(plane.binaries, plane.kubeconfig), kueue.queues(tenants, sizes.minimum))
        yield


@contextmanager
def _kube_scheduler(plane: ControlPlane, _: Sizes) -> Iterator[None]:
    plane.start_kube_scheduler(QPS)
    try:
        yield
    finally:
        plane.stop_kube_scheduler()


CONTESTANTS = (
    Contestant(ECLECTUS, "eclectus", _eclectus),
    Contestant(KUEUE, "default-scheduler", _kueue, {kueue.QUEUE_LABEL: kueue.QUEUE}),
    Contestant(KUBE_SCHEDULER, "default-scheduler", _kube_scheduler),
)


def pools(tenants: Sequence[str], minimum: int) -> list[dict[str, Any]]:
    """A Pool of each tenant, of equal weights; what is its own it takes back at once, as Kueue does."""
    at_once = {"minShareSeconds": 0, "fairShareSeconds": 0, "fairShareThreshold": 1}
    guaranteed = {"amounts": {"cpu": str(minimum)}}
    spec = {"weight": 1, "minShare": guaranteed, "preemption": at_once}
    return [
        {"apiVersion": API_VERSION, "kind": "Pool", "metadata": {"name": tenant}, "spec": spec}
        for tenant in tenants
    ]


def _apply(kubectl: Kubectl, objects: Sequence[dict[str, Any]]) -> None:
    given = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
    kubectl("apply", "--server-side", "--filename=-", given=given)
