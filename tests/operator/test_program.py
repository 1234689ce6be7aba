"""The process around kopf."""

import getpass

import kopf

from eclectus_operator import handlers
from eclectus_operator.decide.metrics import Metrics
from eclectus_operator.program import Operator
from eclectus_operator.settings import Settings


def test_it_runs_as_a_user_without_a_name(monkeypatch, caplog):
    """As in a container: the images' user is a number that /etc/passwd does not list."""

    def nameless():
        raise KeyError("getpwuid(): uid not found: 65532")

    def log_in():
        operator._stop_flag.set()
        return kopf.ConnectionInfo(server="http://127.0.0.1:1")

    monkeypatch.setattr(getpass, "getuser", nameless)
    monkeypatch.setattr(handlers, "login", log_in)
    operator = Operator(Settings(instance="a", namespace="ns"), lambda: False, lambda: None, Metrics())
    operator.start()
    operator.join(60)
    operator.stop()
    assert not operator.is_alive()
    assert "ended: " not in caplog.text
