"""A control plane for the live tests of one module."""

from collections.abc import Iterator

import pytest

from eclectus_e2e.testbed.controlplane.plane import ControlPlane
from eclectus_e2e.testbed.kubectl import Kubectl
from eclectus_e2e.testbed.launch import process_identity


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    with ControlPlane.started(tmp_path_factory.mktemp("plane") / "cluster") as running:
        yield running
    assert not running.directory.exists()
    assert [pid for pid in running.pids.values() if process_identity(pid)] == []


@pytest.fixture
def kubectl(plane: ControlPlane) -> Iterator[Kubectl]:
    kubectl = Kubectl(plane.binaries, plane.kubeconfig)
    yield kubectl
    kubectl("delete", "pods", "--all", "--grace-period=0", "--force")
