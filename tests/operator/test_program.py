"""The process around kopf."""

import asyncio
import getpass
import json
import subprocess
import sys
from types import SimpleNamespace

import kopf
import pytest
from click.testing import CliRunner

from eclectus.api.common import SERVER_LEVELS_MOST
from eclectus_operator import __main__ as program
from eclectus_operator import program as process
from eclectus_operator.__main__ import main
from eclectus_operator.metrics import Metrics
from eclectus_operator.program import SyncLoop, copies, dag_jobs, kinds, pools, probes
from eclectus_operator.settings import LeaseSettings, ServerSettings, Settings


@pytest.mark.parametrize("kind", [probes, dag_jobs, pools, copies])
@pytest.mark.long
def test_it_runs_as_a_user_without_a_name(monkeypatch, caplog, kind):
    """As in a container: the images' user is a number that /etc/passwd does not list."""

    troubles = []

    def nameless():
        raise KeyError("getpwuid(): uid not found: 65532")

    def log_in():
        troubles.append(thread.trouble())
        thread._stop_flag.set()
        return kopf.ConnectionInfo(server="http://127.0.0.1:1")

    monkeypatch.setattr(getpass, "getuser", nameless)
    monkeypatch.setattr(process, "login", log_in)
    settings = Settings(instance="a", namespace="ns", dag_jobs=True, copies="team")
    thread = SyncLoop(kind(settings), settings, lambda: False, Metrics())
    thread._synced_at -= 1e6  # it has waited for the Lease for long
    assert thread.trouble() == ""
    thread.start()
    thread.join(60)
    thread.stop()
    assert not thread.is_alive()
    assert set(troubles) == {""}
    assert " ended: " not in caplog.text


def test_all_of_it_is_imported_without_numpy_which_its_image_lacks():
    code = """
import pkgutil, importlib, sys
sys.modules["numpy"] = None
import eclectus_operator
for each in pkgutil.walk_packages(eclectus_operator.__path__, "eclectus_operator."):
    print(importlib.import_module(each.name).__name__)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "eclectus_operator.node_probes.dispatch" in run.stdout.split()


def test_what_is_not_switched_on_is_not_watched():
    def names(**given):
        return [each.name for each in kinds(Settings(instance="a", namespace="ns", **given))]

    assert names() == ["controller", "pools"]
    assert names(dag_jobs=True) == ["controller", "pools", "dag-jobs"]
    assert names(copies="team,other") == ["controller", "pools", "copies"]
    assert copies(Settings(instance="a", namespace="ns", copies="team,other")).where == {
        "namespaces": ["team", "other"]
    }


def test_a_clock_that_is_set_back_or_forward_changes_no_time_limit(monkeypatch):
    clock = SimpleNamespace(wall=1_000_000.0, since_boot=50.0)
    times = SimpleNamespace(time=lambda: clock.wall, monotonic=lambda: clock.since_boot)
    monkeypatch.setattr(process, "time", times)
    now = process.steady_clock()
    assert now() == 1_000_000.0
    clock.since_boot += 7.0
    for wall in (1_000_007.0, 996_400.0, 2_000_000.0):
        clock.wall = wall
        assert now() == 1_000_007.0


class _LosesItsLeaseBeforeItLeads:
    def __init__(self, *_):
        self.leading = asyncio.Event()

    async def run(self):
        """It is over at once."""

    async def resign(self):
        """There is nothing to give back."""

    def holds_lease(self):
        return False

    trouble = unanswered = str


def test_a_replica_that_loses_the_lease_while_it_waits_for_its_claim_ends(monkeypatch):
    """Found by chaos: it waited for ever for a leadership that was over, and took part in no election."""
    monkeypatch.setattr(process, "Leadership", _LosesItsLeaseBeforeItLeads)
    monkeypatch.setattr(process, "login", lambda: kopf.ConnectionInfo(server="http://127.0.0.1:1"))
    running = process.run(Settings("a", "ns"), LeaseSettings("ns"), ServerSettings(port=0))
    assert asyncio.run(asyncio.wait_for(running, 10)) == 1


REQUIRED = ["--instance=a", "--namespace=ns", "--lease-namespace=ns"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--address=0.0.0.0"], "authentication: none would show the pages to everybody who reaches 0.0.0.0"),
        (["--authentication=basic"], "'basic' is not one of 'none', 'delegated'"),
        (["--tls-cert-file=a"], "tls_private_key_file: is missing"),
    ],
)
def test_a_server_that_would_be_open_by_accident_is_refused(options, message):
    done = CliRunner().invoke(main, [*REQUIRED, *options])
    assert done.exit_code == 2
    assert message in done.output


def test_a_certificate_that_cannot_be_read_is_named(tmp_path):
    files = [f"--tls-cert-file={tmp_path}/c", f"--tls-private-key-file={tmp_path}/k"]
    done = CliRunner().invoke(main, [*REQUIRED, *files])
    assert done.exit_code == 1
    assert (
        f"the certificate of the server cannot be read: [Errno 2] No such file or directory: '{tmp_path}/c'"
        in (done.output)
    )


def test_objects_nested_as_deep_as_the_api_server_takes_them_are_decoded(monkeypatch):
    """kopf decodes whole objects, and what it raises would end the operator for everybody."""
    deep = '{"a":' * (SERVER_LEVELS_MOST - 100) + "{}" + "}" * (SERVER_LEVELS_MOST - 100)

    async def run(*parts):
        return 0 if json.loads(deep) else 1

    monkeypatch.setattr(program, "run", run)
    before = sys.getrecursionlimit()
    try:
        assert CliRunner().invoke(main, REQUIRED).exit_code == 0
    finally:
        sys.setrecursionlimit(before)
