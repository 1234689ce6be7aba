"""The environment of an experiment: control plane, fake nodes, the installed chart, and its operator."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eclectus_e2e.demo.workload import arrivals, mixed
from eclectus_e2e.testbed import product
from eclectus_e2e.testbed.controlplane.plane import ControlPlane, PlaneOptions
from eclectus_e2e.testbed.kubelet import handle
from eclectus_e2e.testbed.kubelet.api import Api, read_access
from eclectus_e2e.testbed.kubelet.handle import KubeletControl
from eclectus_e2e.testbed.kubelet.nodes import NodeSpec
from eclectus_e2e.testbed.processes import recorded
from eclectus_e2e.testbed.product import Product


@dataclass(frozen=True)
class Environment:
    """A running cluster without a scheduler."""

    plane: ControlPlane
    kubelet: KubeletControl
    nodes: Sequence[NodeSpec]
    product: Product

    @property
    def address(self) -> str:
        """The URL of the scheduler's health checks, metrics and learned speeds."""
        return self.product.address

    def pids(self) -> dict[str, int]:
        """Of all its processes that run, with the scheduler's if there is one, and of this one."""
        running = {one.name: one.pid for one in recorded(self.plane.directory) if one.alive}
        return {**running, "this": os.getpid()}

    def api(self) -> Api:
        """A client of its API server, to be used in an `async with`."""
        return Api(read_access(self.plane.kubeconfig))


@contextmanager
def started(
    directory: Path, nodes: Sequence[NodeSpec], *, keep: bool = False, values: Mapping[str, Any] | None = None
) -> Iterator[Environment]:
    """Start the environment and remove it after the block; with `keep`, only if the block fails.

    `values` are the chart's. The classes of the experiments are shared: probes, which run in a namespace of
    their own, teach the classes of the pods.
    """
    plane = ControlPlane.start(directory, PlaneOptions(dies_with_caller=not keep))
    with ExitStack() as stack:
        stack.callback(plane.stop)
        kubelet, _ = handle.start(directory, plane.kubeconfig, nodes, dies_with_caller=not keep)
        installed = product.install(plane.kubeconfig, directory, _with_shared_classes(values or {}))
        yield Environment(plane, kubelet, nodes, installed)
        if keep:
            stack.pop_all()


def _with_shared_classes(values: Mapping[str, Any]) -> dict[str, Any]:
    names = sorted({kind.name for kind in (*arrivals.CLASSES, *mixed.CLASSES)})
    return {**values, "config": {"tenancy": {"sharedWorkloads": names}, **values.get("config", {})}}


@contextmanager
def operator_running(environment: Environment) -> Iterator[None]:
    """Run the operator under the chart's account for a `with` block; it leads when the block begins.

    Raises StartError.
    """
    # The chart's --look-seconds suits a cluster that lives for longer.
    process = product.start_operator(environment.product, ["--look-seconds=5"], dies_with_caller=True)
    try:
        yield
    finally:
        process.stop()
