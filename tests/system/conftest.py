"""One control plane and one fake kubelet for all live tests of the scheduler; one namespace per test."""

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from eclectus.api.names import NODE_PROFILES_PATH
from eclectus_e2e.testbed.chart import render
from eclectus_e2e.testbed.controlplane.plane import ControlPlane, PlaneOptions
from eclectus_e2e.testbed.kubelet import handle
from eclectus_e2e.testbed.kubelet.handle import KubeletControl
from eclectus_e2e.testbed.kubelet.nodes import NodeSpec
from live_cluster import Admin, Scheduler, wait

NODES = [NodeSpec(name=f"n{i:02}", group="all", speed=1.0, labels={"half": "ab"[i % 2]}) for i in range(12)]


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    options = PlaneOptions(pod_groups=True)
    with ControlPlane.started(tmp_path_factory.mktemp("plane") / "cluster", options) as running:
        yield running


@pytest.fixture(scope="session")
def kubelets(control_plane: ControlPlane) -> Iterator[KubeletControl]:
    with handle.started(control_plane.directory, control_plane.kubeconfig, NODES) as control:
        yield control


@pytest.fixture
def kubelet(kubelets: KubeletControl) -> KubeletControl:
    """The fake kubelet with its counters reset; its nodes are `n00` to `n11`, 4 cores and 110 pods each."""
    # It learns by its watch that the pods of the test before are deleted, and counts them.
    wait("they are gone", lambda: not any(each["running"] for each in kubelets.state()["nodes"].values()))
    kubelets.reset()
    return kubelets


@pytest.fixture
def admin(
    control_plane: ControlPlane, kubelet: KubeletControl, request: pytest.FixtureRequest
) -> Iterator[Admin]:
    namespace = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).strip("-")[-60:].strip("-")
    with Admin(control_plane.kubeconfig, namespace) as admin:
        yield admin


@pytest.fixture
def scheduler(
    control_plane: ControlPlane, admin: Admin, tmp_path: Path
) -> Iterator[Callable[..., Scheduler]]:
    """Starts schedulers; those of one test share a Lease. All are killed at the end of the test."""
    with ExitStack() as stack:
        stack.callback(admin.remove_claims)  # else the next test waits until they expire

        def make(**settings: Any) -> Scheduler:
            made = Scheduler(tmp_path, control_plane.kubeconfig, **settings).start()
            stack.callback(made.kill)
            return made

        yield make


@pytest.fixture
def defined(admin: Admin) -> Iterator[None]:
    """The CustomResourceDefinition of NodeProfile from the chart."""
    (definition,) = [
        each
        for each in render()
        if each["kind"] == "CustomResourceDefinition" and each["spec"]["names"]["kind"] == "NodeProfile"
    ]
    where = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    admin.send("POST", where, definition)
    wait("NodeProfile is served", lambda: admin.get(NODE_PROFILES_PATH) is not None)
    yield
    admin.send("DELETE", f"{where}/{definition['metadata']['name']}")
    wait("NodeProfile is gone", lambda: admin.get(NODE_PROFILES_PATH) is None)
