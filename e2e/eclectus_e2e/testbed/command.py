"""The commands `up`, `down` and `status` for the cluster of this checkout, in build/cluster."""

import argparse
import sys
from pathlib import Path

from eclectus_e2e.errors import UsageError
from eclectus_e2e.paths import CLUSTER_DIRECTORY
from eclectus_e2e.testbed import clusters
from eclectus_e2e.testbed.clusters import Cluster
from eclectus_e2e.testbed.controlplane.plane import ControlPlane, PlaneOptions, environment_text
from eclectus_e2e.testbed.kubelet import handle
from eclectus_e2e.testbed.kubelet.nodes import DEFAULT_SEED, default_nodes, read_nodes
from eclectus_e2e.testbed.processes import Process, recorded
from eclectus_e2e.testbed.realnodes.command import end_real, real_processes, start_real

ENVIRONMENT_FILE = CLUSTER_DIRECTORY / "env"
REAL = "real"


def up(arguments: list[str]) -> int:
    """Start the cluster selected by E2E and its nodes; a running one is left alone."""
    parser = argparse.ArgumentParser("eclectus_e2e up", description=up.__doc__)
    parser.add_argument("--with", dest="extra", action="append", default=[], choices=["kube-scheduler"])
    parser.add_argument("--nodes", help="`real`, or a nodes file; default: 30 fake nodes")
    options = parser.parse_args(arguments)
    if ENVIRONMENT_FILE.exists() and _running():  # the file is written last, so the start was complete
        print("already running; `make down` stops it", file=sys.stderr)
        print(ENVIRONMENT_FILE.read_text(), end="")
        return 0
    cluster = start_real(CLUSTER_DIRECTORY) if options.nodes == REAL else _start_fake(options.nodes)
    if "kube-scheduler" in options.extra and options.nodes != REAL:  # real nodes always have it
        _start_kube_scheduler(cluster)
    text = environment_text(cluster.environment())
    ENVIRONMENT_FILE.write_text(text)
    print(f"# ready. In a shell: source {ENVIRONMENT_FILE}", file=sys.stderr)
    print(text, end="")
    return 0


def down(arguments: list[str]) -> int:
    """Stop the cluster and delete its files."""
    argparse.ArgumentParser("eclectus_e2e down", description=down.__doc__).parse_args(arguments)
    stopped = end_real(CLUSTER_DIRECTORY, lambda: clusters.end(CLUSTER_DIRECTORY))
    print(f"stopped: {', '.join(stopped)}" if stopped else "nothing was running", file=sys.stderr)
    return 0


def status(arguments: list[str]) -> int:
    """List the processes; exit code 1 unless all run."""
    argparse.ArgumentParser("eclectus_e2e status", description=status.__doc__).parse_args(arguments)
    for process in _recorded():
        print(f"{process.name:<24} {'running' if process.alive else 'dead':<8} pid {process.pid}")
    return 0 if _running() else 1


def _start_fake(file: str | None) -> Cluster:
    nodes = read_nodes(Path(file)) if file else default_nodes(DEFAULT_SEED)
    if not clusters.choice():
        print("starting a control plane: about 4 s; compiling it the first time: minutes", file=sys.stderr)
    cluster = clusters.start(CLUSTER_DIRECTORY, PlaneOptions(dies_with_caller=False))
    # In an existing cluster `down` deletes the nodes again.
    is_existing = clusters.choice() == "existing"
    handle.start(CLUSTER_DIRECTORY, cluster.kubeconfig, nodes, dies_with_caller=False, deregister=is_existing)
    return cluster


def _start_kube_scheduler(cluster: Cluster) -> None:
    if not isinstance(cluster, ControlPlane):
        raise UsageError("--with kube-scheduler needs a control plane built here; this cluster has its own")
    cluster.start_kube_scheduler()


def _running() -> list[Process]:
    """All recorded processes when all of them run; otherwise none."""
    processes = _recorded()
    return processes if all(process.alive for process in processes) else []


def _recorded() -> list[Process]:
    return recorded(CLUSTER_DIRECTORY) + real_processes(CLUSTER_DIRECTORY)
