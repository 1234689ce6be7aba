"""The commands `up`, `down` and `status` for the cluster of this checkout, in build/cluster."""

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any

import yaml

from eclectus.api.names import VISIBILITY_API
from eclectus.live.visibility import own_address
from eclectus_e2e.errors import UsageError
from eclectus_e2e.paths import CHART, CLUSTER_DIRECTORY
from eclectus_e2e.progress import Progress
from eclectus_e2e.testbed import clusters, helm, product
from eclectus_e2e.testbed.clusters import Cluster
from eclectus_e2e.testbed.controlplane.endpoint import free_ports
from eclectus_e2e.testbed.controlplane.plane import (
    ControlPlane,
    PlaneOptions,
    environment_text,
    stop_recorded,
)
from eclectus_e2e.testbed.kubectl import Kubectl
from eclectus_e2e.testbed.kubelet import handle
from eclectus_e2e.testbed.kubelet.nodes import DEFAULT_SEED, default_nodes, read_nodes
from eclectus_e2e.testbed.processes import Process, recorded, wait_for
from eclectus_e2e.testbed.realnodes.command import end_real, real_processes, start_real

ENVIRONMENT_FILE = CLUSTER_DIRECTORY / "env"
RELEASE_FILE = CLUSTER_DIRECTORY / "release"  # names the kubeconfig of an existing cluster with our release
PRESETS = CHART / "presets"
REAL = "real"
TOKEN_SECONDS = 7 * 24 * 3600  # as long as the control plane's certificates are valid
# The default of 60 s would let somebody who tries `kubectl eclectus speeds` wait.
PROFILES_INTERVAL = "5s"
VISIBLE_SECONDS = 30.0  # until the API server knows that the scheduler answers
ELSEWHERE = "198.51.100.1"  # no machine has this address (RFC 5737)


def up(arguments: list[str]) -> int:
    """Start the cluster selected by E2E, its nodes, and Eclectus on it; a running one is left alone."""
    parser = argparse.ArgumentParser("eclectus_e2e up", description=up.__doc__)
    parser.add_argument("--with", dest="extra", action="append", default=[], choices=["kube-scheduler"])
    parser.add_argument("--nodes", help="`real`, or a nodes file; default: 30 fake nodes")
    parser.add_argument(
        "--profile", choices=_presets(), help="with the values of charts/eclectus/presets/PROFILE.yaml, too"
    )
    parser.add_argument(
        "--without-eclectus", action="store_true", help="the bare cluster: no chart, scheduler or operator"
    )
    options = parser.parse_args(arguments)
    if ENVIRONMENT_FILE.exists() and _running():  # the file is written last, so the start was complete
        print(f"already running: source {os.path.relpath(ENVIRONMENT_FILE)}    (`make down` stops it)")
        return 0
    began = time.monotonic()
    _end()  # what a killed or failed run left
    try:
        text = _start(options)
    except BaseException:
        # The files stay, and with them the logs.
        end_real(CLUSTER_DIRECTORY, lambda: stop_recorded(CLUSTER_DIRECTORY))
        raise
    ENVIRONMENT_FILE.write_text(text)
    serves = "" if options.without_eclectus else "; pods with `schedulerName: eclectus` are scheduled"
    print(f"ready after {time.monotonic() - began:.0f} s{serves}")
    print(f"now: source {os.path.relpath(ENVIRONMENT_FILE)}    (`make down` stops it)")
    return 0


def down(arguments: list[str]) -> int:
    """Stop the cluster and delete its files."""
    argparse.ArgumentParser("eclectus_e2e down", description=down.__doc__).parse_args(arguments)
    stopped = _end()
    print(f"stopped: {', '.join(stopped)}" if stopped else "nothing was running", file=sys.stderr)
    return 0


def status(arguments: list[str]) -> int:
    """List the processes; exit code 1 unless all run."""
    argparse.ArgumentParser("eclectus_e2e status", description=status.__doc__).parse_args(arguments)
    processes = _recorded()
    for process in processes:
        print(f"{process.name:<24} {'running' if process.alive else 'dead':<8} pid {process.pid}")
    if not processes:
        print("nothing is running; `make up` starts a cluster", file=sys.stderr)
    return 0 if _running() else 1


def _start(options: argparse.Namespace) -> str:
    """Start everything; returns the environment to source."""
    cluster = start_real(CLUSTER_DIRECTORY) if options.nodes == REAL else _start_fake(options.nodes)
    if "kube-scheduler" in options.extra and options.nodes != REAL:  # real nodes always have it
        _start_kube_scheduler(cluster)
    if not options.without_eclectus:
        with Progress("starting Eclectus", expected="10 s, longer on a busy machine"):
            _start_eclectus(cluster, options.profile)
    return environment_text(cluster.environment(), *helm.folders(CLUSTER_DIRECTORY))


def _start_fake(file: str | None) -> Cluster:
    nodes = read_nodes(Path(file)) if file else default_nodes(DEFAULT_SEED)
    what = {"": "a control plane: about 4 s", "kind": "a kind cluster: about a minute", "existing": ""}
    if starts := what[clusters.choice()]:
        print(f"starting {starts}; then {len(nodes)} fake nodes", file=sys.stderr)
    cluster = clusters.start(CLUSTER_DIRECTORY, PlaneOptions(dies_with_caller=False))
    # In an existing cluster `down` deletes the nodes again.
    is_existing = clusters.choice() == "existing"
    handle.start(CLUSTER_DIRECTORY, cluster.kubeconfig, nodes, dies_with_caller=False, deregister=is_existing)
    return cluster


def _start_kube_scheduler(cluster: Cluster) -> None:
    if not isinstance(cluster, ControlPlane):
        raise UsageError("--with kube-scheduler needs a control plane built here; this cluster has its own")
    cluster.start_kube_scheduler()


def _start_eclectus(cluster: Cluster, profile: str | None) -> None:
    """Install the chart; start scheduler and operator under its accounts."""
    values = values_of(profile)
    is_existing = clusters.choice() == "existing"
    if is_existing:
        values["crds"] = {"keep": False}  # `down` leaves nothing
    shown = visible(values, address_of_this_machine()) if isinstance(cluster, ControlPlane) else values
    installed = product.install(cluster.kubeconfig, CLUSTER_DIRECTORY, shown, TOKEN_SECONDS)
    if is_existing:
        RELEASE_FILE.write_text(str(cluster.kubeconfig))
    product.start_scheduler(installed, dies_with_caller=False, change=_store_profiles_often)
    product.start_operator(installed, dies_with_caller=False)
    if isinstance(cluster, ControlPlane) and "visibility" in shown:
        # Until then kubectl complains about the API with each command.
        kubectl = Kubectl(cluster.binaries, cluster.kubeconfig)
        wait_for(lambda: _answers(kubectl, f"/apis/{VISIBILITY_API}"), VISIBLE_SECONDS)


def visible(values: dict[str, Any], address: str) -> dict[str, Any]:
    """The values with explanations through the API server, which reaches the scheduler at this address.

    They are as before without one: an EndpointSlice takes no address of loopback.
    """
    if not address:
        return values
    (port,) = free_ports(1)
    where = {"address": address, "advertiseAddress": address, "port": port}
    config = {**values.get("config", {}), "visibility": where}
    return {**values, "config": config, "visibility": {"enabled": True}}


def address_of_this_machine() -> str:
    """An address of it beside loopback; empty where it has none. Nothing is sent."""
    try:
        return own_address(f"https://{ELSEWHERE}")
    except OSError:
        return ""


def _answers(kubectl: Kubectl, path: str) -> bool:
    try:
        return bool(kubectl("get", "--raw", path))
    except UsageError:
        return False


def values_of(profile: str | None) -> dict[str, Any]:
    """The chart's values: DAG jobs always, and with a preset the right to make copies, too."""
    operator: dict[str, Any] = {"enabled": True, "dagJobs": {"enabled": True}}
    if profile is None:
        return {"operator": operator}
    preset = yaml.safe_load((PRESETS / f"{profile}.yaml").read_text())
    return {**preset, "operator": {**operator, "copies": {"namespaces": ["default"]}}}


def _presets() -> list[str]:
    return sorted(each.stem for each in PRESETS.glob("*.yaml"))


def _store_profiles_often(configuration: dict[str, Any]) -> None:
    configuration.setdefault("nodeProfiles", {})["interval"] = PROFILES_INTERVAL


def _end() -> list[str]:
    """Stop everything and delete the files; returns the names of what ran."""
    stopped = []
    if RELEASE_FILE.exists():
        stopped = stop_recorded(CLUSTER_DIRECTORY)
        product.uninstall(Path(RELEASE_FILE.read_text()))
    return stopped + end_real(CLUSTER_DIRECTORY, lambda: clusters.end(CLUSTER_DIRECTORY))


def _running() -> list[Process]:
    """All recorded processes when all of them run; otherwise none."""
    processes = _recorded()
    return processes if all(process.alive for process in processes) else []


def _recorded() -> list[Process]:
    return recorded(CLUSTER_DIRECTORY) + real_processes(CLUSTER_DIRECTORY)
