"""The chart on a real API server, and the permissions of its ServiceAccount there."""

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

from eclectus_e2e.errors import UsageError
from eclectus_e2e.testbed import chart, clusters
from eclectus_e2e.testbed.controlplane.components import audit_log
from eclectus_e2e.testbed.controlplane.plane import ControlPlane, PlaneOptions
from eclectus_hack.permissions import Permission, forbidden, granted, requests

pytestmark = pytest.mark.live
NAMESPACE = chart.NAMESPACE


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with clusters.opened(
        tmp_path_factory.mktemp("plane") / "cluster", PlaneOptions(audited_namespace=NAMESPACE)
    ) as opened:
        yield opened


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
        yield opened


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
        lambda api: CoreV1Api(api).delete_namespaced_pod("any", "default"),
        lambda api: CoreV1Api(api).delete_node("any"),
        lambda api: CoordinationV1Api(api).read_namespaced_lease("other", NAMESPACE),
        lambda api: CoordinationV1Api(api).read_namespaced_lease("eclectus", "kube-system"),
    ],
    ids=["secrets", "config maps", "delete pod", "delete node", "another lease", "a lease elsewhere"],
)
def test_the_account_has_no_other_permission(account, request_):
    with pytest.raises(ApiException) as error:
        request_(account)
    assert error.value.status == 403


def test_the_audit_log_names_what_was_forbidden(cluster, installed, account):
    if not isinstance(cluster, ControlPlane):
        pytest.skip("only a control plane built here writes an audit log")
    with pytest.raises(ApiException):
        CoreV1Api(account).list_service_for_all_namespaces()
    used = requests(audit_log(cluster.directory), installed.user)
    missing = forbidden(granted(chart.render()), used)
    assert Permission("", "services", "list") in missing


def test_with_invalid_values_nothing_is_installed(cluster):
    with pytest.raises(UsageError, match="/scheduler/image/digest"):
        chart.install(cluster.kubeconfig, "elsewhere", {"scheduler": {"image": {"digest": "abc"}}})
    with client(cluster.kubeconfig) as admin:
        names = [each.metadata.name for each in CoreV1Api(admin).list_namespace().items]
    assert "elsewhere" not in names


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
