"""A tape on demand of a scheduler on a real API server, whose snapshot is listed there."""

import itertools
import json
import signal
import subprocess
import sys

import pytest
from click.testing import CliRunner

from eclectus.api.names import SERVER, TAPE_PATH
from eclectus.cli.main import program
from eclectus.model.commands import Bind
from eclectus.model.events import NodeSeen, TaskSeen
from eclectus.tape import read
from live_cluster import pod, wait
from secured_pages import token_of

pytestmark = pytest.mark.live
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
COMMAND = [sys.executable, "-c", "from eclectus.cli.main import main; main()", "record"]


@pytest.fixture
def recorders(admin):
    """Creates a token of an account that may record."""
    name = admin.namespace
    role = {"metadata": {"name": name}, "rules": [{"nonResourceURLs": [TAPE_PATH], "verbs": ["post"]}]}
    admin.send("POST", f"{RBAC}/clusterroles", role)
    binding = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": "recorder", "namespace": name}],
    }
    admin.send("POST", f"{RBAC}/clusterrolebindings", binding)
    yield token_of(admin, "recorder", name)
    for kind in ("clusterrolebindings", "clusterroles"):
        admin.send("DELETE", f"{RBAC}/{kind}/{name}")


def wait_named(admin, tmp_path):
    """Wait until the Lease says where the leader's server is."""
    lease = f"{LEASES}/{tmp_path.name.lower().replace('_', '-')}"
    wait("the Lease says where", lambda: SERVER in json.dumps(admin.get(lease)))


def steps(path):
    return list(read(path)[1]) if path.exists() and path.stat().st_size else []


def bound(path):
    return [each.name for step in steps(path) for each in step.commands if isinstance(each, Bind)]


def recording(control_plane, tmp_path, token):
    (tmp_path / "token").write_text(token)
    options = ["--kubeconfig", str(control_plane.kubeconfig), "--token-file", str(tmp_path / "token")]
    return subprocess.Popen(
        [*COMMAND, *options, "--output", str(tmp_path / "t.tape.gz")], stderr=subprocess.PIPE, text=True
    )


def test_a_tape_of_a_scheduler_that_runs_is_decided_again_as_it_was(
    scheduler, control_plane, admin, recorders, tmp_path
):
    tape = tmp_path / "t.tape.gz"
    running = scheduler(server={"port": 0, "authentication": "delegated"}).wait_deciding()
    wait_named(admin, tmp_path)
    admin.create([pod(f"before-{at}", work=600.0) for at in range(10)])
    admin.create([pod("huge", cpu="64")])
    wait("they are bound", lambda: len(admin.bound()) == 10)
    command = recording(control_plane, tmp_path, recorders)
    with command:  # it is waited for
        try:
            names = map("during-{}".format, itertools.count())
            wait(
                "binds are on it", lambda: admin.create([pod(next(names))]) or len(bound(tape)) > 3, every=0.5
            )
            command.send_signal(signal.SIGINT)
            errors = command.communicate(timeout=60)[1]
        finally:
            command.kill()
    assert command.returncode == 0, errors
    assert "what was recorded until now" in errors
    events = [event for step in steps(tape) for event in step.events]
    assert any(isinstance(each, NodeSeen) for each in events)
    seen = {each.task.name: each.task.node for each in events if isinstance(each, TaskSeen)}
    assert all(seen[f"before-{at}"] for at in range(10))
    assert seen["huge"] == ""
    replayed = CliRunner().invoke(program, ["replay", str(tape)])
    assert replayed.exit_code == 0, replayed.output
    assert running.stop() == 0


def test_who_may_read_the_pods_may_not_record_them(scheduler, control_plane, admin, tmp_path):
    running = scheduler(server={"port": 0, "authentication": "delegated"}).wait_deciding()
    wait_named(admin, tmp_path)
    with recording(control_plane, tmp_path, token_of(admin, "stranger", admin.namespace)) as command:
        errors = command.communicate(timeout=120)[1]
    assert command.returncode == 1
    assert f'stranger" cannot post path "{TAPE_PATH}"' in errors
    assert not (tmp_path / "t.tape.gz").exists()
    assert running.stop() == 0
