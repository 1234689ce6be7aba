"""A scheduler that runs with the chart's ServiceAccount, and its requests in the API server's audit log.

It uses every permission that the chart grants, and no other.
"""

import itertools
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from kubernetes.client import (
    ApiClient,
    ApiextensionsV1Api,
    Configuration,
    CoreV1Api,
    CustomObjectsApi,
    StorageV1Api,
)
from kubernetes.config import load_kube_config

import pod_groups
from eclectus_e2e.testbed import chart, clusters
from eclectus_e2e.testbed.controlplane.components import audit_log
from eclectus_e2e.testbed.controlplane.endpoint import free_ports
from eclectus_e2e.testbed.controlplane.plane import ControlPlane, PlaneOptions
from eclectus_e2e.testbed.processes import wait_for
from eclectus_hack.permissions import forbidden, granted, requests, superfluous
from secured_pages import READER, READERS, page

pytestmark = pytest.mark.live
OPTIONS = PlaneOptions(taint_nodes_by_condition=False, audited_namespace=chart.NAMESPACE, pod_groups=True)
ECLECTUS = Path(sys.executable).parent / "eclectus"
WAIT_SECONDS = 120.0  # the machine may be busy
REQUEST_SECONDS = 1.0  # until a response counts as lost
# Scheduler and API server are stopped in turn, for seconds, longer on a busy machine.
LONG_LEASE = {"leaseDuration": "120s", "renewDeadline": "100s"}
PODS_PER_ROUND = 200  # more than the scheduler has requests in flight


@pytest.fixture(scope="module")
def plane(tmp_path_factory):
    if clusters.choice():
        pytest.skip("only a control plane built here writes an audit log and can be frozen")
    with ControlPlane.started(tmp_path_factory.mktemp("plane") / "cluster", OPTIONS) as started:
        yield started


@pytest.fixture(scope="module")
def core(plane):
    settings = Configuration()
    load_kube_config(str(plane.kubeconfig), client_configuration=settings, persist_config=False)
    settings.proxy = None
    with ApiClient(settings) as client:
        yield CoreV1Api(client)


def test_every_permission_is_used_and_none_is_missing(plane, core, tmp_path):
    (port,) = free_ports(1)
    connection = {"requestTimeout": f"{REQUEST_SECONDS}s"}
    server, profiles = {"address": "127.0.0.1", "port": port}, {"interval": "1s"}
    config = {"server": server, "clientConnection": connection, "nodeProfiles": profiles}
    config["leaderElection"] = LONG_LEASE
    readers = {"readers": READERS}
    values = {"config": config, "scheduler": {"replicas": 0}, "metrics": readers}  # it runs as a process
    installed = chart.install(plane.kubeconfig, values=values)
    ApiextensionsV1Api(core.api_client).create_custom_resource_definition(pod_groups.DEFINITION)
    core.create_node(node())
    core.create_namespaced_pod("default", pod("huge", cpu="10000"))

    def used():
        return requests(audit_log(plane.directory), installed.user)

    def has(verb, resource):
        return any((each.verb, each.resource) == (verb, resource) for each in used())

    with running(plane, installed, tmp_path) as scheduler:
        token = reader_token(core)
        assert wait_for(lambda: scraped(port, token) == 200, WAIT_SECONDS), "RBAC takes its time"
        assert scraped(port) == 401
        assert wait_for(lambda: has("patch", "pods/status") and has("create", "events"), WAIT_SECONDS)
        CustomObjectsApi(core.api_client).create_cluster_custom_object(
            "eclectus.dev", "v1alpha1", "nodeprobes", node_probe()
        )
        CustomObjectsApi(core.api_client).create_cluster_custom_object(
            "eclectus.dev", "v1alpha1", "pools", pool()
        )
        make_volumes(core)
        assert wait_for(lambda: has("patch", "persistentvolumes"), WAIT_SECONDS)
        assert wait_for(lambda: has("patch", "persistentvolumeclaims"), WAIT_SECONDS)
        core.delete_namespaced_pod("provisioned", "default")  # nobody provisions its volume
        run_to_its_end(core, "done")
        assert wait_for(
            lambda: has("create", "nodeprofiles") and has("patch", "nodeprobes/status"), WAIT_SECONDS
        )
        assert wait_for(lambda: has("patch", "pools/status"), WAIT_SECONDS)
        for number in itertools.count():
            if has("get", "pods"):
                break
            assert number < 10, "no response to a bind was lost, although the API server was frozen ten times"
            lose_responses(plane, core, scheduler, f"round-{number}")
        assert wait_for(lambda: not waiting(core), WAIT_SECONDS), waiting(core)
        core.create_namespaced_pod("default", pod("urgent", "100", priorityClassName="system-node-critical"))
        assert wait_for(lambda: has("delete", "pods"), WAIT_SECONDS)
        scheduler.send_signal(signal.SIGTERM)
        assert scheduler.wait(timeout=30) == 0, (tmp_path / "log").read_text()[-2000:]
    rights = granted(chart.render(values))
    assert forbidden(rights, used()) == set()
    assert superfluous(rights, used()) == set()


def reader_token(core):
    core.create_namespaced_service_account("default", {"metadata": {"name": READER}})
    body = {"spec": {"expirationSeconds": 3600}}
    return core.create_namespaced_service_account_token(READER, "default", body).status.token


def scraped(port, token=""):
    """The status of /metrics; 0 as long as nobody listens."""
    try:
        return page(f"127.0.0.1:{port}", "/metrics", token)[0]
    except OSError:
        return 0


@contextmanager
def running(plane, installed, folder):
    """The scheduler as a process with the chart's configuration and its account's token."""
    token = chart.service_account_kubeconfig(
        plane.kubeconfig, folder, installed.namespace, installed.service_account
    )
    (folder / "config.yaml").write_text(installed.configuration)
    command = [ECLECTUS, "scheduler", "--config", folder / "config.yaml", "--kubeconfig", token]
    environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def lose_responses(plane, core, scheduler, prefix):
    """Freeze the API server while binds are in flight, until their responses count as lost."""
    apiserver, log = plane.pids["kube-apiserver"], audit_log(plane.directory)
    scheduler.send_signal(signal.SIGSTOP)  # so that all pods exist before the first bind
    for number in range(PODS_PER_ROUND):
        core.create_namespaced_pod("default", pod(f"{prefix}-{number}", cpu="10m"))
    start = log.stat().st_size
    scheduler.send_signal(signal.SIGCONT)
    assert wait_for(lambda: b'"subresource":"binding"' in log.read_bytes()[start:], WAIT_SECONDS)
    os.kill(apiserver, signal.SIGSTOP)
    try:
        time.sleep(2 * REQUEST_SECONDS)  # the length of the freeze, not a wait for something
    finally:
        os.kill(apiserver, signal.SIGCONT)


def make_volumes(core):
    """Two pods with claims: a volume is there for one, and is to be provisioned for the other."""
    size, modes = {"storage": "1Gi"}, ["ReadWriteOnce"]
    provisioners = {"static": "kubernetes.io/no-provisioner", "provisioned": "fake.example.com"}
    for name, provisioner in provisioners.items():
        storage_class = {"metadata": {"name": name}, "provisioner": provisioner}
        late = {**storage_class, "volumeBindingMode": "WaitForFirstConsumer"}
        StorageV1Api(core.api_client).create_storage_class(late)
        asked = {"storageClassName": name, "accessModes": modes, "resources": {"requests": size}}
        core.create_namespaced_persistent_volume_claim("default", {"metadata": {"name": name}, "spec": asked})
        volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]
        core.create_namespaced_pod("default", pod(name, cpu="10m", volumes=volumes))
    offered = {
        "storageClassName": "static",
        "accessModes": modes,
        "capacity": size,
        "hostPath": {"path": "/d"},
    }
    core.create_persistent_volume({"metadata": {"name": "static"}, "spec": offered})


def run_to_its_end(core, name):
    """A pod that has run for a minute, with the status that a kubelet would write; the learner uses it."""
    core.create_namespaced_pod("default", pod(name, cpu="10m", restartPolicy="Never"))
    assert wait_for(lambda: core.read_namespaced_pod(name, "default").spec.node_name, WAIT_SECONDS)
    times = {"startedAt": "2026-03-01T12:00:00Z", "finishedAt": "2026-03-01T12:01:00Z", "exitCode": 0}
    container = {"name": "main", "image": "none", "imageID": "", "ready": False, "restartCount": 0}
    status = {"phase": "Succeeded", "containerStatuses": [{**container, "state": {"terminated": times}}]}
    core.patch_namespaced_pod_status(name, "default", {"status": status})


def node_probe():
    """A NodeProbe, for which the scheduler reports the load of the cluster."""
    spec = {"nodeSelector": {}, "classes": [{"name": "unit", "unit": {"kind": "cpu"}}]}
    return {
        "apiVersion": "eclectus.dev/v1alpha1",
        "kind": "NodeProbe",
        "metadata": {"name": "load"},
        "spec": spec,
    }


def pool():
    """A Pool, of which the scheduler writes what is measured."""
    metadata = {"name": "default"}
    return {"apiVersion": "eclectus.dev/v1alpha1", "kind": "Pool", "metadata": metadata, "spec": {}}


def waiting(core):
    """Names of the pods that are not bound yet."""
    pods = core.list_namespaced_pod("default").items
    return [each.metadata.name for each in pods if each.metadata.name != "huge" and not each.spec.node_name]


def node():
    room = {"cpu": "100", "memory": "100Gi", "pods": "5000"}
    ready = {"type": "Ready", "status": "True", "reason": "Test", "message": "as if a kubelet were there"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "wide"},
        "status": {"capacity": room, "allocatable": room, "conditions": [ready]},
    }


def pod(name, cpu, **spec):
    main = {"name": "main", "image": "none", "resources": {"requests": {"cpu": cpu}}}
    spec = {"schedulerName": "eclectus", "containers": [main], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
