"""Operator and scheduler under the chart's accounts, beside fake nodes; a control plane for each file.

A file says how the chart is installed (`VALUES`), which nodes there are (`NODES`), what the scheduler's
configuration has beside its defaults (`SCHEDULER`) and, if all its tests share one, the `NAMESPACE`.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from eclectus_e2e.testbed import chart, clusters
from eclectus_e2e.testbed.chart import Installed
from eclectus_e2e.testbed.controlplane.plane import ControlPlane, PlaneOptions
from eclectus_e2e.testbed.kubectl import Kubectl
from eclectus_e2e.testbed.kubelet import handle
from eclectus_e2e.testbed.kubelet.handle import KubeletControl
from live_cluster import Admin, Scheduler
from live_operator import PATIENT, Operator


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    if clusters.choice():
        pytest.skip("only a control plane built here writes an audit log")
    options = PlaneOptions(audited_namespace=chart.NAMESPACE)
    with ControlPlane.started(tmp_path_factory.mktemp("plane") / "cluster", options) as started:
        yield started


@pytest.fixture(scope="module")
def admin(plane: ControlPlane, request: pytest.FixtureRequest) -> Iterator[Admin]:
    """The administrator of the file's `NAMESPACE`."""
    with Admin(plane.kubeconfig, request.module.NAMESPACE) as admin:
        yield admin


@pytest.fixture(scope="module")
def installed(plane: ControlPlane, request: pytest.FixtureRequest) -> Installed:
    """The release, of which some files want roles in their `NAMESPACE`: so that exists before."""
    if hasattr(request.module, "NAMESPACE"):
        request.getfixturevalue("admin")
    values, configured = request.module.VALUES, request.module.SCHEDULER
    # The scheduler's role follows its configuration.
    config = {"config": {**values.get("config", {}), **configured}}
    return chart.install(plane.kubeconfig, values={**values, **config})


@pytest.fixture(scope="module")
def kubelets(plane: ControlPlane, request: pytest.FixtureRequest) -> Iterator[KubeletControl]:
    with handle.started(plane.directory, plane.kubeconfig, request.module.NODES) as control:
        yield control


@pytest.fixture(scope="module")
def scheduler(
    plane: ControlPlane,
    installed: Installed,
    kubelets: KubeletControl,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Iterator[Scheduler]:
    directory, lease = tmp_path_factory.mktemp("scheduler"), {"leaderElect": False}
    account = installed.namespace, installed.service_account
    kubeconfig = chart.service_account_kubeconfig(plane.kubeconfig, directory, *account)
    running = Scheduler(directory, kubeconfig, lease=lease, **request.module.SCHEDULER)
    running.start().wait_deciding()
    yield running
    running.kill()


@pytest.fixture
def namespace(request: pytest.FixtureRequest) -> str:
    """A namespace of its own for each test."""
    return re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).strip("-")[-60:].strip("-")


@pytest.fixture
def operator(plane: ControlPlane, installed: Installed, tmp_path: Path) -> Iterator[Callable[..., Operator]]:
    """Starts operators; all are killed at the end of the test, and none waits for their Lease after it."""
    kubectl = Kubectl(plane.binaries, plane.kubeconfig)
    with ExitStack() as stack:
        stack.callback(kubectl, "delete", "leases", "--all", f"--namespace={installed.namespace}")

        def make(name: str = "a", times: tuple[str, ...] = PATIENT) -> Operator:
            made = Operator(tmp_path, plane.kubeconfig, installed, name, times)
            stack.callback(made.kill)
            return made.start()

        yield make
