"""The chart on real nodes: pods in containers; helm upgrade, test and uninstall; rollout and drain."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from eclectus_e2e.testbed.chart import NAMESPACE
from live_cluster import WAIT_SECONDS, wait
from real_release import VALUES, pod

# The first run compiles and builds images.
pytestmark = [pytest.mark.live, pytest.mark.alone, pytest.mark.timeout(1800)]
IN = f"--namespace={NAMESPACE}"
PATIENCE = f"--timeout={WAIT_SECONDS:.0f}s"
SCHEDULERS = "app.kubernetes.io/component=scheduler"


def pods(kubectl, label=""):
    found = kubectl.get("pods", IN, f"--selector={label}")
    return {one["metadata"]["name"]: one for one in found if "deletionTimestamp" not in one["metadata"]}


def leader(kubectl):
    """The name of the leading pod, from the Lease; empty between two leaders."""
    holder = kubectl.get("lease", "eclectus", IN)["spec"].get("holderIdentity") or ""
    return next((name for name in pods(kubectl, SCHEDULERS) if holder.startswith(name)), "")


def run_pod(kubectl, name):
    """Create a pod; it must be placed and run to completion."""
    kubectl("create", "-f", "-", given=pod(name, nodeSelector={"pool": "system"}))
    wait(f"{name} is placed", lambda: kubectl.get("pod", name)["spec"].get("nodeName"))
    wait(f"{name} has run", lambda: kubectl.get("pod", name)["status"]["phase"] == "Succeeded")
    kubectl("delete", "pod", name)


def test_its_pods_are_ready_and_follow_the_values(release, kubectl):
    found = pods(kubectl)
    accounts = {one["spec"]["serviceAccountName"] for one in found.values()}
    assert accounts == {"eclectus", "eclectus-operator"}
    assert len(found) == 3
    for one in found.values():
        (container,), (status,) = one["spec"]["containers"], one["status"]["containerStatuses"]
        assert status["ready"]
        assert status["restartCount"] == 0
        assert container["imagePullPolicy"] == "Never"
    nodes = {one["spec"]["nodeName"] for one in pods(kubectl, SCHEDULERS).values()}
    assert nodes == {"system-a", "system-b"}, "the replicas are spread"
    run_pod(kubectl, "first")


def test_helm_test_passes(release):
    release.test()


def test_another_replica_leads_after_the_leader_is_deleted(release, kubectl):
    wait("there is a leader", lambda: leader(kubectl))
    old = leader(kubectl)
    kubectl("delete", "pod", old, IN, "--wait=false")
    run_pod(kubectl, "after-the-leader")
    wait("there is a new leader", lambda: leader(kubectl) not in ("", old))


def test_a_rollout_restart_replaces_every_pod(release, kubectl):
    before = pods(kubectl)
    kubectl("rollout", "restart", "deployment", IN)
    for name in ("eclectus", "eclectus-operator"):
        kubectl("rollout", "status", f"deployment/{name}", IN, PATIENCE)
    wait("the old pods are deleted", lambda: not before.keys() & pods(kubectl).keys())
    run_pod(kubectl, "after-the-restart")


def test_a_drain_takes_one_replica_at_a_time(release, kubectl):
    kubectl("cordon", "system-b")
    kubectl("rollout", "restart", "deployment/eclectus", IN)
    kubectl("rollout", "status", "deployment/eclectus", IN, PATIENCE)
    wait("both are on one node", lambda: nodes_of(kubectl) == {"system-a"})
    kubectl("uncordon", "system-b")
    with ThreadPoolExecutor(1) as executor:
        drain = executor.submit(kubectl, "drain", "system-a", "--delete-emptydir-data", PATIENCE)
        available = []
        watched = 2 * WAIT_SECONDS  # kubectl's own timeout ends earlier, with its message
        wait("it is drained", lambda: available.append(ready_replicas(kubectl)) or drain.done(), watched)
    assert "drained" in drain.result()
    assert min(available) >= 1, (
        "the disruption budget allows the second eviction after the first pod is replaced"
    )
    wait("all are on the other node", lambda: nodes_of(kubectl) == {"system-b"})
    kubectl("uncordon", "system-a")
    run_pod(kubectl, "after-the-drain")


def ready_replicas(kubectl):
    return kubectl.get("deployment", "eclectus", IN)["status"].get("readyReplicas", 0)


def nodes_of(kubectl):
    return {one["spec"].get("nodeName") for one in pods(kubectl, SCHEDULERS).values()}


def test_an_upgrade_with_a_changed_value_rolls_it_out(release, kubectl):
    before = pods(kubectl, SCHEDULERS)
    profile = {"schedulerName": "eclectus", "place": {"policy": "uniform"}}
    release.upgrade({"config": {"profiles": [profile]}})
    wait("the old pods are deleted", lambda: not before.keys() & pods(kubectl, SCHEDULERS).keys())
    assert "uniform" in json.dumps(kubectl.get("configmap", "eclectus", IN)["data"])
    run_pod(kubectl, "after-the-upgrade")


def test_an_uninstall_keeps_crds_and_objects_and_a_new_release_adopts_them(release, kubectl):
    probe = {
        "apiVersion": "eclectus.dev/v1alpha1",
        "kind": "NodeProbe",
        "metadata": {"name": "kept"},
        "spec": {"suspend": True, "nodeSelector": {}, "classes": [{"name": "c", "unit": {"kind": "cpu"}}]},
    }
    kubectl("create", "-f", "-", given=probe)
    release.uninstall()
    wait("its pods are deleted", lambda: not pods(kubectl))
    assert kubectl.get("nodeprobe", "kept")["spec"]["suspend"]
    everything = "deployments,services,configmaps"
    wait(
        "its objects are deleted",
        lambda: not kubectl.get(everything, IN, "--selector=app.kubernetes.io/name=eclectus"),
    )
    release.install(VALUES)
    run_pod(kubectl, "after-the-reinstall")
    kubectl("delete", "nodeprobe", "kept")
    release.uninstall()
