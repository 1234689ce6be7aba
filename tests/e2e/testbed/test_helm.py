"""helm is on the PATH of the shell that uses the cluster, also where the machine has none."""

import subprocess
from pathlib import Path

import pytest

from eclectus_e2e.testbed import helm
from eclectus_e2e.testbed.controlplane import build


def test_without_helm_a_script_compiles_and_runs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helm.shutil, "which", lambda _: None)
    (folder,) = helm.folders(tmp_path)
    cache = tmp_path / "eclectus" / helm.HELM.folder / build.build_key(helm.HELM.module) / "bin"
    cache.mkdir(parents=True)
    (cache / "helm").write_text('#!/bin/sh\necho "compiled helm, called with: $*"\n')
    (cache / "helm").chmod(0o755)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    printed = subprocess.run(
        [folder / "helm", "list", "-A"], capture_output=True, text=True, check=True
    ).stdout
    assert printed == "compiled helm, called with: list -A\n"


def test_the_machines_helm_is_used_where_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(helm.shutil, "which", lambda _: "/usr/local/bin/helm")
    assert helm.folders(tmp_path) == []
    assert list(tmp_path.iterdir()) == []
