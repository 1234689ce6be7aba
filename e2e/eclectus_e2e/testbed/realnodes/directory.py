"""The one directory of real nodes on a machine, and how everything that belongs to it goes.

One set of real nodes at a time: kube-proxy's rules are the whole machine's. What a killed run left is
found by this directory and removed by the next start, in the same way as at a good end.
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

_MARK = NODES_DIRECTORY / "mark.json"
# What programs make outside of it and cannot be told to leave: it goes where it was not there before.
_OUTSIDE = ("/run/containerd", "/var/lib/cni", "/var/lib/kubelet", "/opt/cni")
_LOCK = Path("/run/lock/eclectus-nodes.lock")


def claim(cluster: Path) -> None:
    """Make the directory for the nodes of the control plane in `cluster`.

    The remains of a killed run are removed. Raises UsageError when real nodes run already, MachineError
    when somebody else's Kubernetes does: its rules could not be told from ours.
    """
    with _locked():
        if any(process.alive for process in recorded(NODES_DIRECTORY)):
            raise UsageError(f"real nodes run already, for {owner()}: end them first (`make down` there)")
        _remove()
        if iptables.kubernetes_rules_exist():
            raise MachineError("this machine's iptables have chains of a Kubernetes already (KUBE-…)")
        NODES_DIRECTORY.mkdir(mode=0o755, parents=True)
        note = {
            "cluster": str(cluster.resolve()),
            "kernel": network.kernel_settings(),
            "outside": [each for each in _OUTSIDE if not Path(each).exists()],
        }
        _MARK.write_text(json.dumps(note))


def owner() -> Path | None:
    """The directory of the control plane whose nodes are here; None when there are none."""
    return Path(json.loads(_MARK.read_text())["cluster"]) if _MARK.exists() else None


def kill_programs() -> list[str]:
    """Kill kubelets, containerds, kube-proxy and all containers; the names of the programs that ran.

    No farewell: containerd takes ten seconds for one, and nothing of it is kept.
    """
    alive = [process for process in reversed(recorded(NODES_DIRECTORY)) if process.alive]
    for process in alive:
        process.stop(signal.SIGKILL)
    cgroups.kill_all()
    return [process.name for process in alive]


def release() -> None:
    """End every node and remove everything of them."""
    with _locked():
        _remove()


def _remove() -> None:
    """Whatever of these is there, in the order in which one holds the other."""
    kill_programs()
    cgroups.remove_all()
    network.remove_bridges()
    if NODES_DIRECTORY.exists():
        _unmount_below(NODES_DIRECTORY)
        _remove_shim_sockets()
    if _MARK.exists():
        note = json.loads(_MARK.read_text())
        iptables.remove_kubernetes_rules()
        network.restore_kernel_settings(note["kernel"])
        for path in filter(os.path.exists, note["outside"]):
            shutil.rmtree(path)
    if NODES_DIRECTORY.exists():
        shutil.rmtree(NODES_DIRECTORY)


def _unmount_below(directory: Path) -> None:
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    points = [line.split()[4] for line in lines]
    ours = [point for point in points if Path(point).is_relative_to(directory)]
    if ours:  # the last mounted first; lazily, because a dying process may still stand in one
        subprocess.run([program("umount"), "--lazy", *reversed(ours)], check=True)


def _remove_shim_sockets() -> None:
    for node in NODES_DIRECTORY.glob("nodes/*"):
        for socket in containerd.shim_sockets(node):
            socket.unlink(missing_ok=True)


@contextmanager
def _locked() -> Iterator[None]:
    """Two runs that start or end nodes at the same moment do so one after the other."""
    with os.fdopen(os.open(_LOCK, os.O_RDWR | os.O_CREAT, 0o600)) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
