"""The contestants: how each is started, what its graphs are, and which of its processes are measured.

No client is slowed down. Argo runs twice: as it comes, when it looks at a Workflow ten seconds after a pod of
it has changed, and with the settings that its documentation has for short steps of many Workflows.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial

from eclectus.api.names import API_VERSION, DAG_JOBS
from eclectus_bench.dags import argo
from eclectus_bench.dags.plan import ARGO_API_VERSION, Object, Step, dag_job, workflow
from eclectus_bench.schedulers import ECLECTUS, KUBE_SCHEDULER, QPS, compile_checkout
from eclectus_e2e.testbed import product
from eclectus_e2e.testbed.controlplane.plane import ControlPlane

ARGO, TUNED_ARGO = "argo", "argo, tuned"
# With less than a second it was slower, and asked for some pods twice: its caches lag behind.
TUNED = {"DEFAULT_REQUEUE_TIME": "1s"}
# One for each Workflow, as a worker sleeps for a second after each write of one.
WORKERS = ("--workflow-workers=128",)
VALUES = {"operator": {"enabled": True, "dagJobs": {"enabled": True}}}


@dataclass(frozen=True)
class Contestant:
    """`running` is a block in which it runs; `make` gives a graph, which is created at `path`.

    `engine` and `scheduler` are names of processes: what runs the graph, and what places its pods.
    """

    name: str
    engine: str
    scheduler: str
    resource: str  # group, version / plural
    make: Callable[[str, Sequence[Step]], Object]
    running: Callable[[ControlPlane], AbstractContextManager[None]]

    def path(self, namespace: str) -> str:
        """Where its graphs are in the API."""
        group, _, plural = self.resource.rpartition("/")
        return f"/apis/{group}/namespaces/{namespace}/{plural}"


@contextmanager
def _eclectus(plane: ControlPlane) -> Iterator[None]:
    compile_checkout()
    installed = product.install(plane.kubeconfig, plane.directory, VALUES)
    scheduler = product.start_scheduler(installed, dies_with_caller=True)
    try:
        operator = product.start_operator(installed, dies_with_caller=True)
        try:
            yield
        finally:
            operator.stop()
    finally:
        scheduler.stop()


@contextmanager
def _argo(
    plane: ControlPlane, environment: Mapping[str, str] | None = None, flags: tuple[str, ...] = ()
) -> Iterator[None]:
    plane.start_kube_scheduler(QPS)
    try:
        with argo.running(plane, QPS, environment or {}, flags):
            yield
    finally:
        plane.stop_kube_scheduler()


_WORKFLOWS = f"{ARGO_API_VERSION}/workflows"
CONTESTANTS = (
    Contestant(
        ECLECTUS, product.OPERATOR, product.SCHEDULER, f"{API_VERSION}/{DAG_JOBS}", dag_job, _eclectus
    ),
    Contestant(ARGO, argo.NAME, KUBE_SCHEDULER, _WORKFLOWS, workflow, _argo),
    Contestant(
        TUNED_ARGO,
        argo.NAME,
        KUBE_SCHEDULER,
        _WORKFLOWS,
        workflow,
        partial(_argo, environment=TUNED, flags=WORKERS),
    ),
)
