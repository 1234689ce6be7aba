"""Requirements of real nodes, and the configuration that is written for them."""

import json
import os
import tomllib
from pathlib import Path

import pytest

from eclectus_e2e.testbed.realnodes import (
    cgroups,
    containerd,
    iptables,
    kubelet,
    layout,
    network,
    requirements,
)
from eclectus_e2e.testbed.realnodes.layout import NodeLayout, NodeSpec


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> NodeLayout:
    monkeypatch.setattr(layout, "NODES_DIRECTORY", tmp_path)
    node = NodeLayout(2, "slow")
    node.directory.mkdir(parents=True)
    return node


def test_root_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "need root" in (requirements.unmet_requirement() or "")


def test_all_missing_packages_are_named_in_one_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(requirements, "_missing_capabilities", lambda status: [])
    monkeypatch.setattr(requirements, "SYSTEM_PATH", str(tmp_path))
    monkeypatch.setattr(requirements, "CNI_PLUGINS", tmp_path)
    packages = "iproute2 iptables runc mount containernetworking-plugins"
    assert requirements.unmet_requirement() == f"real nodes need `apt-get install {packages}`"


def test_missing_capabilities_are_named() -> None:
    assert requirements._missing_capabilities("CapEff:\t00000000a80425fb\n") == [
        "CAP_NET_ADMIN",
        "CAP_SYS_ADMIN",
    ]
    assert requirements._missing_capabilities("CapEff:\t000001ffffffffff\n") == []


def test_with_cgroup_v2_a_node_has_one_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroups, "_MOUNT", tmp_path)
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu memory pids\n")
    assert cgroups.unmet_requirement() is None
    cgroups.create("slow")
    cgroups.set_quota("slow", 0.2)
    pods = tmp_path / cgroups.pods_root("slow").lstrip("/")
    assert (pods / "cpu.max").read_text() == "20000 100000"
    assert (pods.parent / "cgroup.subtree_control").read_text() == "+cpu +cpuset +memory +pids"
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu memory\n")
    assert "controller pids" in (cgroups.unmet_requirement() or "")


def test_containerd_uses_the_nodes_directory_alone(node: NodeLayout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(containerd, "program", lambda name: f"/sbin/{name}")
    config = tomllib.loads(containerd._write_config(node, Path("/programs")).read_text())
    for path in (config["root"], config["state"], config["grpc"]["address"]):
        assert Path(path).is_relative_to(node.directory)
    runtime = config["plugins"]["io.containerd.cri.v1.runtime"]
    assert runtime["containerd"]["runtimes"]["runc"]["options"]["BinaryName"] == "/sbin/runc"


def test_kubelet_listens_on_the_nodes_address_and_has_its_cgroup_root(
    node: NodeLayout,
) -> None:
    spec = NodeSpec("slow", 0.1, {"pool": "batch"})
    arguments = kubelet.arguments(node, spec, Path("/kubeconfig"), Path("/ca"))
    assert "--node-ip=10.213.2.1" in arguments
    assert "--node-labels=pool=batch" in arguments
    written = json.loads((node.directory / "kubelet.yaml").read_text())
    assert written["address"] == "10.213.2.1"
    assert written["cgroupRoot"] == "/eclectus-nodes/slow/pods"


def test_pods_get_addresses_of_their_nodes_bridge(node: NodeLayout) -> None:
    network.write_cni(node)
    (bridge,) = json.loads((node.directory / "cni" / "bridge.conflist").read_text())["plugins"]
    assert bridge["bridge"] == "ecl-node2"
    assert bridge["ipam"]["ranges"] == [[{"subnet": "10.213.2.0/24", "gateway": "10.213.2.1"}]]


def test_jumps_are_removed_first_and_other_rules_are_kept() -> None:
    saved = [
        "-P INPUT ACCEPT",
        "-N KUBE-FIREWALL",
        "-N MINE",
        '-A INPUT -m comment --comment "a b" -j KUBE-FIREWALL',
        "-A INPUT -j MINE",
        "-A KUBE-FIREWALL -j DROP",
    ]
    assert iptables.removal_script("filter", saved).splitlines() == [
        "*filter",
        ":KUBE-FIREWALL - [0:0]",
        '-D INPUT -m comment --comment "a b" -j KUBE-FIREWALL',
        "-X KUBE-FIREWALL",
        "COMMIT",
    ]
    assert iptables.removal_script("filter", ["-P INPUT ACCEPT", "-N MINE"]) == ""
