"""The two schedulers, and one that decides nothing: how each is started on a control plane, and stopped.

All are subject to RBAC, authenticate by the token of a ServiceAccount, run without leader election, have
their default logging and a client limit that does not slow them down.
"""

import compileall
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eclectus_bench.ceiling import SCHEDULER as CEILING
from eclectus_e2e.paths import CHECKOUT
from eclectus_e2e.testbed import chart, processes
from eclectus_e2e.testbed.controlplane.endpoint import free_ports
from eclectus_e2e.testbed.controlplane.plane import ControlPlane

QPS = 5000.0  # kube-scheduler's client limit; its default of 50 would be all that is measured
KUBE_SCHEDULER, ECLECTUS = "kube-scheduler", "eclectus"


@dataclass(frozen=True)
class SchedulerUnderTest:
    """Name in the report, schedulerName of its pods, and `running`: a block in which it runs; gives a pid."""

    name: str
    scheduler_name: str
    running: Callable[[], AbstractContextManager[int]]


def kube_scheduler(plane: ControlPlane, arguments: Sequence[str] = ()) -> SchedulerUnderTest:
    """kube-scheduler, of the control plane's version, with further arguments."""
    plane.kube_scheduler_account()  # now, and not within the time of its start
    return SchedulerUnderTest(KUBE_SCHEDULER, "default-scheduler", lambda: _kube_scheduler(plane, arguments))


def eclectus(
    plane: ControlPlane,
    profile: Path | None = None,
    config: Mapping[str, Any] | None = None,
    values: Mapping[str, Any] | None = None,
) -> SchedulerUnderTest:
    """Eclectus with the permissions of its chart, which is installed; cProfile writes the file `profile`.

    `config` are further values of the chart's `config`, `values` others of the chart.
    """
    compile_checkout()
    script = [str(Path(sys.executable).parent / "eclectus")]
    under_profile = [sys.executable, "-m", "eclectus_bench.profiled", str(profile)]
    arguments = _arguments(plane, config or {}, values or {})
    program = (under_profile if profile else script) + arguments
    return SchedulerUnderTest(ECLECTUS, "eclectus", lambda: _process(ECLECTUS, plane, program))


def ceiling(plane: ControlPlane) -> SchedulerUnderTest:
    """What binds each pod to the next node, with the account of Eclectus, which is installed already."""
    kubeconfig = chart.service_account_kubeconfig(
        plane.kubeconfig, plane.directory, chart.NAMESPACE, chart.RELEASE
    )
    program = [sys.executable, "-m", "eclectus_bench.ceiling", str(kubeconfig)]
    return SchedulerUnderTest(CEILING, CEILING, lambda: _process(CEILING, plane, program))


def compile_checkout() -> None:
    """Compile what has changed of Eclectus, as pip does where it is installed: half of a start otherwise."""
    compileall.compile_dir(CHECKOUT / "scheduler" / "eclectus", quiet=1)


@contextmanager
def _kube_scheduler(plane: ControlPlane, arguments: Sequence[str]) -> Iterator[int]:
    plane.start_kube_scheduler(QPS, arguments)
    try:
        yield plane.pids[KUBE_SCHEDULER]
    finally:
        plane.stop_kube_scheduler()


@contextmanager
def _process(name: str, plane: ControlPlane, program: list[str]) -> Iterator[int]:
    process = processes.start(name, program, plane.directory, dies_with_caller=True)
    try:
        yield process.pid
    finally:
        process.stop()


def _arguments(plane: ControlPlane, config: Mapping[str, Any], others: Mapping[str, Any]) -> list[str]:
    (port,) = free_ports(1)
    server = {"address": "127.0.0.1", "port": port, "authentication": "none"}
    values = {"config": {"leaderElection": {"leaderElect": False}, "server": server, **config}, **others}
    installed = chart.install(plane.kubeconfig, values=values)
    file = plane.directory / "eclectus.yaml"
    file.write_text(installed.configuration)
    kubeconfig = chart.service_account_kubeconfig(
        plane.kubeconfig, plane.directory, installed.namespace, installed.service_account
    )
    return ["scheduler", f"--config={file}", f"--kubeconfig={kubeconfig}"]
