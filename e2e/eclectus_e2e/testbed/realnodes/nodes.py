"""Starts and stops real nodes with their control plane; changes quotas, freezes nodes, kills containers."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from eclectus_e2e.errors import StartError
from eclectus_e2e.testbed import processes
from eclectus_e2e.testbed.controlplane.plane import DEFAULT_OPTIONS, ControlPlane, PlaneOptions, remove
from eclectus_e2e.testbed.kubectl import Kubectl
from eclectus_e2e.testbed.processes import log_tail, wait_for
from eclectus_e2e.testbed.realnodes import cgroups, containerd, kubelet, network
from eclectus_e2e.testbed.realnodes import directory as nodes_directory
from eclectus_e2e.testbed.realnodes.layout import NODES_DIRECTORY, PLANE_ADDRESS, NodeLayout, NodeSpec
from eclectus_e2e.testbed.realnodes.programs import Programs, node_programs
from eclectus_e2e.testbed.realnodes.requirements import require

READY_SECONDS = 300.0  # four nodes take 15 s on an idle machine
_POLL_SECONDS = 0.5  # each kubectl call takes a tenth of that in CPU time


@dataclass(frozen=True)
class RealNodes:
    """A running control plane with its real nodes."""

    plane: ControlPlane
    specs: Sequence[NodeSpec]

    def set_quota(self, node: str, share: float) -> None:
        """Limit a node's pods to another share of one core, also while they run."""
        cgroups.set_quota(node, share)

    def freeze(self, node: str) -> None:
        """Freeze a node like a hung machine: kubelet, containerd and every container."""
        cgroups.freeze(node)

    def thaw(self, node: str) -> None:
        """Thaw a frozen node."""
        cgroups.thaw(node)

    def kill_container(self, node: str, container: str) -> None:
        """Kill a container's processes; `container` is its `containerID` in the pod's status."""
        cgroups.kill_container(node, container.rpartition("/")[2])


@contextmanager
def started(
    directory: Path,
    specs: Sequence[NodeSpec],
    images: Sequence[Path],
    options: PlaneOptions = DEFAULT_OPTIONS,
) -> Iterator[RealNodes]:
    """Run a control plane in `directory` and real nodes within a `with` block.

    `images` are archives that every node imports. Raises MachineError for an unmet requirement, UsageError
    when real nodes run already, StartError or BuildError.
    """
    nodes = start(directory, specs, images, options)
    with ExitStack() as stack:
        stack.callback(end, lambda: remove(nodes.plane.directory))
        yield nodes


def end(end_cluster: Callable[[], list[str]]) -> list[str]:
    """Kill the nodes' programs, stop their control plane with `end_cluster`, then remove everything else.

    Returns the names of what ran. The order matters: a stopping API server waits for its clients, and for
    its own connections when its address has been removed.
    """
    with ExitStack() as stack:
        stack.callback(nodes_directory.release)
        killed = nodes_directory.kill_programs()
        return killed + end_cluster()


def start(
    directory: Path,
    specs: Sequence[NodeSpec],
    images: Sequence[Path],
    options: PlaneOptions = DEFAULT_OPTIONS,
) -> RealNodes:
    """Start a control plane in `directory` and real nodes, which run until `end`; raises as `started`."""
    require()
    programs = node_programs()
    with ExitStack() as undo:
        nodes_directory.claim(directory)
        undo.callback(nodes_directory.release)
        layouts = [NodeLayout(number, spec.name) for number, spec in enumerate(specs)]
        network.create_bridges(layouts)
        shared = containerd.import_images(programs.containerd, images)
        plane = ControlPlane.start(directory, replace(options, address=PLANE_ADDRESS))
        undo.callback(plane.stop)
        plane.start_kube_scheduler()  # for pods that must not wait for a scheduler under test
        for layout, spec in zip(layouts, specs, strict=True):
            _start_node(plane, programs, shared, layout, spec)
        cgroups.raise_cpu_weight(plane.pids.values())
        _start_proxy(plane, programs)
        _wait_ready(plane, {spec.name for spec in specs})
        undo.pop_all()
    return RealNodes(plane, specs)


def _start_node(
    plane: ControlPlane, programs: Programs, shared: Path, layout: NodeLayout, spec: NodeSpec
) -> None:
    layout.directory.mkdir()
    cgroups.create(spec.name)
    cgroups.set_quota(spec.name, spec.cpu_share)
    network.write_cni(layout)
    containerd.copy_root(shared, layout)
    runtime = containerd.start(layout, programs.containerd, dies_with_caller=plane.options.dies_with_caller)
    cgroups.add_process(spec.name, runtime.pid)
    user = plane.clients.kubeconfig(spec.name, f"system:node:{spec.name}", "system:nodes")
    arguments = kubelet.arguments(layout, spec, user, plane.clients.authority.certificate)
    agent = _run(f"kubelet-{spec.name}", [str(programs.kubelet), *arguments], plane)
    cgroups.add_process(spec.name, agent.pid)


def _start_proxy(plane: ControlPlane, programs: Programs) -> None:
    user = plane.clients.kubeconfig("kube-proxy", "system:kube-proxy")
    _run("kube-proxy", [str(programs.kube_proxy), *kubelet.proxy_arguments(NODES_DIRECTORY, user)], plane)


def _run(name: str, command: list[str], plane: ControlPlane) -> processes.Process:
    return processes.start(name, command, NODES_DIRECTORY, dies_with_caller=plane.options.dies_with_caller)


def _wait_ready(plane: ControlPlane, names: set[str]) -> None:
    kubectl = Kubectl(plane.binaries, plane.kubeconfig)

    def is_decided() -> bool:
        return bool(_ended()) or names <= _ready(kubectl.get("nodes"))

    in_time = wait_for(is_decided, READY_SECONDS, _POLL_SECONDS)
    failed = _ended() or [f"kubelet-{name}" for name in names - _ready(kubectl.get("nodes"))]
    if not in_time or failed:
        tails = "\n".join(log_tail(NODES_DIRECTORY, name) for name in failed)
        raise StartError(f"not ready after {READY_SECONDS:.0f} s, or ended: {', '.join(failed)}\n{tails}")


def _ended() -> list[str]:
    return [process.name for process in processes.recorded(NODES_DIRECTORY) if not process.alive]


def _ready(nodes: list[Any]) -> set[str]:
    return {
        node["metadata"]["name"]
        for node in nodes
        for condition in node["status"]["conditions"]
        if (condition["type"], condition["status"]) == ("Ready", "True")
    }
