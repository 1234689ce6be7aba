"""containerd of a node: configuration, start, and a root directory with the images.

Images are imported once, by a temporary containerd. The root directory of each node is then a copy with hard
links, because blobs and unpacked layers are only read; the two databases are real copies.
"""

import json
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from eclectus_e2e.errors import StartError
from eclectus_e2e.testbed import processes
from eclectus_e2e.testbed.processes import Process, log_tail, wait_for
from eclectus_e2e.testbed.realnodes.layout import NODES_DIRECTORY, NodeLayout
from eclectus_e2e.testbed.realnodes.requirements import CNI_PLUGINS, program

PAUSE = "registry.k8s.io/pause:3.10"
_READY_SECONDS = 60.0
_IMPORT_SECONDS = 300.0
# Snapshotters that need devices; instances would also conflict over the socket of NRI, disabled below.
_DISABLED = ("snapshotter.v1.btrfs", "snapshotter.v1.devmapper", "snapshotter.v1.zfs", "snapshotter.v1.erofs")


def _write_config(layout: NodeLayout, programs: Path) -> Path:
    """Write the configuration file; all its paths are in the node's directory."""
    directory = layout.directory
    # Strings and lists of JSON are valid TOML.
    text = f"""
version = 3
root = {json.dumps(str(root(layout)))}
state = {json.dumps(str(directory / "state"))}
disabled_plugins = {json.dumps([f"io.containerd.{name}" for name in _DISABLED])}
[grpc]
address = {json.dumps(str(layout.socket))}
[ttrpc]
address = {json.dumps(f"{layout.socket}.ttrpc")}
[plugins.'io.containerd.nri.v1.nri']
disable = true
[plugins.'io.containerd.internal.v1.opt']
path = {json.dumps(str(directory / "opt"))}
[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = {json.dumps(PAUSE)}
[plugins.'io.containerd.cri.v1.runtime']
# Where oom_score_adj may not be lowered, runc would fail without a message.
restrict_oom_score_adj = true
netns_mounts_under_state_dir = true
[plugins.'io.containerd.cri.v1.runtime'.cni]
bin_dirs = {json.dumps([str(CNI_PLUGINS)])}
conf_dir = {json.dumps(str(directory / "cni"))}
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
runtime_path = {json.dumps(str(programs / "containerd-shim-runc-v2"))}
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
BinaryName = {json.dumps(program("runc"))}
Root = {json.dumps(str(directory / "runc"))}
SystemdCgroup = false
"""
    path = directory / "containerd.toml"
    path.write_text(text.lstrip())
    return path


def root(layout: NodeLayout) -> Path:
    """The folder of a node's images and snapshots."""
    return layout.directory / "root"


def start(layout: NodeLayout, programs: Path, *, dies_with_caller: bool) -> Process:
    """Start a node's containerd."""
    command = [
        str(programs / "containerd"),
        f"--config={_write_config(layout, programs)}",
        "--log-level=warn",
    ]
    return processes.start(
        f"containerd-{layout.name}", command, NODES_DIRECTORY, dies_with_caller=dies_with_caller
    )


def import_images(programs: Path, images: Iterable[Path]) -> Path:
    """Import and unpack image archives; returns the root directory, for `copy_root`."""
    layout = NodeLayout(0, "images")  # not a node, but it needs the same directories
    layout.directory.mkdir(parents=True)
    running = start(layout, programs, dies_with_caller=True)
    try:
        if not wait_for(lambda: layout.socket.exists() or not running.alive, _READY_SECONDS):
            raise StartError(f"containerd did not start\n{log_tail(NODES_DIRECTORY, running.name)}")
        for image in images:
            _import(programs, layout, image)
    finally:
        running.stop()
    return root(layout)


def copy_root(shared: Path, layout: NodeLayout) -> None:
    """Create a node's root directory from the shared one, which no containerd uses any more."""
    subprocess.run(["cp", "-al", shared, root(layout)], check=True)
    for database in shared.glob("*/*.db"):
        copy = root(layout) / database.relative_to(shared)
        copy.unlink()
        shutil.copy2(database, copy)


def shim_sockets(directory: Path) -> list[Path]:
    """The sockets that the shims of a node created outside of its directory (in /run/containerd/s)."""
    notes = (directory / "state").glob("io.containerd.runtime.v2.task/*/*/bootstrap.json")
    addresses = [json.loads(note.read_text())["address"] for note in notes]
    return [Path(each.removeprefix("unix://")) for each in addresses]


def _import(programs: Path, layout: NodeLayout, image: Path) -> None:
    ctr = [str(programs / "ctr"), f"--address={layout.socket}", "--namespace=k8s.io"]
    done = subprocess.run(
        [*ctr, "images", "import", str(image)],
        capture_output=True,
        text=True,
        check=False,
        timeout=_IMPORT_SECONDS,
    )
    if done.returncode:
        raise StartError(f"`ctr images import {image}` failed: {done.stderr.strip()}")
