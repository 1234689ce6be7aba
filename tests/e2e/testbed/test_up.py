"""`make up`, `make status` and `make down`."""

import pytest

from checkout import Checkout
from eclectus_e2e.testbed.controlplane.plane import ControlPlane
from eclectus_e2e.testbed.kubectl import Kubectl
from eclectus_e2e.testbed.launch import process_identity

pytestmark = pytest.mark.live


def test_up_status_and_down_of_a_bare_cluster(checkout: Checkout) -> None:
    assert checkout.run("status").returncode == 1
    first = checkout.run("up", "--without-eclectus", E2E="")
    assert first.returncode == 0, first.stderr
    try:
        pids = checkout.pids()
        assert pids.keys() == {"etcd", "kube-apiserver", "kube-controller-manager", "kubelet"}
        again = checkout.run("up", E2E="")
        assert "already running" in again.stdout
        assert checkout.pids() == pids
        assert checkout.run("status").returncode == 0
    finally:
        stopped = checkout.run("down")
    assert "kubelet" in stopped.stderr
    assert not checkout.cluster.exists()
    assert [pid for pid in pids.values() if process_identity(pid)] == []
    assert "nothing was running" in checkout.run("down").stderr


def test_an_existing_cluster_gets_nodes_and_eclectus_until_down_and_keeps_running(
    plane: ControlPlane, kubectl: Kubectl, checkout: Checkout
) -> None:
    started = checkout.run("up", E2E="existing", KUBECONFIG=str(plane.kubeconfig))
    assert started.returncode == 0, started.stderr
    try:
        assert checkout.pids().keys() == {"kubelet", "eclectus", "operator"}
        assert "node/node-30" in kubectl("get", "nodes", "-o", "name")
        assert "nodeprofiles.eclectus.dev" in kubectl("get", "crds", "-o", "name")
    finally:
        stopped = checkout.run("down")
    assert "warning" not in stopped.stderr
    assert "node/node-" not in kubectl("get", "nodes", "-o", "name")
    assert "eclectus" not in kubectl("get", "crds,clusterroles", "-o", "name")
    assert not checkout.cluster.exists()
