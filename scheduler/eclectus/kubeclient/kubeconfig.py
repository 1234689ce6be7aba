"""Kubeconfigs and ServiceAccounts that need no plugin, read without the `kubernetes` package.

That package takes a second of CPU to import, a third of a scheduler's start. It remains for what it is good
at: exec plugins, OIDC, and merging several files. `read` answers None for those.
"""

from __future__ import annotations

import base64
import binascii
import os
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eclectus.kubeclient.api_errors import CredentialsError
from eclectus.kubeclient.tls import TlsContext, authenticating, trusting

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_PLUGINS = ("exec", "auth-provider")


@dataclass(frozen=True)
class Access:
    """Where the API server is, and how to trust it and to authenticate.

    `tls` and `token` read what is in files anew; `tls` is None for plain HTTP.
    """

    server: str
    tls: Callable[[], ssl.SSLContext] | None
    token: Callable[[], str]
    server_name: str | None = None
    proxy: str | None = None
    authenticates_by: str = "no credentials"


def in_cluster(folder: Path = SERVICE_ACCOUNT) -> Access:
    """The pod's own ServiceAccount. Raises CredentialsError."""
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    token_file, ca = folder / "token", folder / "ca.crt"
    if not token_file.exists():
        problem = "is missing: set automountServiceAccountToken of the pod, or give --kubeconfig"
        raise CredentialsError(f"{token_file}: {problem}")
    server = f"https://{f'[{host}]' if ':' in host else host}:{port}"
    return Access(
        server,
        TlsContext(lambda: _authority(ca), lambda pem: trusting(pem, str(ca))),
        _file_token(token_file),
        authenticates_by=f"the token in {token_file}",
    )


def read(file: Path, context: str | None) -> Access | None:
    """The access that a context of the file gives; None if it needs a plugin. Raises CredentialsError."""
    document = _document(file)
    chosen = _context(document, file, context)
    cluster = _named(document, "clusters", "cluster", chosen.get("cluster"), file)
    user = _named(document, "users", "user", chosen["user"], file) if chosen.get("user") else {}
    if any(user.get(plugin) for plugin in _PLUGINS):
        return None
    token, by = _token(user, file)
    return Access(
        str(cluster.get("server") or "").rstrip("/"),
        _cluster_tls(cluster, user, file),
        token,
        cluster.get("tls-server-name") or None,
        cluster.get("proxy-url") or None,
        by,
    )


# -- the document ----------------------------------------------------------------------------------


def _document(file: Path) -> dict[str, Any]:
    import yaml

    try:
        found = yaml.load(file.read_text(encoding="utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506
    except FileNotFoundError as error:
        advice = "name another file with --kubeconfig or $KUBECONFIG"
        raise CredentialsError(f"there is no kubeconfig {file}: {advice}") from error
    except (OSError, UnicodeDecodeError, ValueError, yaml.YAMLError) as error:
        raise CredentialsError(f"{file}: cannot be read as a kubeconfig: {error}") from error
    if not isinstance(found, dict) or not isinstance(found.get("clusters"), list):
        raise CredentialsError(f"{file}: is not a kubeconfig: it has no list `clusters`")
    return found


def _context(document: dict[str, Any], file: Path, context: str | None) -> dict[str, Any]:
    entries = document.get("contexts") or []
    names = ", ".join(str(each.get("name")) for each in entries if isinstance(each, dict))
    advice = f"choose one of {names} with --context" if names else "add one with `kubectl config set-context`"
    wanted = context or document.get("current-context")
    if not wanted:
        raise CredentialsError(f"{file}: has no current-context: {advice}")
    for each in entries:
        if isinstance(each, dict) and each.get("name") == wanted:
            return each.get("context") or {}
    raise CredentialsError(f"{file}: has no context {wanted!r}: {advice}")


def _named(document: dict[str, Any], kind: str, key: str, name: object, file: Path) -> dict[str, Any]:
    for each in document.get(kind) or []:
        if isinstance(each, dict) and each.get("name") == name:
            return each.get(key) or {}
    raise CredentialsError(f"{file}: the context names {key} {name!r}, which is not among its {kind}")


# -- authentication --------------------------------------------------------------------------------


def _token(user: dict[str, Any], file: Path) -> tuple[Callable[[], str], str]:
    """What reads the token (empty: none), and the words for how the client authenticates."""
    if user.get("tokenFile"):
        path = _path(user["tokenFile"], file)
        return _file_token(path), f"the token in {path}"
    if user.get("token"):
        token = str(user["token"])
        return lambda: token, f"the token in {file}"
    has_certificate = user.get("client-certificate") or user.get("client-certificate-data")
    return lambda: "", f"the client certificate in {file}" if has_certificate else "no credentials"


def _file_token(path: Path) -> Callable[[], str]:
    def token() -> str:
        try:
            found = path.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise CredentialsError(f"{path}: the token cannot be read: {error}") from error
        if not found:  # as while it is being written: the old one may still be valid, and no token is not
            raise CredentialsError(f"{path}: the token cannot be read: the file is empty")
        return found

    return token


# -- TLS -------------------------------------------------------------------------------------------


def _authority(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise CredentialsError(f"{file}: the certificate authority cannot be read: {error}") from error


def _cluster_tls(
    cluster: dict[str, Any], user: dict[str, Any], file: Path
) -> Callable[[], ssl.SSLContext] | None:
    server = str(cluster.get("server") or "")
    if not server.startswith(("http://", "https://")):
        raise CredentialsError(f"{file}: server {server!r} of the cluster must start with https://")
    if server.startswith("http:"):
        return None
    if cluster.get("insecure-skip-tls-verify"):
        raise CredentialsError(
            f"{file}: sets insecure-skip-tls-verify, so anybody could answer for the API server: "
            "put the cluster's CA into certificate-authority-data instead"
        )

    def read() -> tuple[bytes, bytes]:
        certificate, key = _pem(user, "client-certificate", file), _pem(user, "client-key", file)
        return _pem(cluster, "certificate-authority", file), certificate and certificate + b"\n" + key

    return TlsContext(read, lambda found: authenticating(*found, str(file)))


def _pem(entry: Mapping[str, Any], key: str, file: Path) -> bytes:
    """The bytes of `key`-data or of the file that `key` names; empty if there is neither."""
    if data := entry.get(f"{key}-data"):
        try:
            return base64.b64decode(str(data), validate=True)
        except binascii.Error as error:
            raise CredentialsError(f"{file}: {key}-data is not base64: {error}") from error
    if not entry.get(key):
        return b""
    path = _path(entry[key], file)
    try:
        return path.read_bytes()
    except OSError as error:
        raise CredentialsError(f"{file}: {key}: {error}") from error


def _path(value: object, file: Path) -> Path:
    """Relative paths of a kubeconfig are relative to its folder."""
    return file.parent / str(value)
