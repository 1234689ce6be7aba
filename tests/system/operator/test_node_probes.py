"""NodeProbes on a real API server: the chart's account, roles and policies, a scheduler, fake nodes."""

import signal
from collections import Counter

import pytest

from eclectus.api.names import (
    BENCHMARK_LABEL,
    CLASS_LABEL,
    IDEMPOTENT,
    INSTANCE_LABEL,
    NODE_PROBES_PATH,
    NODE_PROFILES_PATH,
    POOLS_PATH,
)
from eclectus.kubeclient.api_errors import ApiError
from eclectus.model.objects import kind_of
from eclectus_e2e.testbed import chart
from eclectus_e2e.testbed.controlplane.components import audit_log
from eclectus_e2e.testbed.kubelet.nodes import NodeSpec
from eclectus_hack.permissions import forbidden, requests
from live_cluster import Admin, pod, wait
from live_operator import QUICK, node_probe, rights_of_operator, unused
from pool_objects import new_pool
from refused_templates import REFUSED
from secured_pages import READER, READERS, page, token_of

pytestmark = pytest.mark.live

VALUES = {"operator": {"enabled": True}, "metrics": {"readers": READERS}}
PROBES = NODE_PROBES_PATH
PROFILES = NODE_PROFILES_PATH
PODS = f"/api/v1/namespaces/{chart.NAMESPACE}/pods"
MEMORY_LIMIT = 256.0  # MiB, the operator's in the chart
NODES = [
    NodeSpec(name=f"n{i}", group="all", speed=(1.0, 2.0)[i % 2], labels={"pool": "batch"}) for i in range(4)
]
SCHEDULER = {"nodeProfiles": {"interval": "1s"}}


@pytest.fixture
def admin(plane, installed, kubelets, scheduler, namespace):
    kubelets.reset()
    with Admin(plane.kubeconfig, namespace) as admin:
        yield admin
        for each in admin.get(PROBES)["items"]:
            admin.send("DELETE", f"{PROBES}/{each['metadata']['name']}")
        wait("Kubernetes takes the pods away with their NodeProbe", lambda: not admin.get(PODS)["items"])


def status(admin, name="batch"):
    return admin.get(f"{PROBES}/{name}").get("status", {})


def suspended(admin, name="batch"):
    """Suspend the NodeProbe; wait until every run has ended. Returns the status."""
    body = {"spec": {"suspend": True}}
    admin.send("PATCH", f"{PROBES}/{name}", body, content_type="application/merge-patch+json")

    def has_ended():
        found = status(admin, name)
        ready = next(each for each in found["conditions"] if each["type"] == "Ready")
        return ready["reason"] == "Suspended" and not found["runs"]

    wait("all runs have ended", has_ended)
    return status(admin, name)


def test_probes_run_on_the_selected_nodes_and_profiles_show_them(admin, operator, kubelets):
    running = operator().wait_leading()
    admin.send("POST", PROBES, node_probe("batch", {"pool": "batch"}))
    wait("every node was probed", lambda: len(admin.get(PROFILES)["items"]) == len(NODES))
    found = suspended(admin)
    assert found["failed"] == 0
    assert found["succeeded"] == found["nextNumber"] == len(kubelets.pod_times())
    token = token_of(admin, READER)
    wait("the reader's role counts", lambda: page(running.address, "/metrics", token)[0] == 200)
    _, metrics = page(running.address, "/metrics", token)
    assert page(running.address, "/metrics")[0] == 401
    counted = f'eclectus_probes_total{{outcome="succeeded",stage="Running"}} {found["succeeded"]:.1f}'
    assert counted in metrics.splitlines()
    metadata = admin.get(f"{PROBES}/batch")["metadata"]
    assert not metadata.keys() & {"finalizers", "annotations"}, "the operator must not delay its deletion"
    assert {entry.klass for entry in kubelets.pod_times()} == {"bench"}, "the class that the scheduler learns"
    assert not admin.get(PODS)["items"]
    for profile in admin.get(PROFILES)["items"]:
        assert profile["status"]["lastProbe"]["reason"] == "Completed"
        assert profile["metadata"]["ownerReferences"][0]["kind"] == "Node"
    wait("the scheduler has learned of them", lambda: learned(admin))
    wait("it has written how busy the cluster is", lambda: "bench" in str(status(admin).get("load")))


def learned(admin):
    """Whether the scheduler has written what it learned from probes into every profile."""
    profiles = [each["status"] for each in admin.get(PROFILES)["items"]]
    kinds = [[kind_of(work["name"]) for work in each.get("classes", [])] for each in profiles]
    return all("bench" in each for each in kinds)


def recent_pod():
    """A pod that asks to be copied. The API server gives it a volume with the token of its account."""
    security = {
        "runAsNonRoot": True,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    # The fake kubelet knows by the arguments how long it takes: a copy has no annotations of its original.
    container = {"name": "c", "image": "none", "args": ["--units", "5"], "securityContext": security}
    body = pod("recent", containers=[container])
    labels = {CLASS_LABEL: "bench", BENCHMARK_LABEL: "true"}
    body["metadata"] = {"name": "recent", "labels": labels, "annotations": {IDEMPOTENT: "true"}}
    return body


def test_a_recent_pod_is_copied_for_as_long_as_it_is_there(admin, operator, kubelets):
    operator().wait_leading()
    admin.send("POST", PODS, recent_pod())
    recent = [{"name": "bench", "recent": {}}]
    admin.send("POST", PROBES, node_probe("batch", {"pool": "batch"}, classes=recent))
    wait("it was copied", lambda: status(admin).get("succeeded", 0) >= 3)
    admin.send("DELETE", f"{PODS}/recent")
    wait("its condition says so", lambda: "NothingRecent" in str(status(admin).get("conditions")))
    found = suspended(admin)
    copies = [entry for entry in kubelets.pod_times() if entry.name != "recent"]
    assert len(copies) == found["succeeded"]
    assert {(entry.klass, entry.outcome) for entry in copies} == {("bench", "succeeded")}
    assert found["failed"] <= 1, "one at most was begun when the pod was deleted"


@pytest.mark.slow
def test_an_operator_that_is_killed_leaks_nothing_and_runs_nothing_twice(admin, operator, kubelets):
    running = operator(times=QUICK)
    admin.send("POST", PROBES, node_probe("batch", {"pool": "batch"}))
    for kill in range(1, 5):
        running.wait_leading(kill)
        wait("some have run", lambda kill=kill: len(kubelets.pod_times()) >= 4 * kill)
        running.kill()
        running.start()
    found = suspended(admin)
    runs = Counter(entry.name for entry in kubelets.pod_times())
    assert set(runs.values()) == {1}
    assert {entry.outcome for entry in kubelets.pod_times()} == {"succeeded"}
    assert found["succeeded"] + found["failed"] == found["nextNumber"]
    assert found["succeeded"] == len(runs)
    assert not admin.get(PODS)["items"]


def test_a_standby_takes_over_from_a_frozen_leader(admin, operator, kubelets):
    leader = operator("a", QUICK).wait_leading()
    standby = operator("b", QUICK)
    admin.send("POST", PROBES, node_probe("batch", {"pool": "batch"}))
    wait("the leader probes", kubelets.pod_times)
    assert not standby.count_in_log("leading")
    leader.signal(signal.SIGSTOP)
    standby.wait_leading()
    before = status(admin)["succeeded"]
    wait("the standby probes", lambda: status(admin)["succeeded"] > before)
    leader.signal(signal.SIGCONT)
    wait("the old leader leaves", lambda: leader.code is not None)
    assert leader.code == 1
    assert suspended(admin)["failed"] == 0
    assert set(Counter(entry.name for entry in kubelets.pod_times()).values()) == {1}
    assert page(standby.address, "/livez") == (200, "ok")
    assert standby.stop() == 0


def test_no_probe_on_a_cordoned_node_nor_while_another_pod_waits_for_room(admin, operator):
    running = operator().wait_leading()
    cordon = {"spec": {"unschedulable": True}}
    for name in ("n0", "n1", "n2"):
        admin.patch(f"/api/v1/nodes/{name}", cordon)
    # n3 has room for one of them. Who knows of the label knows of what was written to nodes before.
    admin.patch("/api/v1/nodes/n3", {"metadata": {"labels": {"written": "last"}}})
    spec = {"nodeSelector": {"written": "last"}, "terminationGracePeriodSeconds": 1}
    admin.create([pod(name, cpu="3", work=600, **spec) for name in ("one", "two")])
    wait("the other waits", lambda: any("Insufficient cpu" in str(each) for each in admin.pods().values()))
    admin.send("POST", PROBES, node_probe("batch", {"pool": "batch"}))
    wait("its condition says so", lambda: "RealPodsWait" in str(status(admin).get("conditions")))
    assert status(admin)["nextNumber"] == 0
    for name in ("one", "two"):
        admin.send("DELETE", f"/api/v1/namespaces/{admin.namespace}/pods/{name}")
    wait("it continues", lambda: status(admin)["succeeded"] >= 3)
    suspended(admin)
    assert running.count_in_log("on node n3")
    assert not any(running.count_in_log(f"on node {name}") for name in ("n0", "n1", "n2"))
    for name in ("n0", "n1", "n2"):
        admin.patch(f"/api/v1/nodes/{name}", {"spec": {"unschedulable": None}})
    admin.patch("/api/v1/nodes/n3", {"metadata": {"labels": {"written": None}}})


@pytest.mark.slow
@pytest.mark.alone
def test_probes_go_on_beside_two_thousand_pods_that_no_node_can_run_until_one_waits_for_room(admin, operator):
    running = operator().wait_leading()
    admin.create(pod(f"elsewhere-{at}", nodeSelector={"pool": "none"}) for at in range(2000))
    admin.send("POST", PROBES, node_probe("batch", {"pool": "batch"}))
    wait("they run", lambda: status(admin).get("succeeded", 0) > 2 * len(NODES), every=1.0)
    admin.create(pod(f"large-{at}", cpu="3", work=600) for at in range(len(NODES) + 1))
    wait("one has no room", lambda: "RealPodsWait" in str(status(admin).get("conditions")), every=1.0)
    for at in range(len(NODES) + 1):
        admin.send("DELETE", f"/api/v1/namespaces/{admin.namespace}/pods/large-{at}")
    before = status(admin)["succeeded"]
    wait("they go on", lambda: status(admin)["succeeded"] > before + len(NODES), every=1.0)
    assert suspended(admin)["failed"] == 0
    assert running.count_in_log("leading") == 1, "it has kept its Lease"
    assert running.peak_mebibytes < MEMORY_LIMIT


def test_an_invalid_node_probe_is_refused_or_gets_a_condition(admin, operator, installed):
    def objects_of_events(reason):
        events = admin.get(
            "/apis/events.k8s.io/v1/namespaces/default/events", fieldSelector=f"reason={reason}"
        )
        return [each["regarding"]["name"] for each in events["items"]]

    def refusal(path, body):
        try:
            admin.send("POST", path, body)
        except ApiError as error:
            return error.message
        return ""

    for number, case in enumerate(REFUSED):
        body = node_probe(f"refused-{number}", {}, classes=[{"name": "w", "template": case.template}])
        assert "probe pod" in refusal(PROBES, body), case.name
    two = node_probe("two", {}, classes=[{"name": "w", "unit": {"kind": "cpu"}, "run": {"image": "i"}}])
    assert "give exactly one of unit, run, template and recent" in refusal(PROBES, two)
    (instance,) = [each[11:] for each in installed.operator_arguments if each.startswith("--instance=")]
    fake = {
        "metadata": {"name": "p", "labels": {INSTANCE_LABEL: instance}},
        "spec": pod("p")["spec"],
    }
    assert "only the operator makes pods with this label" in refusal(PODS, fake)
    admin.send("POST", PODS, {"metadata": {"name": "p"}, "spec": pod("p", scheduler="nobody")["spec"]})
    with pytest.raises(ApiError, match="only the operator makes pods with this label"):
        admin.patch(f"{PODS}/p", {"metadata": {"labels": {INSTANCE_LABEL: instance}}})
    admin.patch(f"{PODS}/p", {"metadata": {"labels": {"team": "a"}}})
    admin.send("DELETE", f"{PODS}/p")
    operator().wait_leading()
    bad = [{"name": "w", "run": {"image": "Not An Image"}}]
    admin.send("POST", PROBES, node_probe("bad", {"pool": "batch"}, classes=bad))
    admin.send("POST", PROBES, node_probe("batch", {"pool": "batch"}))
    wait("its condition says so", lambda: "InvalidSpec" in str(status(admin, "bad").get("conditions")))
    wait("the other continues", lambda: status(admin).get("succeeded", 0) >= 1)
    wait("an event says so", lambda: "bad" in objects_of_events("InvalidSpec"))
    suspended(admin)


def test_the_operator_has_the_permissions_it_uses_and_no_others(admin, operator, plane, installed, kubelets):
    """The last test of this file: the audit log has the requests of all tests above."""
    running = operator().wait_leading()
    kubelets.freeze("n0", "n1", "n2", "n3")  # pods stay bound and unstarted: the operator reads their events
    # The scheduler may have made all profiles; nothing ends now of which it would make them again.
    for each in admin.get(PROFILES)["items"]:
        admin.send("DELETE", f"{PROFILES}/{each['metadata']['name']}")
    slow = {"schedulingSeconds": 5, "pullingSeconds": 5, "startingSeconds": 5}
    admin.send("POST", PROBES, node_probe("batch", {"pool": "batch"}, deadlines=slow))
    wait("a stage is overdue", lambda: running.count_in_log("still not started"))
    kubelets.thaw("n0", "n1", "n2", "n3")
    suspended(admin)
    admin.send("POST", POOLS_PATH, new_pool("default"))
    wait("a Pool has its condition", lambda: "Accepted" in str(admin.get(f"{POOLS_PATH}/default")))
    admin.send("DELETE", f"{POOLS_PATH}/default")
    used = requests(audit_log(plane.directory), installed.operator_user)
    rights = rights_of_operator(VALUES)
    assert forbidden(rights, used) == set()
    assert unused(rights, plane, installed.operator_user) == set()
    running.stop()
