"""Who may read the pages of a scheduler, by the rights that a real API server knows."""

import itertools
import ssl
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest

from eclectus.kubeclient.serving.access import REVIEWS_A_SECOND, REVIEWS_IN_A_ROW
from eclectus.kubeclient.serving.certificate import REREAD_SECONDS, self_signed
from forwarder import Forwarder
from live_cluster import Scheduler, wait
from secured_pages import page, token_of

pytestmark = pytest.mark.live
DELEGATED = {"port": 0, "authentication": "delegated"}
RBAC = "/apis/rbac.authorization.k8s.io/v1"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
VERBOSITY = "/debug/flags/v"
FLOOD, CLIENTS, RENEWALS = 1000, 16, 3


@pytest.fixture
def reader(admin):
    """A token that may get /metrics and /speeds, and put the verbosity of the log."""
    name = admin.namespace
    rules = [
        {"nonResourceURLs": ["/metrics", "/speeds"], "verbs": ["get"]},
        {"nonResourceURLs": [VERBOSITY], "verbs": ["put"]},
    ]
    role = {"metadata": {"name": name}, "rules": rules}
    subjects = [{"kind": "ServiceAccount", "name": "reader", "namespace": name}]
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    admin.send("POST", f"{RBAC}/clusterroles", role)
    binding = {"metadata": {"name": name}, "roleRef": reference, "subjects": subjects}
    admin.send("POST", f"{RBAC}/clusterrolebindings", binding)
    yield token_of(admin, "reader", name)
    for kind in ("clusterrolebindings", "clusterroles"):
        admin.send("DELETE", f"{RBAC}/{kind}/{name}")


def status(address, path, token=""):
    return page(address, path, token)[0]


def test_metrics_are_for_whom_the_api_server_permits_and_health_checks_for_everybody(
    scheduler, admin, reader
):
    running = scheduler(server=DELEGATED).wait_deciding()
    address, stranger = running.address, token_of(admin, "stranger", admin.namespace)
    wait("the role counts", lambda: status(address, "/metrics", reader) == 200)  # RBAC takes its time
    assert "eclectus_leader 1.0" in page(address, "/metrics", reader)[1]
    assert status(address, "/speeds", reader) == 200
    assert status(address, "/configz", reader) == 403
    code, text = page(address, "/metrics", stranger)
    assert code == 403
    assert f'User \\"system:serviceaccount:{admin.namespace}:stranger\\" cannot get path' in text
    assert status(address, "/metrics") == status(address, "/metrics", "made-up") == 401
    assert [status(address, path) for path in ("/livez", "/readyz", "/healthz")] == [200, 200, 200]
    assert page(address, VERBOSITY, reader, put="2") == (200, "the verbosity is 2, it was 1\n")
    assert page(address, VERBOSITY, stranger, put="0")[0] == 403
    admin.send("DELETE", f"/api/v1/namespaces/{admin.namespace}/serviceaccounts/stranger")
    wait("a token of a deleted account is refused", lambda: status(address, "/metrics", stranger) == 401)
    assert running.stop() == 0


def test_a_flood_of_made_up_tokens_costs_few_reviews_and_the_lease_is_renewed(scheduler, admin, tmp_path):
    running = scheduler(server=DELEGATED, lease={"retryPeriod": "1s"}).wait_deciding()
    address, lease = running.address, f"{LEASES}/{tmp_path.name.lower().replace('_', '-')}"
    wait("it serves", lambda: status(address, "/livez") == 200)
    found, renewals, stop = Counter(), set(), threading.Event()

    def flood(client):
        for number in itertools.count():
            if stop.is_set():
                return
            found[status(address, "/metrics", f"made-up-{client}-{number}")] += 1

    def has_renewed_and_answered():
        renewals.add(admin.get(lease)["spec"]["renewTime"])
        assert status(address, "/livez") == 200
        return len(renewals) > RENEWALS and found.total() >= FLOOD

    before, began = reviews(admin), time.monotonic()
    with ThreadPoolExecutor(CLIENTS) as clients:
        floods = [clients.submit(flood, client) for client in range(CLIENTS)]
        try:
            wait("a thousand tokens, and renewals meanwhile", has_renewed_and_answered)
        finally:
            stop.set()
    for each in floods:
        each.result()
    asked = reviews(admin) - before
    assert found.keys() == {401, 429}
    assert asked <= REVIEWS_IN_A_ROW + REVIEWS_A_SECOND * (time.monotonic() - began)
    assert running.stop() == 0


def test_a_rotated_certificate_is_served_without_a_restart(scheduler, tmp_path):
    files = {"tlsCertFile": tmp_path / "tls.crt", "tlsPrivateKeyFile": tmp_path / "tls.key"}
    first = write(files)
    running = scheduler(server={"port": 0, **{key: str(file) for key, file in files.items()}}).wait_deciding()
    wait("it serves", lambda: served(running) == first)
    second = write(files)
    assert second != first
    wait("the new one is served", lambda: served(running) == second, 12 * REREAD_SECONDS)
    assert status(running.address, "/metrics") == 200, "authentication is none on loopback"
    assert running.stop() == 0


def test_an_api_server_that_is_away_is_an_error_of_the_request(control_plane, tmp_path, admin, reader):
    with Forwarder(urlsplit(control_plane.url).port) as forwarder:
        kubeconfig = tmp_path / "kubeconfig"
        text = control_plane.kubeconfig.read_text()
        kubeconfig.write_text(text.replace(control_plane.url, f"https://127.0.0.1:{forwarder.port}"))
        forwarder.open()
        election = {"leaderElect": False}  # a leader that cannot renew its Lease would end
        running = Scheduler(tmp_path, kubeconfig, server=DELEGATED, lease=election).start().wait_deciding()
        try:
            wait("the role counts", lambda: status(running.address, "/metrics", reader) == 200)
            forwarder.close()
            wait("it cannot ask", lambda: status(running.address, "/speeds", reader) == 500)
            assert "this server's log says why" in page(running.address, "/configz", reader)[1]
            assert status(running.address, "/livez") == 200
            forwarder.open()
            wait("it can ask again", lambda: status(running.address, "/configz", reader) == 403)
            assert running.stop() == 0
        finally:
            running.kill()


def reviews(admin):
    """TokenReviews that the API server has answered."""
    text = admin.text("/metrics")
    lines = [line for line in text.splitlines() if line.startswith("apiserver_request_total{")]
    return sum(float(line.split()[-1]) for line in lines if 'resource="tokenreviews"' in line)


def write(files):
    """Write a new certificate and its key; returns the certificate as DER."""
    certificate, mark, key = self_signed().decode().partition("-----BEGIN PRIVATE KEY-----")
    for file, text in zip(files.values(), (certificate, mark + key), strict=True):
        file.write_text(text)
    return ssl.PEM_cert_to_DER_cert(certificate)


def served(running):
    host, _, port = running.address.rpartition(":")
    return ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate((host, int(port))))
