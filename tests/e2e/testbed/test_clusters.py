"""Selecting a cluster: wrong selections are errors before anything is started."""

import json
from pathlib import Path

import pytest

from eclectus_e2e.errors import MachineError, StartError, UsageError
from eclectus_e2e.testbed import clusters
from eclectus_e2e.testbed.controlplane import endpoint, plane


def test_an_unknown_selection_is_an_error_that_lists_the_choices() -> None:
    with pytest.raises(UsageError, match=r"minikube.*kind.*existing"):
        clusters.choice({"E2E": "minikube"})


def test_existing_needs_a_kubeconfig() -> None:
    with pytest.raises(UsageError, match="KUBECONFIG"):
        clusters.existing_cluster({"KUBECONFIG": "/does/not/exist"})


def test_an_existing_cluster_is_read_from_its_kubeconfig(tmp_path: Path) -> None:
    file = tmp_path / "config"
    content = {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [
            {"name": "other", "cluster": {}},
            {"name": "c", "cluster": {"server": "https://somewhere:1"}},
        ],
    }
    file.write_text(json.dumps(content))
    assert clusters.existing_cluster({"KUBECONFIG": str(file)}).url == "https://somewhere:1"


def test_kind_without_docker_is_an_error_that_names_the_alternative(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("E2E", "kind")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MachineError, match=r"docker.*Without E2E"):
        clusters.start(tmp_path / "cluster")
    assert not (tmp_path / "cluster").exists()


def test_a_directory_with_other_files_is_never_deleted(tmp_path: Path) -> None:
    other = tmp_path / "notes.txt"
    other.touch()
    with pytest.raises(StartError, match="no control plane wrote"):
        plane.remove(tmp_path)
    assert other.exists()


def test_free_ports_differ() -> None:
    assert len(set(endpoint.free_ports(5))) == 5
