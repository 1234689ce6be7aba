"""One control plane in one directory: start it, ask it, restart its API server, stop it."""

import json
import shutil
import signal
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from eclectus_e2e.errors import StartError
from eclectus_e2e.testbed.controlplane import components
from eclectus_e2e.testbed.controlplane.build import binaries
from eclectus_e2e.testbed.controlplane.components import LOOPBACK, Files, Ports
from eclectus_e2e.testbed.controlplane.endpoint import admin_tls, free_ports, responds
from eclectus_e2e.testbed.processes import Process, log_tail, recorded, start, wait_for

READY_SECONDS = 90.0  # takes 4 s on an idle machine; a CI machine that compiles beside it takes long
MARKER_FILE = ".eclectus-control-plane"  # only a directory that bears it is ever emptied
_SCHEDULER_QPS = 5000.0  # so that kube-scheduler is bounded by itself, not by its client's default of 50


@dataclass(frozen=True)
class PlaneOptions:
    """What may differ between control planes.

    `taint_nodes_by_condition` off: nodes are schedulable from birth and never marked by the
    node-lifecycle controller, which is what a benchmark of 5,000 nodes without kubelets needs.
    `address`: where the API server listens, and nowhere else; pods on real nodes need one that is not
    loopback. `controllers` is kube-controller-manager's own flag. `audited`: a namespace whose
    ServiceAccounts' requests the API server writes down, for `permissions.py`. `leashed`: dies with the
    thread that started it (so with its process too, also when that is killed).
    """

    taint_nodes_by_condition: bool = True
    address: str = LOOPBACK
    controllers: str = "*"
    audited_namespace: str | None = None
    dies_with_caller: bool = True


DEFAULT_OPTIONS = PlaneOptions()


@dataclass
class ControlPlane:
    """A running etcd, kube-apiserver and kube-controller-manager (and kube-scheduler on request)."""

    directory: Path
    binaries: Path
    options: PlaneOptions
    _ports: Ports
    _files: Files
    _processes: dict[str, Process] = field(default_factory=dict)

    @classmethod
    @contextmanager
    def started(cls, directory: Path, options: PlaneOptions = DEFAULT_OPTIONS) -> Iterator["ControlPlane"]:
        """Run a control plane for the length of a `with` block; the directory is gone afterwards.

        Raises StartError with the tail of the right log, UsageError, BuildError or MachineError.
        """
        plane = cls.start(directory, options)
        with ExitStack() as stack:
            stack.callback(remove, plane.directory)
            yield plane

    @classmethod
    def start(cls, directory: Path, options: PlaneOptions = DEFAULT_OPTIONS) -> "ControlPlane":
        """Start a control plane that runs until `stop()`; an older one in the directory is ended first."""
        directory = directory.resolve()
        programs = binaries()
        remove(directory)
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        (directory / MARKER_FILE).touch()
        etcd, peer, apiserver = free_ports(3)
        ports = Ports(etcd, peer, apiserver, options.address)
        plane = cls(directory, programs, options, ports, components.write_files(directory, ports))
        try:
            plane._start_all()
        except BaseException:
            plane._stop_processes()  # the logs stay, to be read
            raise
        return plane

    @property
    def kubeconfig(self) -> Path:
        """A kubeconfig of a cluster administrator (group system:masters)."""
        return self._files.admin

    @property
    def url(self) -> str:
        """The API server's address."""
        return self._ports.url

    @property
    def clients(self) -> components.Clients:
        """Makes kubeconfigs for more users of this control plane."""
        return self._files.clients

    @property
    def pids(self) -> Mapping[str, int]:
        """Component name to pid."""
        return {name: process.pid for name, process in self._processes.items()}

    def start_kube_scheduler(self, qps: float = _SCHEDULER_QPS) -> None:
        """Start kube-scheduler; `qps` is its client's limit in requests a second."""
        self._run("kube-scheduler", components.scheduler(self._files, qps))

    def stop_kube_scheduler(self) -> None:
        """End kube-scheduler."""
        self._processes.pop("kube-scheduler").stop()

    def restart_apiserver(self, first: signal.Signals = signal.SIGTERM) -> None:
        """Stop the API server (SIGTERM drains it, SIGKILL does not), start it again, wait until ready.

        The old process is gone before the new one starts: a dying server still answers /readyz.
        """
        self._processes.pop("kube-apiserver").stop(first)
        self._run_apiserver()
        self._wait_ready("kube-apiserver", "/readyz")

    def stop(self) -> None:
        """End everything and remove the directory."""
        remove(self.directory)

    def environment(self) -> dict[str, str]:
        """What a shell needs to use the cluster."""
        return {"KUBECONFIG": str(self.kubeconfig), "ECLECTUS_E2E_BINARIES": str(self.binaries)}

    def _start_all(self) -> None:
        self._run("etcd", components.etcd(self._files, self._ports))
        # No wait for etcd: the API server retries, and its /readyz covers etcd.
        self._run_apiserver()
        self._wait_ready("kube-apiserver", "/readyz")
        self._run("kube-controller-manager", components.controller_manager(self._files, self._controllers()))
        # Until the controller has made it, the API server refuses every pod of the namespace.
        self._wait_ready("kube-controller-manager", "/api/v1/namespaces/default/serviceaccounts/default")

    def _controllers(self) -> str:
        without_lifecycle = f"{self.options.controllers},-node-lifecycle-controller"
        return self.options.controllers if self.options.taint_nodes_by_condition else without_lifecycle

    def _run_apiserver(self) -> None:
        options = self.options
        arguments = components.apiserver(
            self._files,
            self._ports,
            taint_nodes_by_condition=options.taint_nodes_by_condition,
            audited=options.audited_namespace,
        )
        self._run("kube-apiserver", arguments)

    def _run(self, name: str, arguments: list[str]) -> None:
        program = [str(self.binaries / name), *arguments]
        self._processes[name] = start(
            name, program, self.directory, dies_with_caller=self.options.dies_with_caller
        )

    def _wait_ready(self, name: str, path: str) -> None:
        """Wait until a path answers 200; StartError as soon as a process has died, or at the deadline."""
        context = admin_tls(self._files)

        def settled() -> bool:
            return bool(self._dead()) or responds(self.url + path, context)

        in_time = wait_for(settled, READY_SECONDS)
        dead = self._dead()
        if dead or not in_time:
            culprit = dead[0] if dead else name
            what = "ended while starting" if dead else f"was not ready after {READY_SECONDS:.0f} s"
            raise StartError(f"{culprit} {what}\n{log_tail(self.directory, culprit)}")

    def _dead(self) -> list[str]:
        return [name for name, process in self._processes.items() if not process.alive]

    def _stop_processes(self) -> None:
        stop_recorded(self.directory)


def stop_recorded(directory: Path) -> list[str]:
    """End every process recorded in a directory, the last started first; the names of those that ran."""
    ended = []
    for process in reversed(recorded(directory)):
        if process.alive:
            ended.append(process.name)
        process.stop()
    return ended


def remove(directory: Path) -> list[str]:
    """End what runs in a control plane's directory and delete it; the names of what ran.

    Raises StartError for a directory with content that no control plane made.
    """
    if not directory.exists():
        return []
    if not (directory / MARKER_FILE).exists():
        if any(directory.iterdir()):
            raise StartError(f"{directory} holds files that no control plane wrote: choose another directory")
        return []
    ended = stop_recorded(directory)
    shutil.rmtree(directory)
    return ended


def environment_text(environment: Mapping[str, str]) -> str:
    """A file for `source`: exports, and the binaries' folder in front of PATH when there is one."""
    lines = [f"export {name}={json.dumps(value)}" for name, value in environment.items()]
    if "ECLECTUS_E2E_BINARIES" in environment:
        lines.append('export PATH="$ECLECTUS_E2E_BINARIES:$PATH"')
    return "\n".join(lines) + "\n"
