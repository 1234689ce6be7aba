"""The directory of the real nodes of this machine, and the removal of everything that they create.

A machine runs one set of real nodes at a time, because kube-proxy's rules apply to the whole machine. By
this directory the next start finds what a killed run left, and removes it as a regular stop does.
"""

import fcntl
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from eclectus_e2e.errors import MachineError, UsageError
from eclectus_e2e.testbed.processes import recorded
from eclectus_e2e.testbed.realnodes import cgroups, containerd, iptables, network
from eclectus_e2e.testbed.realnodes.layout import NODES_DIRECTORY
from eclectus_e2e.testbed.realnodes.requirements import program

_OWNER_FILE = NODES_DIRECTORY / "owner.json"
# What programs create elsewhere, without an option against it; removed where it did not exist before.
_OUTSIDE = ("/run/containerd", "/var/lib/cni", "/var/lib/kubelet", "/opt/cni")
_LOCK = Path("/run/lock/eclectus-nodes.lock")


def claim(cluster: Path) -> None:
    """Create the directory for the nodes of the control plane in `cluster`.

    Removes what a killed run left. Raises UsageError when real nodes run already, MachineError when
    another Kubernetes does, because its iptables rules have the same names.
    """
    with _locked():
        if any(process.alive for process in recorded(NODES_DIRECTORY)):
            raise UsageError(f"real nodes run already, for {owner()}: stop them first (`make down` there)")
        _remove()
        if iptables.kubernetes_rules_exist():
            raise MachineError("this machine has iptables chains of another Kubernetes (KUBE-…)")
        NODES_DIRECTORY.mkdir(mode=0o755, parents=True)
        content = {
            "cluster": str(cluster.resolve()),
            "kernel": network.kernel_settings(),
            "outside": [each for each in _OUTSIDE if not Path(each).exists()],
        }
        _OWNER_FILE.write_text(json.dumps(content))


def owner() -> Path | None:
    """The directory of the control plane that the nodes belong to; None without nodes."""
    return Path(json.loads(_OWNER_FILE.read_text())["cluster"]) if _OWNER_FILE.exists() else None


def kill_programs() -> list[str]:
    """Kill kubelets, containerds, kube-proxy and all containers; returns the names of those that ran.

    With SIGKILL: containerd takes ten seconds to stop on SIGTERM, and its data is deleted anyway.
    """
    alive = [process for process in reversed(recorded(NODES_DIRECTORY)) if process.alive]
    for process in alive:
        process.stop(signal.SIGKILL)
    cgroups.kill_all()
    return [process.name for process in alive]


def release() -> None:
    """Stop every node and remove everything that they created."""
    with _locked():
        _remove()


def _remove() -> None:
    """Remove what exists. The order matters: each of these keeps the next from being removed."""
    kill_programs()
    cgroups.remove_all()
    network.remove_bridges()
    if NODES_DIRECTORY.exists():
        _unmount_below(NODES_DIRECTORY)
        _remove_shim_sockets()
    if _OWNER_FILE.exists():
        content = json.loads(_OWNER_FILE.read_text())
        iptables.remove_kubernetes_rules()
        network.restore_kernel_settings(content["kernel"])
        for path in filter(os.path.exists, content["outside"]):
            shutil.rmtree(path)
    if NODES_DIRECTORY.exists():
        shutil.rmtree(NODES_DIRECTORY)


def _unmount_below(directory: Path) -> None:
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    points = [line.split()[4] for line in lines]
    mounted = [point for point in points if Path(point).is_relative_to(directory)]
    if mounted:  # in reverse order; lazily, because an ending process may still use one
        subprocess.run([program("umount"), "--lazy", *reversed(mounted)], check=True)


def _remove_shim_sockets() -> None:
    for node in NODES_DIRECTORY.glob("nodes/*"):
        for socket in containerd.shim_sockets(node):
            socket.unlink(missing_ok=True)


@contextmanager
def _locked() -> Iterator[None]:
    """Let only one process at a time start or stop nodes."""
    with os.fdopen(os.open(_LOCK, os.O_RDWR | os.O_CREAT, 0o600)) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
