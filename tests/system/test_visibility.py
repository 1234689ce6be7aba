"""A user with the role `view` of one namespace asks the API server why a pod waits; the scheduler answers.

The scheduler runs beside a real API server, which routes requests to it, with the rights of the chart alone.
"""

import json
import os
import socket
import ssl
import subprocess
import sys
from contextlib import closing, contextmanager
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest
import yaml

from eclectus.api.names import SPECULATIVE_LABEL, VISIBILITY_API, VISIBILITY_GROUP, VISIBILITY_SERVICE
from eclectus.live.visibility import own_address
from eclectus_e2e.errors import UsageError
from eclectus_e2e.testbed import chart
from eclectus_e2e.testbed.controlplane.components import audit_log
from eclectus_e2e.testbed.controlplane.endpoint import free_ports
from eclectus_e2e.testbed.controlplane.plane import ControlPlane, PlaneOptions
from eclectus_e2e.testbed.kubectl import Kubectl
from eclectus_hack.permissions import forbidden, granted, requests
from live_cluster import pod, wait

pytestmark = pytest.mark.live
OPTIONS = PlaneOptions(taint_nodes_by_condition=False, audited_namespace=chart.NAMESPACE)
SERVICE = f"{chart.RELEASE}-visibility"


def path_of(namespace, name="waits"):
    return f"/apis/{VISIBILITY_API}/namespaces/{namespace}/pods/{name}/explanation"


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    try:
        address = own_address("https://198.51.100.1")  # an EndpointSlice takes no loopback address
    except OSError:
        pytest.skip("this machine has no address beside loopback")
    folder = tmp_path_factory.mktemp("visibility")
    with ControlPlane.started(folder / "cluster", OPTIONS) as plane:
        port, page_port = free_ports(2)
        config = {
            "server": {"address": "127.0.0.1", "port": page_port},
            "visibility": {"port": port, "advertiseAddress": address},
            "profiles": [{"schedulerName": "eclectus", "speculate": {"policy": "late"}}],
        }
        copies = {"enabled": True, "replicas": 0, "copies": {"namespaces": ["own"]}}
        none = {"replicas": 0}
        values = {"visibility": {"enabled": True}, "config": config, "scheduler": none, "operator": copies}
        admin = Kubectl(plane.binaries, plane.kubeconfig)
        for namespace in ("own", "others"):
            admin("create", "namespace", namespace)
            admin("create", "serviceaccount", "reader", "-n", namespace)
        installed = chart.install(plane.kubeconfig, values=values)
        people = ("--user=anna", "--serviceaccount=own:reader")
        admin("create", "rolebinding", "readers", "-n", "own", "--clusterrole=view", *people)
        for namespace in ("own", "others"):
            admin("create", "-n", namespace, "-f", "-", given=big(namespace))
        with running(plane, installed, folder):
            found = SimpleNamespace(plane=plane, admin=admin, port=port, address=address, folder=folder)
            found.installed, found.values = installed, values
            wait("the API is available", lambda: is_available(admin))
            wait("view contains it", lambda: explained(found, by_certificate(found), "own") is not None)
            yield found


def big(namespace):
    body = pod("waits", cpu="1000")
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        **body,
        "metadata": {**body["metadata"], "namespace": namespace},
    }


@contextmanager
def running(plane, installed, folder):
    """The scheduler with the chart's configuration and its account's token."""
    token = chart.service_account_kubeconfig(
        plane.kubeconfig, folder, installed.namespace, installed.service_account
    )
    (folder / "config.yaml").write_text(installed.configuration)
    program = [sys.executable, "-c", "from eclectus.cli.main import main; main()", "scheduler"]
    command = [*program, "--config", str(folder / "config.yaml"), "--kubeconfig", str(token)]
    environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def is_available(admin):
    conditions = admin.get("apiservice", VISIBILITY_SERVICE).get("status", {}).get("conditions", [])
    return any((each["type"], each["status"]) == ("Available", "True") for each in conditions)


def by_certificate(world):
    return Kubectl(world.plane.binaries, world.plane.clients.kubeconfig("anna", "anna"))


def by_token(world):
    kubeconfig = chart.service_account_kubeconfig(world.plane.kubeconfig, world.folder, "own", "reader")
    return Kubectl(world.plane.binaries, kubeconfig)


def explained(world, kubectl, namespace):
    """The explanation; None while it is refused."""
    try:
        return json.loads(kubectl("get", "--raw", path_of(namespace)))
    except UsageError:
        return None


@pytest.mark.parametrize("who", [by_certificate, by_token])
def test_who_has_view_in_a_namespace_asks_why_their_pod_waits(world, who):
    kubectl = who(world)
    wait("it was looked at", lambda: explained(world, kubectl, "own")["state"] == "unschedulable")
    found = explained(world, kubectl, "own")
    assert (found["kind"], found["apiVersion"]) == ("PodExplanation", VISIBILITY_API)
    assert "no node" in found["summary"]


@pytest.mark.parametrize("who", [by_certificate, by_token])
def test_about_pods_of_others_the_answer_is_forbidden(world, who):
    with pytest.raises(UsageError, match=r"Forbidden|is forbidden"):
        who(world)("get", "--raw", path_of("others"))


def test_who_may_ask_but_not_get_the_pod_is_forbidden_by_the_scheduler(world):
    name = "asks-alone"
    rule = {"apiGroups": [VISIBILITY_GROUP], "resources": ["pods/explanation"], "verbs": ["get"]}
    role = {"kind": "ClusterRole", "metadata": {"name": name}, "rules": [rule]}
    world.admin("create", "-f", "-", given={"apiVersion": "rbac.authorization.k8s.io/v1", **role})
    world.admin("create", "clusterrolebinding", name, f"--clusterrole={name}", "--user=berta")
    berta = Kubectl(world.plane.binaries, world.plane.clients.kubeconfig("berta", "berta"))
    refusals = []

    def is_refused_by_the_scheduler():
        with pytest.raises(UsageError) as refused:
            berta("get", "--raw", path_of("own"))
        refusals.append(str(refused.value))
        return 'cannot get resource "pods" in API group ""' in refusals[-1]

    wait("it is the scheduler that refuses", is_refused_by_the_scheduler)
    assert "berta" in refusals[-1]


def test_a_pod_that_does_not_exist_is_not_found(world):
    with pytest.raises(UsageError, match=r'pods "none" not found'):
        world.admin("get", "--raw", path_of("own", "none"))


def test_the_command_needs_neither_a_token_nor_a_port_forward(world):
    by_certificate(world)
    kubeconfig = world.plane.directory / "anna.kubeconfig"
    program = [sys.executable, "-c", "from eclectus.cli.main import main; main()", "explain", "pod/waits"]
    command = [*program, "-n", "own", "--kubeconfig", str(kubeconfig)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "no node" in ended.stdout


def test_discovery_names_the_resources(world):
    found = json.loads(world.admin("get", "--raw", f"/apis/{VISIBILITY_API}"))["resources"]
    assert {each["name"] for each in found} >= {"pods/explanation", "pendingpods", "nodespeeds"}


PENDING = f"pendingpods.{VISIBILITY_GROUP}"
HEADS = ["NAME", "STATE", "AHEAD", "PRIORITY", "AGE", "REASON"]


@pytest.mark.parametrize("who", [by_certificate, by_token])
def test_kubectl_lists_the_pods_of_a_namespace_that_wait(world, who):
    kubectl = who(world)
    wait("view contains it", lambda: is_answered(kubectl, "get", PENDING, "-n", "own"))
    head, line = kubectl("get", PENDING, "-n", "own").splitlines()
    assert head.split() == HEADS
    assert line.split()[:4] == ["waits", "unschedulable", "0", "0"]
    assert "no nodes available" in line or "0/0 nodes" in line
    (item,) = json.loads(kubectl("get", PENDING, "-n", "own", "-o", "json"))["items"]
    assert (item["kind"], item["metadata"]["name"]) == ("PendingPod", "waits")


@pytest.mark.parametrize("where", [("-n", "others"), ("-A",)], ids=["others", "all"])
def test_of_namespaces_that_they_may_not_read_nobody_lists_pods(world, where):
    with pytest.raises(UsageError, match="is forbidden"):
        by_certificate(world)("get", PENDING, *where)


def test_an_administrator_lists_all_page_by_page(world):
    head, *rows = world.admin("get", PENDING, "-A", "--chunk-size=1").splitlines()
    assert head.split() == ["NAMESPACE", *HEADS]
    assert sorted(row.split()[:2] for row in rows) == [["others", "waits"], ["own", "waits"]]


def test_speeds_and_pools_are_listed_to_who_may_list_nodes_and_pools(world):
    for name, kind in (("nodespeeds", "NodeSpeedList"), ("poolstandings", "PoolStandingList")):
        found = json.loads(world.admin("get", "--raw", f"/apis/{VISIBILITY_API}/{name}"))
        assert (found["kind"], found["items"]) == (kind, [])
        with pytest.raises(UsageError, match="is forbidden"):
            by_certificate(world)("get", "--raw", f"/apis/{VISIBILITY_API}/{name}")


def test_what_would_be_different_is_asked_like_the_explanation(world):
    path = f"/apis/{VISIBILITY_API}/namespaces/own/pods/waits/what-if?whatIf=request.cpu%3D1"
    assert json.loads(by_certificate(world)("get", "--raw", path))["kind"] == "WhatIfExplanation"


def test_questions_have_a_priority_level_of_their_own(world):
    (uid,) = [
        each["metadata"]["uid"]
        for each in world.admin.get("flowschemas")
        if each["metadata"]["name"].endswith("-visibility")
    ]
    by_certificate(world)
    wait("the API server follows it", lambda: flow_schema_of(world, path_of("own")) == uid)


def flow_schema_of(world, path):
    """The uid of the FlowSchema by which the API server has served a request of anna."""
    known = yaml.safe_load((world.plane.directory / "anna.kubeconfig").read_text())
    url = urlsplit(known["clusters"][0]["cluster"]["server"])
    certificates = world.plane.directory / "certificates"
    tls = ssl.create_default_context()
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    tls.load_cert_chain(certificates / "anna.crt", certificates / "anna.key")
    with closing(HTTPSConnection(url.hostname, url.port, context=tls, timeout=10)) as connection:
        connection.request("GET", path)
        return connection.getresponse().getheader("X-Kubernetes-PF-FlowSchema-UID")


def is_answered(kubectl, *arguments):
    try:
        return bool(kubectl(*arguments))
    except UsageError:
        return False


def test_pending_says_where_pods_wait(world):
    by_certificate(world)
    kubeconfig = world.plane.directory / "anna.kubeconfig"
    program = [sys.executable, "-c", "from eclectus.cli.main import main; main()", "pending"]
    command = [*program, "-n", "own", "--kubeconfig", str(kubeconfig)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (ended.returncode, ended.stderr) == (0, "")
    head, line, *_ = ended.stdout.splitlines()
    assert head.split()[5:7] == ["STATE", "AHEAD"]
    assert line.split()[5:7] == ["unschedulable", "0"]


@contextmanager
def page_of(kubeconfig):
    """What asks the server of `eclectus ui` for a path until it is admitted, and returns (status, answer)."""
    program = [sys.executable, "-c", "from eclectus.cli.main import main; main()", "ui", "-n", "own"]
    with subprocess.Popen(
        [*program, "--kubeconfig", str(kubeconfig)], stdout=subprocess.PIPE, text=True
    ) as served:
        url = urlsplit(served.stdout.readline().strip())
        headers = {"Authorization": f"Bearer {url.fragment.removeprefix('token=')}"}

        def once(path):
            with closing(HTTPConnection(url.hostname, url.port, timeout=60)) as connection:
                connection.request("GET", path, headers=headers)
                answer = connection.getresponse()
                return None if answer.status == 429 else (answer.status, json.loads(answer.read()))

        def asked(path):
            found = []
            wait(f"{path} is admitted", lambda: (answer := once(path)) and not found.append(answer))
            return found[0]

        try:
            yield asked
        finally:
            served.terminate()


def test_the_page_shows_to_a_user_what_the_commands_show_and_of_others_nothing(world):
    by_certificate(world)
    kubeconfig = world.plane.directory / "anna.kubeconfig"
    with page_of(kubeconfig) as asked:
        status, queue = asked("/api/queue?namespace=own")
        assert (status, [each["name"] for each in queue["items"]]) == (200, ["waits"])
        status, pod = asked("/api/pod?namespace=own&name=waits")
        assert (status, "no node" in pod["text"]) == (200, True)
        for path in ("queue?namespace=others", "queue", "pod?namespace=others&name=waits", "nodes"):
            status, refused = asked(f"/api/{path}")
            assert (status, refused["message"].startswith("You may not see this")) == (403, True), path
    with page_of(world.plane.kubeconfig) as asked:
        assert {each["namespace"] for each in asked("/api/queue")[1]["items"]} == {"others", "own"}
        assert (asked("/api/nodes")[0], asked("/api/pools")[0]) == (200, 200)


@pytest.mark.parametrize("client", ["", "anna", "admin", "server"])
def test_who_goes_past_the_api_server_is_refused_whatever_headers_say(world, client):
    """Also the administrator's certificate, and that of the API server for others than aggregated ones."""
    world.plane.clients.kubeconfig("anna", "anna")
    certificates = world.plane.directory / "certificates"
    tls = ssl.create_default_context()
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    if client:
        tls.load_cert_chain(certificates / f"{client}.crt", certificates / f"{client}.key")
    headers = "Host: x\r\nX-Remote-User: admin\r\nX-Remote-Group: system:masters\r\nConnection: close\r\n"
    request = f"GET {path_of('own')} HTTP/1.1\r\n{headers}\r\n".encode()
    assert answer_to(request, (world.address, world.port), tls) == b"", "no byte is answered"
    proxy = certificates / "front-proxy"
    tls.load_cert_chain(proxy / "client.crt", proxy / "client.key")

    def is_answered():  # not with 429, as others may have asked too much about the namespace
        return answer_to(request, (world.address, world.port), tls).startswith(b"HTTP/1.1 200")

    wait("the API server's certificate for it is answered", is_answered)


def answer_to(request, where, tls):
    """The first bytes; none if the connection is closed."""
    with socket.create_connection(where, 10) as plain:
        try:
            with tls.wrap_socket(plain) as connection:
                connection.sendall(request)
                return connection.recv(100)
        except OSError:
            return b""


# -- how far pods are --------------------------------------------------------------------------------


@pytest.fixture
def running_pod(world):
    """A pod that has opted in and runs, as its kubelet would say."""
    spec = {"nodeName": "n", "serviceAccountName": "reader", "automountServiceAccountToken": False}
    body = pod("works", **spec)
    body["metadata"] |= {"namespace": "own", "labels": {SPECULATIVE_LABEL: "true"}}
    world.admin("create", "-f", "-", given={"apiVersion": "v1", "kind": "Pod", **body})
    status = json.dumps({"status": {"phase": "Running"}})
    world.admin("patch", "pod", "works", "-n", "own", "--subresource=status", "--type=merge", "-p", status)
    yield "works"
    world.admin("delete", "pod", "works", "-n", "own", "--force", "--grace-period=0")


def progress_path(name):
    return f"/apis/{VISIBILITY_API}/namespaces/own/pods/{name}/progress"


def said(world, progress, name, *bound):
    """The status and the answer to a pod, or to an account, that says how far the pod is."""
    token = world.admin("create", "token", "reader", "-n", "own", *bound).strip()
    known = yaml.safe_load(world.plane.kubeconfig.read_text())
    url = urlsplit(known["clusters"][0]["cluster"]["server"])
    tls = ssl.create_default_context()
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    with closing(HTTPSConnection(url.hostname, url.port, context=tls, timeout=10)) as connection:
        connection.request("POST", progress_path(name), progress, {"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())


def test_a_pod_says_with_its_own_token_how_far_it_is_and_nobody_else_does(world, running_pod):
    bound = ("--bound-object-kind=Pod", f"--bound-object-name={running_pod}")
    found = []

    def is_followed():
        found[:] = said(world, "0.42", running_pod, *bound)
        return found[1].get("followed")

    wait("the scheduler follows the pod", is_followed, every=5.0)
    assert (found[0], found[1]["kind"], found[1]["progress"]) == (200, "PodProgress", 0.42)
    wait("it is explained", lambda: "Of its work 42% is done" in explained_copies(world, running_pod))
    status, refused = said(world, "0.9", running_pod)
    assert (status, "with the token that it was given" in refused["message"]) == (403, True)
    assert said(world, "0.9", "waits", *bound)[0] == 403
    with pytest.raises(UsageError, match=r"forbidden|Forbidden"):
        by_certificate(world)("create", "--raw", progress_path("works"), "-f", "-", given=0.9)


def explained_copies(world, name):
    return json.loads(world.admin("get", "--raw", path_of("own", name))).get("copies", "")


def test_the_chart_grants_what_is_needed(world):
    used = requests(audit_log(world.plane.directory), world.installed.user)
    assert {each.resource for each in used} >= {"configmaps", "apiservices", "endpointslices"}
    assert forbidden(granted(chart.render(world.values)), used) == set()


def test_a_namespace_is_deleted_while_it_is_served(world):
    world.admin("create", "namespace", "short")
    world.admin("delete", "namespace", "short", "--timeout=60s")
    assert Path(world.folder / "log").read_text().count("Traceback") == 0
