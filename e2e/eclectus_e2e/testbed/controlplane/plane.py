"""A control plane in a directory: starts, restarts and stops its components."""

import json
import shutil
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from eclectus_e2e.errors import StartError
from eclectus_e2e.testbed.controlplane import components
from eclectus_e2e.testbed.controlplane.build import CONTROL_PLANE, GoPrograms, binaries
from eclectus_e2e.testbed.controlplane.components import LOOPBACK, Files, Ports
from eclectus_e2e.testbed.controlplane.endpoint import admin_tls, free_ports, responds
from eclectus_e2e.testbed.controlplane.kubeconfig import write_token_kubeconfig
from eclectus_e2e.testbed.kubectl import Kubectl
from eclectus_e2e.testbed.processes import Process, log_tail, recorded, start, wait_for

READY_SECONDS = 90.0  # takes 4 s on an idle machine, far longer on a busy CI machine
MARKER_FILE = ".eclectus-control-plane"  # only a directory with this file is ever deleted
_NAMESPACE = "kube-system"
_AS_CERTIFICATES = "--duration=168h"  # a token is valid for as long as the certificates here
_SCHEDULER_QPS = 5000.0  # the default of 50 would limit kube-scheduler's throughput


@dataclass(frozen=True)
class PlaneOptions:
    """Options of a control plane.

    `taint_nodes_by_condition`: without it nodes are schedulable as soon as they exist and are not tainted
    by the node-lifecycle controller, as benchmarks with 5,000 nodes without kubelets need.
    `address`: the only address on which the API server listens. Pods on real nodes need one that is not
    loopback. `controllers`: kube-controller-manager's flag of that name. `audited_namespace`: a namespace
    whose ServiceAccounts' requests are written to the audit log (see `eclectus_hack.permissions`).
    `pod_groups`: the API server serves `scheduling.k8s.io` PodGroups, which are not served by default.
    `disabled_features`: feature gates that API server and controllers have off.
    `routes_to_endpoints`: webhooks and aggregated APIs are reached by their EndpointSlices, as nobody routes
    addresses of Services here; without it by a Service of the type ExternalName, which may be on loopback.
    `dies_with_caller`: its processes are killed when the thread that started them ends, for whatever
    reason. `programs`: of which version they are (see `versions.py`).
    """

    taint_nodes_by_condition: bool = True
    address: str = LOOPBACK
    controllers: str = "*"
    audited_namespace: str | None = None
    pod_groups: bool = False
    disabled_features: tuple[str, ...] = ()
    routes_to_endpoints: bool = True
    dies_with_caller: bool = True
    programs: GoPrograms = CONTROL_PLANE


DEFAULT_OPTIONS = PlaneOptions()


@dataclass
class ControlPlane:
    """Running etcd, kube-apiserver and kube-controller-manager, and optionally kube-scheduler."""

    directory: Path
    binaries: Path
    options: PlaneOptions
    _ports: Ports
    _files: Files
    _processes: dict[str, Process] = field(default_factory=dict)

    @classmethod
    @contextmanager
    def started(cls, directory: Path, options: PlaneOptions = DEFAULT_OPTIONS) -> Iterator["ControlPlane"]:
        """Run a control plane within a `with` block; the directory is deleted afterwards.

        Raises StartError with the end of the log, UsageError, BuildError or MachineError.
        """
        plane = cls.start(directory, options)
        with ExitStack() as stack:
            stack.callback(remove, plane.directory)
            yield plane

    @classmethod
    def start(cls, directory: Path, options: PlaneOptions = DEFAULT_OPTIONS) -> "ControlPlane":
        """Start a control plane that runs until `stop()`; an older one in the directory is stopped first."""
        directory = directory.resolve()
        programs = binaries(options.programs)
        remove(directory)
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        (directory / MARKER_FILE).touch()
        etcd, peer, apiserver = free_ports(3)
        ports = Ports(etcd, peer, apiserver, options.address)
        plane = cls(directory, programs, options, ports, components.write_files(directory, ports))
        try:
            plane._start_all()
        except BaseException:
            plane._stop_processes()  # the logs are kept
            raise
        return plane

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of a cluster administrator (group system:masters)."""
        return self._files.admin

    @property
    def load_kubeconfig(self) -> Path:
        """The kubeconfig of what plays users and kubelets at a high rate, with the same rights.

        It has a token. The API server verifies a client certificate with each request, which took an eighth
        of its CPU time beside 150 requests a second.
        """
        return self._files.load

    @property
    def url(self) -> str:
        """The URL of the API server."""
        return self._ports.url

    @property
    def clients(self) -> components.Clients:
        """Creates kubeconfigs for further users."""
        return self._files.clients

    @property
    def pids(self) -> Mapping[str, int]:
        """Pids by component name."""
        return {name: process.pid for name, process in self._processes.items()}

    def start_kube_scheduler(self, qps: float = _SCHEDULER_QPS, arguments: Sequence[str] = ()) -> None:
        """Start kube-scheduler with further arguments; `qps` limits its requests per second."""
        account = self.kube_scheduler_account()
        self._run("kube-scheduler", [*components.scheduler(self._files, account, qps), *arguments])

    def kube_scheduler_account(self) -> Path:
        """kube-scheduler's kubeconfig, made when it is asked for first.

        It has a token, as that of Eclectus: the API server verifies a client certificate with each request.
        """
        path = self.directory / "kube-scheduler.kubeconfig"
        if not path.exists():
            kubectl = Kubectl(self.binaries, self.kubeconfig)
            kubectl("apply", "--filename=-", given=components.scheduler_account(_NAMESPACE, "kube-scheduler"))
            token = kubectl(
                "create", "token", "kube-scheduler", f"--namespace={_NAMESPACE}", _AS_CERTIFICATES
            )
            write_token_kubeconfig(path, self.url, self._files.authority, token.strip())
        return path

    def stop_kube_scheduler(self) -> None:
        """Stop kube-scheduler."""
        self._processes.pop("kube-scheduler").stop()

    def restart_apiserver(self, first: signal.Signals = signal.SIGTERM) -> None:
        """Stop the API server with `first` (SIGTERM drains it), start it again, wait until it is ready.

        The old process has ended before the new one starts, because it would still respond to /readyz.
        """
        self._processes.pop("kube-apiserver").stop(first)
        self._run_apiserver()
        self._wait_ready("kube-apiserver", "/readyz")

    def stop(self) -> None:
        """Stop all processes and delete the directory."""
        remove(self.directory)

    def environment(self) -> dict[str, str]:
        """Environment variables for a shell that uses the cluster."""
        return {"KUBECONFIG": str(self.kubeconfig), "ECLECTUS_E2E_BINARIES": str(self.binaries)}

    def _start_all(self) -> None:
        self._run("etcd", components.etcd(self._files, self._ports))
        # The API server retries until etcd is up, and its /readyz includes etcd.
        self._run_apiserver()
        self._wait_ready("kube-apiserver", "/readyz")
        self._run("kube-controller-manager", self._controller_manager())
        # The API server rejects pods of a namespace until the controller has created this account.
        self._wait_ready("kube-controller-manager", "/api/v1/namespaces/default/serviceaccounts/default")

    def _controller_manager(self) -> list[str]:
        disabled = self.options.disabled_features
        return components.controller_manager(self._files, self._controllers(), disabled)

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
            pod_groups=options.pod_groups,
            disabled_features=options.disabled_features,
            routes_to_endpoints=options.routes_to_endpoints,
        )
        self._run("kube-apiserver", arguments)

    def _run(self, name: str, arguments: list[str]) -> None:
        program = [str(self.binaries / name), *arguments]
        self._processes[name] = start(
            name, program, self.directory, dies_with_caller=self.options.dies_with_caller
        )

    def _wait_ready(self, name: str, path: str) -> None:
        """Wait until `path` responds. Raises StartError when a process ends or after READY_SECONDS."""
        context = admin_tls(self._files)

        def is_decided() -> bool:
            return bool(self._ended()) or responds(self.url + path, context)

        in_time = wait_for(is_decided, READY_SECONDS)
        ended = self._ended()
        if ended or not in_time:
            failed = ended[0] if ended else name
            problem = "ended while starting" if ended else f"was not ready after {READY_SECONDS:.0f} s"
            raise StartError(f"{failed} {problem}\n{log_tail(self.directory, failed)}")

    def _ended(self) -> list[str]:
        return [name for name, process in self._processes.items() if not process.alive]

    def _stop_processes(self) -> None:
        stop_recorded(self.directory)


def stop_recorded(directory: Path) -> list[str]:
    """Stop every process recorded in a directory, last started first; returns the names of those that ran."""
    ended = []
    for process in reversed(recorded(directory)):
        if process.alive:
            ended.append(process.name)
        process.stop()
    return ended


def remove(directory: Path) -> list[str]:
    """Stop the processes of a control plane and delete its directory; returns the names of those that ran.

    Raises StartError for a directory with files but without the marker file of a control plane.
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


def environment_text(environment: Mapping[str, str], *folders: Path) -> str:
    """A file to source in a shell: exports, and PATH with the programs in front.

    These are the control plane's, if any, those in `folders`, and this Python environment's, so that
    `kubectl eclectus` is found.
    """
    lines = [f"export {name}={json.dumps(value)}" for name, value in environment.items()]
    front = [json.dumps(str(folder)) for folder in (*folders, Path(sys.executable).parent)]
    if "ECLECTUS_E2E_BINARIES" in environment:
        front.insert(0, '"$ECLECTUS_E2E_BINARIES"')
    lines.append(f'export PATH={":".join(front)}:"$PATH"')
    return "\n".join(lines) + "\n"
