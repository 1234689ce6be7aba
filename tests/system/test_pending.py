"""`eclectus pending` and `eclectus version` on a real cluster, with a scheduler and without."""

import json
import subprocess
import sys

import pytest

from live_cluster import QUICK_LEASE, pod, wait

pytestmark = pytest.mark.live


def eclectus(control_plane, *arguments):
    """The output of a command, with the administrator's kubeconfig."""
    program = [sys.executable, "-c", "from eclectus.cli.main import main; main()", *arguments]
    program += ["--kubeconfig", str(control_plane.kubeconfig)]
    return subprocess.run(program, capture_output=True, text=True, check=True, timeout=60).stdout


def test_every_waiting_pod_is_listed_with_the_reason_also_after_the_scheduler_has_stopped(
    admin, kubelet, scheduler, control_plane
):
    profiles = [{"schedulerName": "pending-test", "place": {"policy": "least-allocated"}}]
    running = scheduler(lease=QUICK_LEASE, profiles=profiles).wait_deciding()
    admin.create([pod("big", cpu="100", scheduler="pending-test"), pod("typo", scheduler="pending-tset")])
    admin.create([pod("other", scheduler="default-scheduler")])
    wait("the big pod has a condition", lambda: admin.condition("big"))

    def shown(*options):
        return eclectus(control_plane, "pending", "-n", admin.namespace, *options)

    pods = {each["name"]: each for each in json.loads(shown("-o", "json"))["pods"]}
    assert set(pods) == {"big", "typo"}
    assert (pods["big"]["scheduler"], pods["big"]["reason"]) == ("running", "Unschedulable")
    assert "0/12 nodes are available" in pods["big"]["message"]
    assert pods["typo"]["scheduler"] == "nobody"

    assert "pending-test" in eclectus(control_plane, "pending", "-A")

    assert running.stop() == 0
    lines = shown("-o", "wide").splitlines()
    assert any("pending-test (no leader)" in line and "Insufficient cpu" in line for line in lines)
    assert any(line.startswith("pending-test: nobody holds the Lease kube-system/") for line in lines)


def test_the_servers_version_is_shown(control_plane):
    assert json.loads(eclectus(control_plane, "version", "-o", "json"))["server"].startswith("v1.")
