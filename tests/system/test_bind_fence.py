"""The chart's policy on a real API server: a late bind of a former leader is refused."""

import signal

import pytest

from eclectus.api.names import LEADER_SINCE, LEASE_LABEL
from eclectus.kubeclient.api_errors import MissingError, RejectedError
from eclectus.kubeclient.election import lease_label
from eclectus.live.watch.reflector import FEW_OBJECTS
from eclectus_e2e.testbed.chart import render
from live_cluster import pod, wait

pytestmark = pytest.mark.live

POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
SHORT_LEASE = {"leaseDuration": "8s", "renewDeadline": "6s", "retryPeriod": "500ms"}
SHORT_LEASE |= {"bindFence": True, "resourceName": "fenced"}


LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/fenced"


@pytest.fixture
def fence(admin):
    """The policy, for the user of these tests and the Lease of their schedulers."""
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    user = admin.send("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", review)
    username = user["status"]["userInfo"]["username"]
    policy, binding = (each for each in render() if each["metadata"]["name"].endswith("-bind-fence"))
    policy["spec"]["matchConditions"][0]["expression"] = f"request.userInfo.username == '{username}'"
    binding["spec"]["paramRef"]["namespace"] = "kube-system"
    binding["spec"]["paramRef"]["selector"]["matchLabels"] = {LEASE_LABEL: lease_label("fenced")}
    admin.send("POST", POLICIES, policy)
    admin.send("POST", BINDINGS, binding)
    yield
    admin.send("DELETE", f"{BINDINGS}/{binding['metadata']['name']}")
    admin.send("DELETE", f"{POLICIES}/{policy['metadata']['name']}")


def refused(admin, name, since):
    """Why a bind of a leader that leads since then is refused; empty if it is not."""
    target = {"apiVersion": "v1", "kind": "Node", "name": "n00"}
    metadata = {"name": name, "annotations": {LEADER_SINCE: since}}
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
    try:
        admin.send("POST", f"/api/v1/namespaces/{admin.namespace}/pods/{name}/binding", body)
    except (MissingError, RejectedError) as error:
        return error.message
    return ""


def since_of(admin, name):
    """Since when the leader led that has bound a pod."""
    found = admin.get(f"/api/v1/namespaces/{admin.namespace}/pods/{name}")
    return found["metadata"]["annotations"][LEADER_SINCE]


def test_a_late_bind_is_refused_and_the_next_leader_binds(admin, scheduler, fence):
    """One test: an API server that has seen a policy go does not follow Leases any more."""
    # So many that the next leader does not list them again; and before a Lease is to be renewed in time.
    admin.create(pod(name, scheduler="nobody") for name in ("late", "in-time", *map(str, range(FEW_OBJECTS))))
    first = scheduler(lease=SHORT_LEASE).wait_deciding()
    second = scheduler(lease=SHORT_LEASE, name="b")
    wait("the second one has listed the pods", lambda: second.lines("pods listed"))
    old = "2020-01-01T00:00:00.000000Z"
    # A policy takes a moment to be in force; until then the API server says that there is no such pod.
    wait("the fence is in force", lambda: "the bind is late" in refused(admin, "absent", old))
    assert "the bind is late" in refused(admin, "late", old)
    assert "late" not in admin.bound()
    assert refused(admin, "in-time", admin.get(LEASE)["spec"]["acquireTime"]) == ""

    admin.create([pod("one")])
    wait("the first one binds", lambda: "one" in admin.bound())
    first.signal(signal.SIGSTOP)
    admin.create([pod("two")])
    wait("the second one binds", lambda: "two" in admin.bound())
    assert len(second.lines("pods caught up")) == len(second.lines("pods listed")) == 1
    assert since_of(admin, "one") < since_of(admin, "two") == admin.get(LEASE)["spec"]["acquireTime"]
    before = since_of(admin, "one")
    wait("the fence follows the Lease", lambda: "the bind is late" in refused(admin, "absent", before))
    assert "the bind is late" in refused(admin, "late", before)
    first.signal(signal.SIGCONT)
    wait("the first one ends", lambda: first.code == 1)
