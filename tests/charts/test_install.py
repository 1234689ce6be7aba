"""The chart on a real API server, and the permissions of its ServiceAccount there."""

import re
import subprocess
import tarfile

import helm_python as helm
import pytest
from kubernetes.client import (
    ApiClient,
    ApiException,
    Configuration,
    CoordinationV1Api,
    CoreV1Api,
    RbacAuthorizationV1Api,
)
from kubernetes.config import load_kube_config
from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.exceptions import NotFoundError

from eclectus.api.names import (
    API_VERSION,
    NODE_PROBE,
    NODE_PROBES_PATH,
    NODE_PROFILE,
    NODE_PROFILES_PATH,
)
from eclectus.kubeclient.client import MERGE_PATCH
from eclectus_e2e.errors import UsageError
from eclectus_e2e.paths import CHART, CHECKOUT
from eclectus_e2e.testbed import chart, clusters
from eclectus_e2e.testbed.controlplane.components import audit_log
from eclectus_e2e.testbed.controlplane.plane import ControlPlane, PlaneOptions
from eclectus_hack.permissions import Permission, forbidden, granted, requests
from live_cluster import Admin, wait
from tar_files import unpack

pytestmark = pytest.mark.live
NAMESPACE = chart.NAMESPACE


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with clusters.opened(
        tmp_path_factory.mktemp("plane") / "cluster", PlaneOptions(audited_namespace=NAMESPACE)
    ) as opened:
        yield opened


# The first chart with CRDs and an operator: an upgrade from it must work, as from every chart since.
BEFORE = "85296a16ab68a1cc9d71911ab3b3553cf69eb10c"
RELEASED = "app.kubernetes.io/instance=eclectus,app.kubernetes.io/component=scheduler"
NO_PODS = {"scheduler": {"replicas": 0}, "operator": {"enabled": True, "replicas": 0}}


@pytest.fixture
def chart_before(tmp_path):
    """The folder of an earlier chart, from the history of this repository."""
    command = ["git", "archive", "--format=tar", f"--output={tmp_path}/chart.tar", BEFORE, "charts/eclectus"]
    if subprocess.run(command, cwd=CHECKOUT, capture_output=True, check=False).returncode:
        pytest.skip(f"this checkout's history has no commit {BEFORE[:7]}")
    with tarfile.open(tmp_path / "chart.tar") as archive:
        unpack(archive, tmp_path)
    return tmp_path / "charts" / "eclectus"


# What people and the scheduler have written while the earlier chart was installed.
KEPT = {
    NODE_PROBES_PATH: {
        "kind": NODE_PROBE,
        "spec": {"suspend": True, "nodeSelector": {}, "classes": [{"name": "c", "unit": {"kind": "cpu"}}]},
    },
    NODE_PROFILES_PATH: {
        "kind": NODE_PROFILE,
        "status": {"epoch": 7, "state": "Live", "speed": 1.5, "samples": 40, "confidence": 0.9},
    },
}


@pytest.fixture
def people(cluster, request):
    """Requests of an administrator."""
    with Admin(cluster.kubeconfig, f"people-{request.node.callspec.id.lower()}") as admin:
        yield admin


def write_kept(people):
    """Create the objects of KEPT; returns them as the API server has them."""
    for path, each in KEPT.items():
        wait(f"{path} is served", lambda path=path: people.get(path) is not None)
        people.send("POST", path, {"apiVersion": API_VERSION, "metadata": {"name": "kept"}, **each})
        if "status" in each:  # a subresource: the request above has left it out
            content = {"status": each["status"]}
            people.send("PATCH", f"{path}/kept/status", content, content_type=MERGE_PATCH)
    return read_kept(people)


def read_kept(people):
    """Identity and content of the objects of KEPT; only defaults of a newer definition may be added."""
    found = {path: people.get(f"{path}/kept") for path in KEPT}
    assert all(leaves(each) <= leaves(found[path]) for path, each in KEPT.items())
    return {path: each["metadata"]["uid"] for path, each in found.items()}


@pytest.mark.parametrize("reuse_values", [False, True])
def test_a_release_of_an_earlier_chart_is_upgraded_and_removed(cluster, chart_before, reuse_values, people):
    """The objects are those of today's chart afterwards, and uninstalling leaves only the CRDs.

    NodeProbes and NodeProfiles are kept throughout.
    """
    wanted = chart.render(NO_PODS)
    with helm.Config(kubeconfig_path=cluster.kubeconfig, namespace=NAMESPACE) as config:
        with helm.Chart.load(chart_before) as before:
            config.install(before, "eclectus", NO_PODS, namespace=NAMESPACE, create_namespace=True)
        kept = write_kept(people)
        with helm.Chart.load(CHART) as now:
            config.upgrade(now, "eclectus", NO_PODS, namespace=NAMESPACE, reuse_values=reuse_values)
        with client(cluster.kubeconfig) as admin:
            found = existing(admin, wanted)
            assert found.keys() == {identity(each) for each in wanted if each["kind"] != "Pod"}
            for each in wanted:
                if each["kind"] == "CustomResourceDefinition":
                    schemas = [one["spec"]["versions"][0]["schema"] for one in (each, found[identity(each)])]
                    assert leaves(schemas[0]) <= leaves(schemas[1])
        assert read_kept(people) == kept
        config.uninstall("eclectus", wait="watcher", timeout=60)
    assert read_kept(people) == kept
    for path in kept:
        people.send("DELETE", f"{path}/kept")
    with client(cluster.kubeconfig) as admin:
        assert {kind for kind, _, _ in existing(admin, wanted)} == {"CustomResourceDefinition"}
        secrets = CoreV1Api(admin).list_namespaced_secret(NAMESPACE).items
        assert not [one.metadata.name for one in secrets if one.metadata.name.startswith("sh.helm.release")]


def identity(each):
    return each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]


def existing(admin, wanted):
    """Those of the objects that exist, by kind, namespace and name."""
    dynamic, found = DynamicClient(admin), {}
    for each in wanted:
        resource = dynamic.resources.get(api_version=each["apiVersion"], kind=each["kind"])
        try:
            one = resource.get(each["metadata"]["name"], namespace=each["metadata"].get("namespace"))
        except NotFoundError:
            continue
        found[identity(each)] = one.to_dict()
    return found


def leaves(value, path=""):
    """(path, value) of everything that is neither a mapping nor a list."""
    if isinstance(value, dict):
        return {leaf for key, part in value.items() for leaf in leaves(part, f"{path}.{key}")}
    if isinstance(value, list):
        return {leaf for at, part in enumerate(value) for leaf in leaves(part, f"{path}[{at}]")}
    return {(path, value)}


@pytest.fixture(scope="module")
def installed(cluster):
    yield chart.install(cluster.kubeconfig)
    chart.uninstall(cluster.kubeconfig)


@pytest.fixture(scope="module")
def account(cluster, installed, tmp_path_factory):
    """A client with the ServiceAccount's token."""
    folder = tmp_path_factory.mktemp("account")
    path = chart.service_account_kubeconfig(cluster.kubeconfig, folder, NAMESPACE, installed.service_account)
    assert path.stat().st_mode & 0o777 == 0o600
    with client(path) as opened:
        wait("the role counts", lambda: may_list_nodes(opened))
        yield opened


def may_list_nodes(account):
    try:
        CoreV1Api(account).list_node()
    except ApiException as error:
        if error.status != 403:
            raise
        return False
    return True


def client(kubeconfig):
    settings = Configuration()
    settings.proxy = None
    load_kube_config(str(kubeconfig), client_configuration=settings, persist_config=False)
    return ApiClient(settings)


def test_the_account_reads_nodes_and_pods(account):
    assert CoreV1Api(account).list_node().items is not None
    assert CoreV1Api(account).list_pod_for_all_namespaces().items is not None


@pytest.mark.parametrize(
    "request_",
    [
        lambda api: CoreV1Api(api).list_secret_for_all_namespaces(),
        lambda api: CoreV1Api(api).list_namespaced_config_map(NAMESPACE),
        lambda api: CoreV1Api(api).delete_collection_namespaced_pod("default"),
        lambda api: CoreV1Api(api).delete_node("any"),
        lambda api: CoordinationV1Api(api).read_namespaced_lease("other", NAMESPACE),
        lambda api: CoordinationV1Api(api).read_namespaced_lease("eclectus", "kube-system"),
    ],
    ids=["secrets", "config maps", "delete all pods", "delete node", "another lease", "a lease elsewhere"],
)
def test_the_account_has_no_other_permission(account, request_):
    with pytest.raises(ApiException) as error:
        request_(account)
    assert error.value.status == 403


def test_requests_for_leases_have_a_priority_level_of_their_own(cluster, account):
    with client(cluster.kubeconfig) as admin:
        (schema,) = DynamicClient(admin).resources.get(kind="FlowSchema").get(label_selector=RELEASED).items
    assert schema.spec.priorityLevelConfiguration.name == "leader-election"
    wait("the API server follows it", lambda: flow_schema_of(account) == schema.metadata.uid)


def flow_schema_of(account):
    """The uid of the FlowSchema by which the API server has served a request for the scheduler's Lease."""
    try:
        headers = CoordinationV1Api(account).read_namespaced_lease_with_http_info("eclectus", NAMESPACE)[2]
    except ApiException as error:
        if error.status != 404:  # there is no such Lease while no scheduler runs
            raise
        headers = error.headers
    return headers["X-Kubernetes-PF-FlowSchema-UID"]


def test_the_audit_log_names_what_was_forbidden(cluster, installed, account):
    if not isinstance(cluster, ControlPlane):
        pytest.skip("only a control plane built here writes an audit log")
    with pytest.raises(ApiException):
        CoreV1Api(account).list_config_map_for_all_namespaces()
    rights, wanted = granted(chart.render()), Permission("", "configmaps", "list")

    def missing():
        return forbidden(rights, requests(audit_log(cluster.directory), installed.user))

    wait("the log, which is written after the answer, has it", lambda: wanted in missing())


def test_with_invalid_values_nothing_is_installed(cluster):
    with pytest.raises(UsageError, match="/scheduler/image/digest"):
        chart.install(cluster.kubeconfig, "elsewhere", {"scheduler": {"image": {"digest": "abc"}}})
    with client(cluster.kubeconfig) as admin:
        names = [each.metadata.name for each in CoreV1Api(admin).list_namespace().items]
    assert "elsewhere" not in names


def test_without_the_prometheus_operator_a_service_monitor_is_refused_by_its_value(cluster):
    values = {"crds": {"install": False}, "metrics": {"serviceMonitor": {"enabled": True}}}
    message = "metrics.serviceMonitor.enabled: the cluster does not know the kind ServiceMonitor"
    with pytest.raises(helm.HelmError, match=re.escape(message)):
        chart.install(cluster.kubeconfig, "monitored", values)


def test_a_second_release_hears_by_which_value_it_leaves_the_crds_to_the_first(cluster, installed):
    message = f"crds.install: the release {NAMESPACE}/eclectus has installed the CRDs of this cluster already"
    with pytest.raises(helm.HelmError, match=re.escape(message)):
        chart.install(cluster.kubeconfig, "second", {"fullnameOverride": "second"})


def test_uninstalling_leaves_no_cluster_role(cluster):
    # The CRDs belong to the existing release, and helm does not let another release own them.
    chart.install(cluster.kubeconfig, "temporary", {"crds": {"install": False}})
    chart.uninstall(cluster.kubeconfig, "temporary")
    with client(cluster.kubeconfig) as admin:
        roles = [each.metadata.name for each in RbacAuthorizationV1Api(admin).list_cluster_role().items]
    assert not [name for name in roles if name.startswith("temporary:")]


def test_an_existing_release_is_left_alone(cluster, installed):
    with pytest.raises(UsageError, match="eclectus-system already has a release eclectus"):
        chart.install(cluster.kubeconfig, values={"fullnameOverride": "other"})
    with client(cluster.kubeconfig) as admin:
        assert CoreV1Api(admin).read_namespaced_config_map("eclectus", NAMESPACE)
