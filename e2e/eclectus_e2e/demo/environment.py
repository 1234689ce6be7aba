"""The environment of an experiment: control plane, fake nodes, the chart and its account's token."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eclectus_e2e.testbed import chart
from eclectus_e2e.testbed.chart import Installed
from eclectus_e2e.testbed.controlplane.endpoint import free_ports
from eclectus_e2e.testbed.controlplane.plane import ControlPlane, PlaneOptions
from eclectus_e2e.testbed.kubelet import handle
from eclectus_e2e.testbed.kubelet.handle import KubeletControl
from eclectus_e2e.testbed.kubelet.nodes import NodeSpec


@dataclass(frozen=True)
class Environment:
    """A running cluster without a scheduler."""

    plane: ControlPlane
    kubelet: KubeletControl
    nodes: Sequence[NodeSpec]
    installed: Installed
    account: Path  # kubeconfig whose only credential is the chart's ServiceAccount token
    address: str  # URL of the scheduler's health checks, metrics and learned speeds


@contextmanager
def started(
    directory: Path, nodes: Sequence[NodeSpec], *, keep: bool = False, values: Mapping[str, Any] | None = None
) -> Iterator[Environment]:
    """Start the environment and remove it after the block; with `keep`, only if the block fails.

    `values` are the chart's, `config.server` excepted.
    """
    plane = ControlPlane.start(directory, PlaneOptions(dies_with_caller=not keep))
    with ExitStack() as stack:
        stack.callback(plane.stop)
        kubelet, _ = handle.start(directory, plane.kubeconfig, nodes, dies_with_caller=not keep)
        (port,) = free_ports(1)
        # The scheduler is a process beside the cluster: it listens on loopback and a port of its own.
        server = {"address": "127.0.0.1", "port": port}
        given = dict(values or {})
        given["config"] = {**given.get("config", {}), "server": server}
        installed = chart.install(plane.kubeconfig, values=given)
        account = chart.service_account_kubeconfig(
            plane.kubeconfig, directory, installed.namespace, installed.service_account
        )
        yield Environment(plane, kubelet, nodes, installed, account, f"http://127.0.0.1:{port}")
        if keep:
            stack.pop_all()
