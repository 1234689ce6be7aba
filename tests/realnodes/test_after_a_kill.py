"""The next start removes what a killed run left. Runs first, because real nodes exist once per machine."""

import subprocess
import sys

import pytest

from eclectus_e2e.testbed.controlplane.build import binaries
from eclectus_e2e.testbed.images import archives
from eclectus_e2e.testbed.kubectl import Kubectl
from eclectus_e2e.testbed.processes import recorded
from eclectus_e2e.testbed.realnodes import directory, requirements
from eclectus_e2e.testbed.realnodes.layout import NODES_DIRECTORY
from live_cluster import wait
from real_release import pod
from real_remains import remains

# The first run compiles and builds images.
pytestmark = [pytest.mark.live, pytest.mark.alone, pytest.mark.timeout(1800)]
KILLED_RUN = """
import sys
from pathlib import Path
from eclectus_e2e.testbed.images.archives import archive
from eclectus_e2e.testbed.realnodes import nodes
from eclectus_e2e.testbed.realnodes.layout import NodeSpec
nodes.start(Path(sys.argv[1]), [NodeSpec("killed", 0.5)], [archive("pause"), archive("busybox")])
print("up", flush=True)
sys.stdin.read()
"""


def test_the_next_start_removes_what_a_killed_run_left(tmp_path):
    if reason := requirements.unmet_requirement() or archives.unmet_requirement():
        pytest.skip(reason)
    with subprocess.Popen(
        [sys.executable, "-c", KILLED_RUN, str(tmp_path / "cluster")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as run:
        assert run.stdout.readline() == "up\n"
        kubectl = Kubectl(binaries(), tmp_path / "cluster" / "admin.kubeconfig")
        kubectl("create", "-f", "-", given=pod("left", "sleep", "600", schedulerName="default-scheduler"))
        wait("it runs", lambda: kubectl.get("pod", "left")["status"]["phase"] == "Running")
        run.kill()
    assert any("rootfs" in each for each in remains()), "the container's file system is still mounted"
    # They end with their parent, but not at once, and a next start fails while they run.
    wait("its programs have ended", lambda: not any(one.alive for one in recorded(NODES_DIRECTORY)))
    directory.claim(tmp_path / "next")
    directory.release()
    assert remains() == []
