"""containerd of one node: its configuration, its command line, and a root with images that nodes share.

Images are imported once, by a containerd that runs for nothing else. Every node's root is then a copy
made of hard links: blobs and unpacked layers are only ever read, and the two databases are real copies.
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
# Other snapshotters look for devices, and other instances' socket of NRI would be in the way.
_DISABLED = ("snapshotter.v1.btrfs", "snapshotter.v1.devmapper", "snapshotter.v1.zfs", "snapshotter.v1.erofs")


def _write_config(place: NodeLayout, programs: Path) -> Path:
    """Write the configuration file; every path of it lies in the node's directory."""
    directory = place.directory
    # JSON's strings and lists are TOML's too.
    text = f"""
version = 3
root = {json.dumps(str(root(place)))}
state = {json.dumps(str(directory / "state"))}
disabled_plugins = {json.dumps([f"io.containerd.{name}" for name in _DISABLED])}
[grpc]
address = {json.dumps(str(place.socket))}
[ttrpc]
address = {json.dumps(f"{place.socket}.ttrpc")}
[plugins.'io.containerd.nri.v1.nri']
disable = true
[plugins.'io.containerd.internal.v1.opt']
path = {json.dumps(str(directory / "opt"))}
[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = {json.dumps(PAUSE)}
[plugins.'io.containerd.cri.v1.runtime']
# Where oom_score_adj may not be lowered, runc would fail without a word of why.
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


def root(place: NodeLayout) -> Path:
    """Where a node's images and snapshots lie."""
    return place.directory / "root"


def start(place: NodeLayout, programs: Path, *, dies_with_caller: bool) -> Process:
    """Start a node's containerd."""
    command = [str(programs / "containerd"), f"--config={_write_config(place, programs)}", "--log-level=warn"]
    return processes.start(
        f"containerd-{place.name}", command, NODES_DIRECTORY, dies_with_caller=dies_with_caller
    )


def import_images(programs: Path, images: Iterable[Path]) -> Path:
    """A root with these archives imported and unpacked, for `copy_root`."""
    place = NodeLayout(0, "images")  # no node, but it needs what a node's containerd needs
    place.directory.mkdir(parents=True)
    running = start(place, programs, dies_with_caller=True)
    try:
        if not wait_for(lambda: place.socket.exists() or not running.alive, _READY_SECONDS):
            raise StartError(f"containerd did not come up\n{log_tail(NODES_DIRECTORY, running.name)}")
        for image in images:
            _import(programs, place, image)
    finally:
        running.stop()
    return root(place)


def copy_root(shared: Path, place: NodeLayout) -> None:
    """Give a node its own root, from the shared one, which no containerd uses any more."""
    subprocess.run(["cp", "-al", shared, root(place)], check=True)
    for database in shared.glob("*/*.db"):
        copy = root(place) / database.relative_to(shared)
        copy.unlink()
        shutil.copy2(database, copy)


def shim_sockets(directory: Path) -> list[Path]:
    """The sockets that shims of a node's directory made elsewhere (they choose /run/containerd/s)."""
    notes = (directory / "state").glob("io.containerd.runtime.v2.task/*/*/bootstrap.json")
    addresses = [json.loads(note.read_text())["address"] for note in notes]
    return [Path(each.removeprefix("unix://")) for each in addresses]


def _import(programs: Path, place: NodeLayout, image: Path) -> None:
    ctr = [str(programs / "ctr"), f"--address={place.socket}", "--namespace=k8s.io"]
    done = subprocess.run(
        [*ctr, "images", "import", str(image)],
        capture_output=True,
        text=True,
        check=False,
        timeout=_IMPORT_SECONDS,
    )
    if done.returncode:
        raise StartError(f"`ctr images import {image}` failed: {done.stderr.strip()}")
