"""What is learned survives a restart: the next process knows it before its first pod has run."""

import json
import subprocess
import sys

import pytest

from eclectus.api.names import NODE_PROFILES_PATH
from live_cluster import QUICK_LEASE, pod, wait

pytestmark = [pytest.mark.live, pytest.mark.slow]


def profiles(admin):
    return {
        item["metadata"]["name"]: item.get("status", {}) for item in admin.get(NODE_PROFILES_PATH)["items"]
    }


def filled(admin):
    return {node: status for node, status in profiles(admin).items() if status}


def shown(control_plane):
    """The nodes of which `eclectus speeds` knows a speed."""
    arguments = ["speeds", "--kubeconfig", control_plane.kubeconfig, "-o", "json"]
    program = [sys.executable, "-c", "from eclectus.cli.main import main; main()", *arguments]
    done = subprocess.run(program, capture_output=True, check=True, timeout=60)
    return [row["node"] for row in json.loads(done.stdout) if row["speed"] is not None]


def test_the_next_scheduler_knows_what_a_killed_one_has_learned(
    admin, kubelet, scheduler, control_plane, defined
):
    settings = {"lease": QUICK_LEASE, "nodeProfiles": {"interval": "1s"}, "learn": {"policy": "rosella"}}
    running = scheduler(**settings).wait_deciding()
    admin.create(pod(f"p{at}", cpu="900m") for at in range(48))
    admin.wait_succeeded(48)
    wait("half of the nodes have a profile", lambda: sum(map(bool, profiles(admin).values())) >= 6)
    running.kill()
    # A profile may have been created but not yet filled when the scheduler was killed, and its last write may
    # be under way.
    wait("what is written is shown", lambda: set(shown(control_plane)) == filled(admin).keys())
    before = filled(admin)
    again = scheduler(name="b", **settings).wait_deciding()
    (line,) = again.lines("recalled what was learned")
    assert line["msg"].endswith(f"of {len(before)} nodes")
    learned = again.learned()
    for node, status in before.items():
        (known,) = [each for each in status["classes"] if "none" in each["name"]]
        assert learned[node] == pytest.approx(known["rate"], rel=0.5)  # other nodes count with few samples


def test_without_the_definition_it_schedules_and_logs_that(admin, kubelet, scheduler):
    running = scheduler(nodeProfiles={"interval": "1s"}).wait_deciding()
    admin.create([pod("a")])
    admin.wait_succeeded(1)
    assert running.lines("NodeProfile is not defined")
    assert running.stop() == 0
