"""Building once: keyed by what decides the outcome, whole or not at all, one at a time."""

import threading
from pathlib import Path

import pytest

from eclectus_e2e.errors import BuildError
from eclectus_e2e.testbed.controlplane import build

# Stands for `go build ... -o TARGET PACKAGE...`: writes the programs and notes that it was called.
FAKE_GO = """#!/bin/sh
echo called >> "{notes}"
while [ "$1" != -o ]; do shift; done
target=$2; shift 2
{before}
case "$target" in
  */) for package in "$@"; do echo program > "$target$(basename "$package")"; done ;;
  *) echo program > "$target" ;;
esac
"""


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "notes"


def use_go(monkeypatch: pytest.MonkeyPatch, notes: Path, before: str = "") -> None:
    go = notes.parent / "go"
    go.write_text(FAKE_GO.format(notes=notes, before=before))
    go.chmod(0o755)
    monkeypatch.setattr(build, "go_program", lambda: go)


def test_every_program_is_there_and_a_second_call_builds_nothing(
    notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_go(monkeypatch, notes)
    folder = build.binaries()
    assert {path.name for path in folder.iterdir()} == {*build.PROGRAMS, "etcd"}
    assert build.binaries() == folder
    assert notes.read_text().count("called") == 2  # Kubernetes' programs, and etcd


def test_two_at_once_build_once(notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_go(monkeypatch, notes, before="sleep 0.2")
    threads = [threading.Thread(target=build.binaries) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert notes.read_text().count("called") == 2


def test_a_failed_build_shows_the_end_of_its_log_and_leaves_nothing_that_looks_built(
    notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_go(monkeypatch, notes, before='echo "syntax error somewhere"; exit 3')
    with pytest.raises(BuildError, match=r"(?s)exit code 3.*syntax error somewhere"):
        build.binaries()
    use_go(monkeypatch, notes)
    folder = build.binaries()
    assert (folder / "etcd").exists()
    assert not list(folder.parent.glob("building-*"))


def test_the_key_follows_go_mod_and_go_sum(tmp_path: Path) -> None:
    keys = set()
    for module, checksums in (("a", "b"), ("a", "c"), ("c", "b"), ("ab", "")):
        (tmp_path / "go.mod").write_text(module)
        (tmp_path / "go.sum").write_text(checksums)
        keys.add(build.build_key(tmp_path))
    assert len(keys) == 4
