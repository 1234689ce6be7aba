"""The process around kopf."""

import getpass

import kopf
import pytest

from eclectus_operator import handlers
from eclectus_operator.decide.metrics import Metrics
from eclectus_operator.program import KopfThread
from eclectus_operator.settings import Settings


@pytest.mark.long
def test_it_runs_as_a_user_without_a_name(monkeypatch, caplog):
    """As in a container: the images' user is a number that /etc/passwd does not list."""

    def nameless():
        raise KeyError("getpwuid(): uid not found: 65532")

    def log_in():
        thread._stop_flag.set()
        return kopf.ConnectionInfo(server="http://127.0.0.1:1")

    monkeypatch.setattr(getpass, "getuser", nameless)
    monkeypatch.setattr(handlers, "login", log_in)
    thread = KopfThread(Settings(instance="a", namespace="ns"), lambda: False, lambda: None, Metrics())
    thread.start()
    thread.join(60)
    thread.stop()
    assert not thread.is_alive()
    assert "ended: " not in caplog.text
