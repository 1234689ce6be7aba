"""A kubeconfig that names a server which does not answer."""

from pathlib import Path

import pytest
import yaml


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Path:
    path = tmp_path / "config"
    cluster = {"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}
    context = {"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "mine"}}
    user = {"name": "u", "user": {}}
    body = {"clusters": [cluster], "contexts": [context], "users": [user], "current-context": "x"}
    path.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Config", **body}))
    return path
