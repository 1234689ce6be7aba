"""`up --nodes real`: four real nodes of different speeds, each with every image."""

import sys
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

# 1.5 cores in total, so that two cores suffice for the nodes and the control plane.
CPU_SHARES = {"real-1": 0.4, "real-2": 0.1, "real-3": 0.8, "real-4": 0.2}


def start_real(directory: Path) -> ControlPlane:
    """Start a control plane with real nodes, which run until `end_real`."""
    if chosen := clusters.choice():
        raise UsageError(f"real nodes need a control plane built here: unset E2E (it is {chosen})")
    require()
    print(
        "starting real nodes: about a minute; compiling them and building the images the first time:"
        " 10 to 15 minutes on two cores",
        file=sys.stderr,
    )
    specs = [NodeSpec(name, share) for name, share in CPU_SHARES.items()]
    images = [archive(name) for name in references()]
    return nodes.start(directory, specs, images, PlaneOptions(dies_with_caller=False)).plane


def end_real(directory: Path, end_cluster: Callable[[], list[str]]) -> list[str]:
    """Stop the cluster of a directory with its real nodes, if any; returns the names of what ran."""
    return nodes.end(end_cluster) if owner() == directory.resolve() else end_cluster()


def real_processes(directory: Path) -> list[Process]:
    """The recorded processes of the real nodes of a cluster; empty when it has none."""
    return recorded(NODES_DIRECTORY) if owner() == directory.resolve() else []
