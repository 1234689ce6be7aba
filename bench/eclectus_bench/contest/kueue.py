"""Kueue: built from its Go module, installed by the module's own chart, run as a process beside the cluster.

Its chart is rendered with Kueue's configuration for this machine, and all is applied but what needs pods
or an aggregated API. What its pod would have is played here: the Secret with its certificate is written into
the folder in which it waits for it, and the Service of its webhooks leads to loopback.
"""

import base64
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import helm_python as helm
import yaml

from eclectus_e2e.errors import StartError
from eclectus_e2e.paths import KUEUE_MODULE
from eclectus_e2e.testbed import chart, processes, product
from eclectus_e2e.testbed.controlplane.build import GoPrograms, binaries
from eclectus_e2e.testbed.controlplane.endpoint import free_ports
from eclectus_e2e.testbed.controlplane.modules import downloaded
from eclectus_e2e.testbed.controlplane.plane import ControlPlane
from eclectus_e2e.testbed.kubectl import Kubectl

Object = dict[str, Any]
MODULE = "sigs.k8s.io/kueue"
NAMESPACE = RELEASE = NAME = "kueue"
API_VERSION = "kueue.x-k8s.io/v1beta2"
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
QUEUE = "queue"  # of each tenant's namespace
ACCOUNT, SECRET = "kueue-controller-manager", "kueue-webhook-server-cert"
READY_SECONDS = 120.0
# Its pods are none; the aggregated API shows pending Workloads to people and would need an EndpointSlice.
LEFT_OUT = ("Deployment", "APIService", "ConfigMap")
BUILD = GoPrograms(
    title="Kueue",
    build_time="5 minutes on two idle cores",
    folder="kueue",
    packages=1500,
    module=KUEUE_MODULE,
    programs={"kueue": f"{MODULE}/cmd/kueue"},
)


def configuration(webhook: int, health: int, certificates: Path, qps: float) -> Object:
    """Its Configuration: fair sharing is on, Jobs alone are looked at, and clients are not slowed down."""
    return {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "namespace": NAMESPACE,
        "health": {"healthProbeBindAddress": f"127.0.0.1:{health}"},
        "metrics": {"bindAddress": "0"},
        "webhook": {"host": "127.0.0.1", "port": webhook, "certDir": str(certificates)},
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"qps": qps, "burst": int(2 * qps)},
        # What its chart sets.
        "controller": {
            "groupKindConcurrency": {
                "Job.batch": 5,
                "Workload.kueue.x-k8s.io": 5,
                "LocalQueue.kueue.x-k8s.io": 1,
                "ClusterQueue.kueue.x-k8s.io": 1,
                "ResourceFlavor.kueue.x-k8s.io": 1,
            }
        },
        "integrations": {"frameworks": ["batch/job"]},
        "fairSharing": {"preemptionStrategies": ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]},
        "featureGates": {"VisibilityOnDemand": False},
    }


def local(rendered: Object, webhook: int) -> Object:
    """An object of the chart as this machine needs it: webhooks are served on a port of loopback."""
    if rendered["kind"] == "Service":
        return rendered | {"spec": {"type": "ExternalName", "externalName": "localhost"}}
    for hook in (
        *rendered.get("webhooks", ()),
        rendered.get("spec", {}).get("conversion", {}).get("webhook"),
    ):
        if hook:
            hook["clientConfig"]["service"]["port"] = webhook
    return rendered


def queues(tenants: list[str], minimum: int) -> list[Object]:
    """A ClusterQueue of each tenant in one cohort, and the LocalQueue that leads there.

    Nominal quotas are what the tenants are guaranteed. Each may hold what the others leave too, in
    proportion to equal weights, and has it taken back.
    """
    flavor = {"apiVersion": API_VERSION, "kind": "ResourceFlavor", "metadata": {"name": "default"}}
    return [flavor, *(each for tenant in tenants for each in _queues_of(tenant, minimum))]


def _queues_of(tenant: str, minimum: int) -> Iterator[Object]:
    quota = {"name": "default", "resources": [{"name": "cpu", "nominalQuota": str(minimum)}]}
    yield {
        "apiVersion": API_VERSION,
        "kind": "ClusterQueue",
        "metadata": {"name": tenant},
        "spec": {
            "cohortName": "tenants",
            "namespaceSelector": {},
            "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [quota]}],
            "preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"},
            "fairSharing": {"weight": "1"},
        },
    }
    yield {
        "apiVersion": API_VERSION,
        "kind": "LocalQueue",
        "metadata": {"name": QUEUE, "namespace": tenant},
        "spec": {"clusterQueue": tenant},
    }


@contextmanager
def running(plane: ControlPlane, qps: float) -> Iterator[None]:
    """Kueue on a control plane, with the rights of its chart's ServiceAccount.

    Raises BuildError, StartError with the end of its log, or UsageError.
    """
    program = binaries(BUILD) / NAME
    webhook, health = free_ports(2)
    certificates = plane.directory / "kueue-certificates"
    certificates.mkdir(mode=0o700)
    settings = configuration(webhook, health, certificates, qps)
    kubectl = Kubectl(plane.binaries, plane.kubeconfig)
    _install(kubectl, settings, webhook)
    account = chart.service_account_kubeconfig(plane.kubeconfig, plane.directory, NAMESPACE, ACCOUNT)
    file = plane.directory / "kueue.json"
    file.write_text(json.dumps(settings))  # JSON is YAML
    command = [str(program), f"--config={file}", f"--kubeconfig={account}", "--zap-log-level=2"]
    process = processes.start(NAME, command, plane.directory, dies_with_caller=True)
    try:
        _mount(kubectl, certificates, process, plane.directory)
        _wait(process, plane.directory, lambda: product.body(f"http://127.0.0.1:{health}/readyz") != b"")
        yield
    finally:
        process.stop()


def version() -> str:
    """The pinned version."""
    return downloaded(KUEUE_MODULE, MODULE).version


def _install(kubectl: Kubectl, settings: Object, webhook: int) -> None:
    values = {"managerConfig": {"controllerManagerConfigYaml": json.dumps(settings)}}
    with helm.Chart.load(downloaded(KUEUE_MODULE, MODULE).folder / "charts" / "kueue") as kueue:
        templates = kueue.render(values, name=RELEASE, namespace=NAMESPACE)
    rendered = [each for name in sorted(templates) for each in yaml.safe_load_all(templates[name]) if each]
    wanted = [local(each, webhook) for each in rendered if each["kind"] not in LEFT_OUT]
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    items = [namespace, *wanted]
    given = {"apiVersion": "v1", "kind": "List", "items": items}
    kubectl("apply", "--server-side", "--filename=-", given=given)


def _mount(kubectl: Kubectl, folder: Path, process: processes.Process, directory: Path) -> None:
    """Write the Secret that it fills into its folder, as a kubelet does."""

    def is_written() -> bool:
        data = kubectl.get("secret", SECRET, f"--namespace={NAMESPACE}").get("data") or {}
        for name, content in data.items():
            (folder / name).write_bytes(base64.b64decode(content))
        return "tls.key" in data

    _wait(process, directory, is_written)


def _wait(process: processes.Process, directory: Path, is_ready: Callable[[], bool]) -> None:
    if (
        not processes.wait_for(lambda: is_ready() or not process.alive, READY_SECONDS, 0.2)
        or not process.alive
    ):
        raise StartError(f"Kueue did not start\n{processes.log_tail(directory, NAME)}")
