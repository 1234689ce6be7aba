"""`make audit` looks up every lock, and says why where it cannot."""

import pytest

from eclectus_e2e.paths import CHECKOUT
from eclectus_hack import audit

CLOSED = "http://127.0.0.1:1/"  # a port that nobody listens on


def test_where_the_service_cannot_be_reached_it_is_skipped_with_the_reason(monkeypatch, capsys):
    monkeypatch.setattr(audit, "SERVICE", CLOSED)
    assert audit.audit([]) == 0
    assert capsys.readouterr().err.startswith(f"audit: skipped, because {CLOSED} cannot be read: ")


def test_a_refused_answer_is_a_reason_too(tmp_path):
    assert audit.why_unreachable((tmp_path / "missing").as_uri())
    (tmp_path / "found").write_text("x")
    assert audit.why_unreachable((tmp_path / "found").as_uri()) == ""


@pytest.mark.parametrize("code", [0, 1])
def test_its_exit_code_is_that_of_pip_audit(monkeypatch, tmp_path, code):
    program = tmp_path / "pip-audit"
    program.write_text(f"#!/bin/sh\nexit {code}\n")
    program.chmod(0o755)
    monkeypatch.setattr(audit, "why_unreachable", lambda url: "")
    monkeypatch.setattr(audit, "_program", lambda: program)
    assert audit.audit([]) == code


def test_every_lock_is_audited():
    locks = {path.name for path in (CHECKOUT / "requirements").iterdir()}
    named = {each.rpartition("/")[2] for each in audit.command(CHECKOUT) if each.startswith("--requirement=")}
    assert named == locks
    assert {"live.lock", "operator.lock", "build.lock", "dev.lock", "audit.lock"} <= locks
