"""Real nodes for all tests here: two for the pods of the release, four of different speeds to learn.

The tests are skipped, with the reason, on machines that cannot run them: they need root, cgroups and a few
Debian packages.
"""

from collections.abc import Iterator

import pytest

from eclectus_e2e.testbed.controlplane.plane import PlaneOptions
from eclectus_e2e.testbed.images import archives
from eclectus_e2e.testbed.kubectl import Kubectl
from eclectus_e2e.testbed.realnodes import nodes, requirements
from eclectus_e2e.testbed.realnodes.layout import NodeSpec
from eclectus_e2e.testbed.realnodes.nodes import RealNodes
from eclectus_e2e.testbed.release import Release
from real_release import SHARES, installed
from real_remains import remains

SYSTEM = [NodeSpec(name, 1.0, {"pool": "system"}) for name in ("system-a", "system-b")]
BATCH = [NodeSpec(name, share, {"pool": "batch"}) for name, share in SHARES.items()]
IMAGES = ("pause", "busybox", "scheduler", "operator", "unit")


@pytest.fixture(scope="session")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealNodes]:
    if reason := requirements.unmet_requirement() or archives.unmet_requirement():
        pytest.skip(reason)
    images = [archives.archive(name) for name in IMAGES]
    # Without the node-lifecycle controller only the scheduler detects that a node is frozen.
    options = PlaneOptions(taint_nodes_by_condition=False)
    directory = tmp_path_factory.mktemp("real") / "cluster"
    with nodes.started(directory, [*SYSTEM, *BATCH], images, options) as running:
        yield running
    assert remains() == []


@pytest.fixture(scope="session")
def kubectl(real: RealNodes) -> Kubectl:
    return Kubectl(real.plane.binaries, real.plane.kubeconfig)


@pytest.fixture(scope="module")
def release(real: RealNodes, kubectl: Kubectl) -> Iterator[Release]:
    with installed(real.plane.kubeconfig, kubectl) as one:
        yield one
