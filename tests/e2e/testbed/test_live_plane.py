"""A real control plane with the nodes of the fake kubelet."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from eclectus_e2e.errors import StartError, UsageError
from eclectus_e2e.testbed.controlplane.plane import ControlPlane, PlaneOptions
from eclectus_e2e.testbed.kubectl import Kubectl
from eclectus_e2e.testbed.kubelet import handle
from eclectus_e2e.testbed.kubelet.handle import KubeletControl
from eclectus_e2e.testbed.kubelet.nodes import NodeSpec
from eclectus_e2e.testbed.kubelet.pod_times import PodRecord
from eclectus_e2e.testbed.processes import recorded, wait_for

pytestmark = pytest.mark.live

WAIT_SECONDS = 120.0  # the machine may be busy
TIMER_SECONDS = 0.002  # the loop rounds to milliseconds, when a timer is set and when it is due
NODES = [
    NodeSpec(name="n1", group="slow", speed=1.0, labels={"disk": "fast"}),
    NodeSpec(name="n2", group="fast", speed=4.0),
    NodeSpec(name="n3", group="fast", speed=4.0),
]


@pytest.fixture(scope="module")
def kubelet(plane: ControlPlane) -> Iterator[KubeletControl]:
    with handle.started(plane.directory, plane.kubeconfig, NODES) as control:
        yield control


def status(kubectl: Kubectl, pod: str) -> Any:
    return kubectl.get("pod", pod)["status"]


def run_pod(
    kubectl: Kubectl, name: str, node: str, *, work: float | None = None, cpu: str = "1", **spec: Any
) -> None:
    annotations = {} if work is None else {"e2e.eclectus.dev/work-seconds": str(work)}
    container = {"name": "c", "image": "none", "resources": {"requests": {"cpu": cpu}}}
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"nodeName": node, "restartPolicy": "Never", "containers": [container], **spec},
    }
    kubectl("create", "-f", "-", given=body)


def record(kubelet: KubeletControl, name: str) -> PodRecord:
    """Wait for the record of a pod that ended or was rejected; the newest one."""

    def found() -> list[PodRecord]:
        return [one for one in kubelet.pod_times() if one.name == name]

    assert wait_for(lambda: bool(found()), WAIT_SECONDS), f"{name} neither ended nor was rejected"
    return found()[-1]


def test_every_node_is_ready_and_none_is_tainted(kubectl: Kubectl, kubelet: KubeletControl) -> None:
    def usable() -> bool:
        nodes = kubectl.get("nodes")
        ready = [one for node in nodes for one in node["status"]["conditions"] if one["type"] == "Ready"]
        tainted = any(node["spec"].get("taints") for node in nodes)
        return [one["status"] for one in ready] == ["True"] * len(NODES) and not tainted

    assert wait_for(usable, WAIT_SECONDS)


def test_a_bound_pod_runs_for_work_over_speed_and_succeeds(kubectl: Kubectl, kubelet: KubeletControl) -> None:
    run_pod(kubectl, "slow", "n1", work=2)
    run_pod(kubectl, "fast", "n2", work=2)
    for name, seconds in (("slow", 2.0), ("fast", 0.5)):
        ended = record(kubelet, name)
        # Load of the machine may delay the end, but it is never early by more than the event loop's timers.
        assert seconds - TIMER_SECONDS <= ended.finished - ended.started
        assert ended.outcome == "succeeded"
        assert wait_for(lambda name=name: status(kubectl, name)["phase"] == "Succeeded", WAIT_SECONDS)
    state = status(kubectl, "slow")["containerStatuses"][0]["state"]["terminated"]
    assert state["exitCode"] == 0
    assert state["startedAt"] < state["finishedAt"]


def test_rejected_pods_fail_with_the_kubelets_reason(kubectl: Kubectl, kubelet: KubeletControl) -> None:
    run_pod(kubectl, "first", "n1", cpu="3")
    run_pod(kubectl, "too-much", "n1", cpu="1500m")
    run_pod(kubectl, "wrong-place", "n2", nodeSelector={"disk": "fast"})
    for name, reason in (("too-much", "OutOfcpu"), ("wrong-place", "NodeAffinity")):
        assert record(kubelet, name).outcome == reason
        assert wait_for(lambda name=name: status(kubectl, name)["phase"] == "Failed", WAIT_SECONDS)
        assert status(kubectl, name)["reason"] == reason
    assert status(kubectl, "too-much")["message"].endswith("requested: 1500, used: 3000, capacity: 4000")
    counters = kubelet.counters()
    assert (counters.overcommitted, counters.violations) == (1, 1)
    kubelet.reset()
    assert kubelet.counters().refused == {}


def test_a_new_speed_applies_at_once_to_the_remaining_work(kubectl: Kubectl, kubelet: KubeletControl) -> None:
    run_pod(kubectl, "long", "n1", work=1000)
    kubelet.set_speed(4000.0, group="slow")
    assert record(kubelet, "long").outcome == "succeeded"
    kubelet.set_speed(1.0, nodes=["n1"])
    assert kubelet.state()["nodes"]["n1"]["speed"] == 1.0
    with pytest.raises(UsageError, match=r"snail.*fast, slow"):
        kubelet.set_speed(1.0, group="snail")


def test_at_speed_0_nothing_progresses_and_classes_have_factors(
    kubectl: Kubectl, kubelet: KubeletControl
) -> None:
    kubelet.set_speed(0.0, nodes=["n1"], class_factors={"sort": 2.0})
    run_pod(kubectl, "still", "n1", work=0.1)
    assert wait_for(lambda: status(kubectl, "still")["phase"] == "Running", WAIT_SECONDS)
    run_pod(kubectl, "other", "n3", work=2)
    assert record(kubelet, "other").outcome == "succeeded"
    assert status(kubectl, "still")["phase"] == "Running"
    kubelet.set_speed(1.0, nodes=["n1"])
    assert record(kubelet, "still").outcome == "succeeded"
    assert kubelet.state()["nodes"]["n1"]["class_factors"] == {"sort": 2.0}
    with pytest.raises(UsageError, match="a factor above 0"):
        kubelet.set_speed(1.0, nodes=["n1"], class_factors={"sort": 0.0})


def test_a_frozen_node_makes_no_progress_and_continues_when_thawed(
    kubectl: Kubectl, kubelet: KubeletControl
) -> None:
    kubelet.set_speed(0.001, nodes=["n2"])
    run_pod(kubectl, "frozen", "n2", work=1)
    assert wait_for(lambda: status(kubectl, "frozen")["phase"] == "Running", WAIT_SECONDS)
    kubelet.freeze("n2")
    kubelet.set_speed(4.0, nodes=["n2"])  # if it were not frozen, the pod would end within a quarter second
    run_pod(kubectl, "newcomer", "n2", work=1)
    run_pod(kubectl, "other", "n3", work=8)
    assert record(kubelet, "other").outcome == "succeeded"
    assert status(kubectl, "frozen")["phase"] == "Running"
    assert status(kubectl, "newcomer")["phase"] == "Pending"
    kubelet.thaw("n2")
    assert record(kubelet, "newcomer").outcome == "succeeded"
    assert record(kubelet, "frozen").outcome == "succeeded"


def test_a_dead_node_loses_its_pods_and_a_deleted_one_registers_again(
    kubectl: Kubectl, kubelet: KubeletControl
) -> None:
    run_pod(kubectl, "lost", "n3", work=10_000)
    assert wait_for(lambda: status(kubectl, "lost")["phase"] == "Running", WAIT_SECONDS)
    kubelet.kill("n3")
    assert kubelet.state()["nodes"]["n3"]["state"] == "dead"
    kubelet.recover("n3")
    assert record(kubelet, "lost").outcome == "killed"
    assert wait_for(lambda: status(kubectl, "lost")["phase"] == "Failed", WAIT_SECONDS)
    kubectl("delete", "node", "n3")

    def is_registered() -> bool:
        kubelet.recover("n3")  # which does nothing before its watch has shown that the node is deleted
        return "node/n3" in kubectl("get", "nodes", "-o", "name")

    assert wait_for(is_registered, WAIT_SECONDS)


def test_deletion_honours_the_grace_period(kubectl: Kubectl, kubelet: KubeletControl) -> None:
    run_pod(kubectl, "graceful", "n1")
    assert wait_for(lambda: status(kubectl, "graceful")["phase"] == "Running", WAIT_SECONDS)
    kubectl("delete", "pod", "graceful", "--grace-period=2", "--wait=true")
    ended = record(kubelet, "graceful")
    assert ended.outcome == "killed"
    assert ended.finished - ended.started >= 2.0 - TIMER_SECONDS


def test_nodes_can_be_added_to_a_running_cluster(kubectl: Kubectl, kubelet: KubeletControl) -> None:
    kubelet.add_nodes([NodeSpec(name="n4", group="late", speed=8.0)])
    run_pod(kubectl, "on-the-new-one", "n4", work=1)
    assert record(kubelet, "on-the-new-one").outcome == "succeeded"
    with pytest.raises(UsageError, match="two nodes are called n4"):
        kubelet.add_nodes([NodeSpec(name="n4", group="late", speed=8.0)])


@pytest.mark.parametrize("first", [signal.SIGTERM, signal.SIGKILL])
def test_the_kubelet_continues_after_a_restart_of_the_api_server(
    plane: ControlPlane, kubectl: Kubectl, kubelet: KubeletControl, first: signal.Signals
) -> None:
    run_pod(kubectl, "through", "n2", work=8)
    before = plane.pids["kube-apiserver"]
    plane.restart_apiserver(first)
    assert plane.pids["kube-apiserver"] != before
    assert record(kubelet, "through").outcome == "succeeded"
    assert wait_for(lambda: status(kubectl, "through")["phase"] == "Succeeded", WAIT_SECONDS)
    run_pod(kubectl, "after", "n2", work=1)
    assert record(kubelet, "after").outcome == "succeeded"


def test_kube_scheduler_places_a_pod_when_it_is_started(
    plane: ControlPlane, kubectl: Kubectl, kubelet: KubeletControl
) -> None:
    plane.start_kube_scheduler()
    run_pod(kubectl, "scheduled", "", work=1)
    assert record(kubelet, "scheduled").outcome == "succeeded"
    account = json.loads(plane.kube_scheduler_account().read_text())["users"][0]["user"]
    assert list(account) == ["token"]  # as Eclectus has one: neither is slower for how it authenticates
    plane.stop_kube_scheduler()
    assert "kube-scheduler" not in plane.pids


def test_rbac_is_checked(plane: ControlPlane) -> None:
    as_user = ["auth", "can-i", "list", "nodes", "--as", "system:serviceaccount:default:default"]
    command = [str(plane.binaries / "kubectl"), "--kubeconfig", str(plane.kubeconfig), *as_user]
    assert subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() == "no"


def test_a_load_has_the_administrators_rights_and_no_certificate_to_verify(plane: ControlPlane) -> None:
    assert list(json.loads(plane.load_kubeconfig.read_text())["users"][0]["user"]) == ["token"]
    kubectl = Kubectl(plane.binaries, plane.load_kubeconfig)
    assert "system:masters" in kubectl("auth", "whoami", "--output=yaml")


def test_the_api_server_says_whose_headers_an_aggregated_one_may_believe(
    plane: ControlPlane, kubectl: Kubectl
) -> None:
    published = kubectl.get("configmap", "extension-apiserver-authentication", "-n", "kube-system")["data"]
    front_proxy = plane.directory / "certificates" / "front-proxy"
    assert published["requestheader-client-ca-file"] == (front_proxy / "ca.crt").read_text()
    assert published["requestheader-client-ca-file"] != published["client-ca-file"]
    assert published["requestheader-allowed-names"] == '["front-proxy-client"]'


def test_without_taints_by_condition_a_new_node_is_schedulable(tmp_path: Path) -> None:
    with ControlPlane.started(tmp_path / "bare", PlaneOptions(taint_nodes_by_condition=False)) as bare:
        kubectl = Kubectl(bare.binaries, bare.kubeconfig)
        kubectl("create", "-f", "-", given={"apiVersion": "v1", "kind": "Node", "metadata": {"name": "x"}})
        assert "taints" not in kubectl.get("node", "x")["spec"]


def test_a_killed_run_leaves_nothing_running_and_the_next_one_cleans_up(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path\n"
        "from eclectus_e2e.testbed.controlplane.plane import ControlPlane\n"
        "ControlPlane.start(Path(sys.argv[1])); print('up', flush=True); time.sleep(600)"
    )
    directory = tmp_path / "cluster"
    with subprocess.Popen([sys.executable, "-c", code, str(directory)], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"up\n"
        remaining = recorded(directory)
        parent.kill()
    assert len(remaining) == 3
    assert wait_for(lambda: not any(process.alive for process in remaining), WAIT_SECONDS)
    with ControlPlane.started(directory):
        assert not {process.pid for process in recorded(directory)} & {process.pid for process in remaining}
    assert not directory.exists()


def test_a_component_that_ends_while_starting_is_reported_with_its_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eclectus_e2e.testbed.controlplane.components.etcd", lambda *_: ["--no-such-flag"])
    with pytest.raises(StartError, match=r"(?s)etcd ended while starting.*no-such-flag"):
        ControlPlane.start(tmp_path / "cluster")
    assert not any(process.alive for process in recorded(tmp_path / "cluster"))
