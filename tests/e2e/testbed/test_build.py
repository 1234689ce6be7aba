"""Compiled programs: cached by a hash of the inputs, complete or absent, one build at a time."""

import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from eclectus_e2e.errors import BuildError
from eclectus_e2e.testbed.controlplane import build

# Replaces `go build ... -o TARGET PACKAGE...`: writes the programs and a line for each call.
FAKE_GO = """#!/bin/sh
echo called >> "{calls}"
while [ "$1" != -o ]; do shift; done
target=$2; shift 2
{before}
case "$target" in
  */) for package in "$@"; do echo program > "$target$(basename "$package")"; done ;;
  *) echo program > "$target" ;;
esac
"""


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "calls"


def use_go(monkeypatch: pytest.MonkeyPatch, calls: Path, before: str = "") -> None:
    go = calls.parent / "go"
    go.write_text(FAKE_GO.format(calls=calls, before=before))
    go.chmod(0o755)
    monkeypatch.setattr(build, "go_program", lambda: go)


def test_every_program_is_built_and_a_second_call_builds_nothing(
    calls: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_go(monkeypatch, calls)
    folder = build.binaries()
    assert {path.name for path in folder.iterdir()} == {*build.PROGRAMS, "etcd"}
    assert build.binaries() == folder
    assert calls.read_text().count("called") == 2  # Kubernetes' programs, and etcd


def test_concurrent_callers_build_once(calls: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_go(monkeypatch, calls, before="sleep 0.2")
    threads = [threading.Thread(target=build.binaries) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert calls.read_text().count("called") == 2


def test_a_failed_build_shows_the_end_of_its_log_and_leaves_no_programs(
    calls: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_go(monkeypatch, calls, before='echo "syntax error somewhere"; exit 3')
    with pytest.raises(BuildError, match=r"(?s)exit code 3.*syntax error somewhere"):
        build.binaries()
    use_go(monkeypatch, calls)
    folder = build.binaries()
    assert (folder / "etcd").exists()
    assert not list(folder.parent.glob("building-*"))


def test_the_key_follows_go_mod_go_sum_and_sources(tmp_path: Path) -> None:
    keys = set()
    for module, checksums in (("a", "b"), ("a", "c"), ("c", "b"), ("ab", "")):
        (tmp_path / "go.mod").write_text(module)
        (tmp_path / "go.sum").write_text(checksums)
        keys.add(build.build_key(tmp_path))
    for source in ("package main", "package other"):
        (tmp_path / "main.go").write_text(source)
        keys.add(build.build_key(tmp_path))
    assert len(keys) == 6


def test_the_progress_counts_modules_and_names_the_package() -> None:
    shown: list[str] = []
    counts = build._Counts(SimpleNamespace(update=shown.append), 7)
    for line in ("go: downloading a v1", "go: downloading b v1", "k8s.io/api/apps/v1"):
        counts.add(line)
    assert shown == [
        "1 modules downloaded",
        "2 modules downloaded",
        "1 of about 7 packages compiled, k8s.io/api/apps/v1",
    ]
