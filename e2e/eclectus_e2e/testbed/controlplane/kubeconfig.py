"""Writes self-contained kubeconfig files: certificates and keys are inlined."""

import base64
import json
from pathlib import Path

from eclectus_e2e.testbed.controlplane.certificates import KeyPair


def write_kubeconfig(path: Path, url: str, authority: Path, client: KeyPair) -> Path:
    """Write a kubeconfig with a client certificate."""
    user = {"client-certificate-data": _encoded(client.certificate), "client-key-data": _encoded(client.key)}
    return _write(path, url, authority, user)


def write_token_kubeconfig(path: Path, url: str, authority: Path, token: str) -> Path:
    """Write a kubeconfig with a bearer token."""
    return _write(path, url, authority, {"token": token})


def _write(path: Path, url: str, authority: Path, user: dict[str, str]) -> Path:
    """Write the file as JSON, which is valid YAML, with mode 0600 from its creation."""
    name = "eclectus-e2e"
    cluster = {"server": url, "certificate-authority-data": _encoded(authority)}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }
    path.touch(mode=0o600)
    path.write_text(json.dumps(content, indent=2) + "\n")
    return path


def _encoded(file: Path) -> str:
    return base64.b64encode(file.read_bytes()).decode()
