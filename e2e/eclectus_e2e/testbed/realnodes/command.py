"""Real nodes for a person: `up --nodes real` starts four, each of another speed, with every image."""

from collections.abc import Callable
from pathlib import Path

from eclectus_e2e.errors import UsageError
from eclectus_e2e.testbed import clusters
from eclectus_e2e.testbed.controlplane.plane import ControlPlane, PlaneOptions
from eclectus_e2e.testbed.images.archives import archive, references
from eclectus_e2e.testbed.processes import Process, recorded
from eclectus_e2e.testbed.realnodes import nodes
from eclectus_e2e.testbed.realnodes.directory import owner
from eclectus_e2e.testbed.realnodes.layout import NODES_DIRECTORY, NodeSpec
from eclectus_e2e.testbed.realnodes.requirements import require

# Together one and a half cores: two bear it, and the control plane beside it.
SHARES = {"real-1": 0.4, "real-2": 0.1, "real-3": 0.8, "real-4": 0.2}


def start_real(directory: Path) -> ControlPlane:
    """Start a control plane with real nodes that run until `end_real`."""
    if chosen := clusters.choice():
        raise UsageError(f"real nodes need a control plane built here: leave E2E={chosen} away")
    require()
    specs = [NodeSpec(name, share) for name, share in SHARES.items()]
    images = [archive(name) for name in references()]
    return nodes.start(directory, specs, images, PlaneOptions(dies_with_caller=False)).plane


def end_real(directory: Path, end_cluster: Callable[[], list[str]]) -> list[str]:
    """End the cluster of a directory, its real nodes with it if it has some; the names of what ran."""
    return nodes.end(end_cluster) if owner() == directory.resolve() else end_cluster()


def real_processes(directory: Path) -> list[Process]:
    """The recorded processes of the real nodes of a directory's cluster."""
    return recorded(NODES_DIRECTORY) if owner() == directory.resolve() else []
