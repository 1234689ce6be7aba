"""Wrong access to a real API server, and one that goes away: what the log says, and how often."""

import base64
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests
import yaml

from forwarder import Forwarder
from live_cluster import Scheduler, pod, wait
from tls_certificates import certificates

__all__ = ["certificates"]
pytestmark = pytest.mark.live


@pytest.fixture
def started(control_plane, admin, tmp_path):
    """Starts a scheduler with the administrator's kubeconfig after a change of its cluster and its user."""
    running = []

    def start(change) -> Scheduler:
        document = yaml.safe_load(control_plane.kubeconfig.read_text())
        change(document["clusters"][0]["cluster"], document["users"][0]["user"])
        file = tmp_path / "kubeconfig"
        file.write_text(yaml.safe_dump(document))
        running.append(Scheduler(tmp_path, file).start())
        return running[-1]

    yield start
    for each in running:
        each.kill()
    admin.remove_claims()


def warnings(scheduler: Scheduler) -> list[Any]:
    return [line["msg"] for line in scheduler.lines() if line["level"] == "warning"]


def waited_warnings(scheduler: Scheduler, least: int = 1) -> list[str]:
    """The warnings, at least so many, after the scheduler has tried three times."""
    wait("a warning", lambda: len(warnings(scheduler)) >= least)
    restarts = 'eclectus_watch_restarts_total{kind="pods"} '

    def page() -> (
        str
    ):  # requests wait for a second, until the web server is imported; longer on a busy machine
        return requests.get(f"http://{scheduler.address}/metrics", timeout=60).text

    wait("three tries", lambda: float((page().partition(restarts)[2] or "0").split()[0]) >= 3)
    return warnings(scheduler)


def test_an_unknown_authority_is_one_line(started, certificates):
    authority = base64.b64encode(certificates.authority).decode()

    def change(cluster, user):
        cluster.pop("certificate-authority", None)
        cluster["certificate-authority-data"] = authority

    (line,) = waited_warnings(started(change))
    assert "its certificate is not signed by the certificate authority that is known for it" in line


def test_a_wrong_token_is_one_line(started):
    def change(cluster, user):
        user.clear()
        user["token"] = "nobody's"  # noqa: S105 — it is meant to be wrong

    (line,) = waited_warnings(started(change))
    assert "does not accept the token in " in line


def test_missing_permissions_are_a_line_for_each_object_that_is_needed(control_plane, tmp_path):
    storage = [
        "csidrivers",
        "csinodes",
        "csistoragecapacities",
        "persistentvolumeclaims",
        "persistentvolumes",
        "storageclasses",
        "volumeattachments",
    ]
    selectors = ["replicasets", "replicationcontrollers", "services", "statefulsets"]
    groups = ["podgroups.scheduling.k8s.io", "podgroups.scheduling.x-k8s.io"]
    always = ["lease", "namespaces", "nodes", "pods", "pools"]
    expected = sorted([*always, *selectors, *storage, *groups])
    kubeconfig = control_plane.clients.kubeconfig("powerless", "powerless")
    scheduler = Scheduler(tmp_path, kubeconfig).start()
    try:
        found = waited_warnings(scheduler, len(expected))
    finally:
        scheduler.kill()
    assert sorted(line.split(":")[0] for line in found) == expected, found
    assert all("powerless" in line and "add the rule to its ClusterRole" in line for line in found)


def test_an_api_server_that_is_away_is_one_line_and_its_return_another(control_plane, started, admin):
    with Forwarder(urlsplit(control_plane.url).port) as forwarder:
        scheduler = started(
            lambda cluster, user: cluster.update(server=f"https://127.0.0.1:{forwarder.port}")
        )
        # 1. It is away at the start.
        (line,) = waited_warnings(scheduler)
        assert "connection refused: is it running there" in line
        forwarder.open()
        scheduler.wait_deciding()
        assert len(scheduler.lines("the API server answers again")) == 1
        # 2. It goes away later: the watches end, each at most once, and requests are refused.
        forwarder.close()
        wait("the watches have ended", lambda: len(warnings(scheduler)) > 1)
        forwarder.open()
        admin.create([pod("after")])
        wait("the pod is bound", admin.bound)
        assert len(warnings(scheduler)) <= 1 + 17, warnings(scheduler)


def test_the_effective_configuration_is_served(started, tmp_path: Path):
    scheduler = started(lambda cluster, user: None).wait_deciding()
    page = requests.get(f"http://{scheduler.address}/configz", timeout=60).json()["componentconfig"]
    assert page["profiles"][0]["schedulerName"] == "eclectus"
    assert page["clientConnection"]["requestsInFlight"] == 64


def test_verbosity_two_follows_a_pod(admin, scheduler):
    running = scheduler(arguments=["-v", "2"]).wait_deciding()
    admin.create([pod("followed")])
    wait("the pod is bound", admin.bound)
    wait("its last line", lambda: running.lines("bound"))
    name = f"{admin.namespace}/followed"
    way = [line["msg"].partition(":")[0] for line in running.lines() if line.get("pod") == name]
    assert way == ["received and queued", "considered", "bind sent", "bound"]
