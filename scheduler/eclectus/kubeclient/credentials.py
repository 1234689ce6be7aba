"""The address of the API server, how to trust it, and how the client authenticates.

`load` reads ServiceAccounts and kubeconfigs itself, and runs exec plugins. It imports the `kubernetes`
package only for OIDC and several files in $KUBECONFIG, because the import takes a second of CPU, a third of a
scheduler's start, and 20 MB. The operator has its own source of credentials.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
import os
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from eclectus.kubeclient.addresses import is_loopback, joined
from eclectus.kubeclient.api_errors import CredentialsError
from eclectus.kubeclient.timing import TroubleLog

if TYPE_CHECKING:
    from eclectus.kubeclient.exec_plugin import ExecPlugin

_UNVERIFIED = (
    "sets insecure-skip-tls-verify, so anybody could answer for the API server: put the cluster's CA into "
    "certificate-authority-data instead"
)
RENEWAL_SECONDS = 60.0  # bound tokens rotate: the file or the plugin is asked again this often


class Endpoint(Struct, frozen=True):
    """Where the API server is and how to trust it. `tls` is None for plain HTTP."""

    url: str
    tls: ssl.SSLContext | None = None
    server_name: str | None = None
    proxy: str | None = None


@dataclass(eq=False)
class Credentials:
    """The endpoint and the authentication headers of every request.

    `renew` reads the headers again from their source, `renew_tls` the certificates; both run in a thread,
    since a plugin may be slow. `source` and `authenticates_by` are words for messages.
    """

    endpoint: Endpoint
    headers: Mapping[str, str] = field(default_factory=dict)  # empty where a client certificate authenticates
    renew: Callable[[], Mapping[str, str]] | None = None
    source: str = ""  # where the credentials come from
    authenticates_by: str = ""  # what proves the client's identity
    renew_tls: Callable[[], ssl.SSLContext] | None = None

    def __post_init__(self) -> None:
        self.renewals = 0  # how often they were read again, with success or not
        self.trouble = TroubleLog(logging.getLogger(__name__))  # with the API server that they are for
        self._renewing = Lock()  # of threads: clients on several event loops may share the credentials

    async def refresh_after(self, renewals: int) -> None:
        """Renew headers and certificates, unless it was done since there were so many renewals.

        So requests that fail together ask once. Raises what the source raises; the old ones stay in use then.
        """
        await asyncio.to_thread(self._refresh_after, renewals)

    def _refresh_after(self, renewals: int) -> None:
        with self._renewing:
            if self.renewals != renewals:
                return
            self.renewals += 1
            try:
                if self.renew is not None:
                    self.headers = self.renew()
            finally:  # a token that cannot be read keeps no certificate from being renewed
                if self.renew_tls is not None:
                    self.endpoint = replace(self.endpoint, tls=self.renew_tls())


def load(kubeconfig: Path | None = None, context: str | None = None) -> Credentials:
    """Those of the kubeconfig, else of the pod's ServiceAccount or the user. Raises CredentialsError."""
    if kubeconfig is None and "KUBERNETES_SERVICE_HOST" in os.environ:
        return in_cluster()
    default = os.environ.get("KUBECONFIG") or "~/.kube/config"
    several = kubeconfig is None and os.pathsep in default.strip(os.pathsep)
    found = None
    if not several:
        found = _read_kubeconfig(kubeconfig or Path(default.strip(os.pathsep)).expanduser(), context)
    return found or _by_package(kubeconfig, context, str(kubeconfig or default))


def _with_token(
    endpoint: Endpoint,
    token: Callable[[], str],
    source: str,
    by: str,
    renew_tls: Callable[[], ssl.SSLContext] | None,
) -> Credentials:
    """Credentials whose headers have what `token` returns, if anything; `by`: what authenticates."""

    def headers() -> Mapping[str, str]:
        found = token()
        return {"Authorization": f"Bearer {found}"} if found else {}

    return Credentials(endpoint, headers(), headers, source, by, renew_tls=renew_tls)


def _by_package(kubeconfig: Path | None, context: str | None, source: str) -> Credentials:
    from kubernetes.client import Configuration
    from kubernetes.config import ConfigException, load_kube_config
    from yaml import YAMLError

    configuration = Configuration()
    configuration.proxy = None  # only the kubeconfig's proxy-url counts, not an environment variable
    try:
        file = None if kubeconfig is None else str(kubeconfig)
        load_kube_config(file, context, configuration)  # type: ignore[no-untyped-call]
    except (ConfigException, OSError, ValueError, YAMLError) as error:
        raise CredentialsError(f"{source}: {error}") from error
    tls, url = _tls(configuration, source), configuration.host.rstrip("/")
    proxy = _proxy(url, configuration.proxy)
    endpoint = Endpoint(url, tls() if tls is not None else None, configuration.tls_server_name or None, proxy)
    hook = getattr(configuration, "refresh_api_key_hook", None)

    def renew() -> Mapping[str, str]:
        if hook is not None:
            hook(configuration)
        return _headers(configuration)

    login = f"the login of {source}"
    return Credentials(endpoint, _headers(configuration), renew, source, login, renew_tls=tls)


def _headers(configuration: Any) -> dict[str, str]:
    token = configuration.api_key.get("BearerToken")
    # The package writes the scheme in lower case, which some proxies do not accept.
    return {"Authorization": "Bearer " + token.split(" ", 1)[-1]} if token else {}


def _proxy(url: str, proxy: str | None) -> str | None:
    if not proxy:
        return None
    from urllib.request import proxy_bypass  # imports what a client of HTTP needs, which few starts do

    host = urlsplit(url).hostname or ""
    return None if is_loopback(host) or proxy_bypass(host) else proxy


def _tls(configuration: Any, source: str) -> TlsContext[tuple[bytes, bytes]] | None:
    """The context of the files that the package names now, whose contents a plugin may replace."""
    if not configuration.host.startswith("https:"):
        return None
    if not configuration.verify_ssl:
        raise CredentialsError(f"the kubeconfig {_UNVERIFIED}")

    def read() -> tuple[bytes, bytes]:
        certificate, key = _content(configuration.cert_file), _content(configuration.key_file)
        return _content(configuration.ssl_ca_cert), certificate and certificate + b"\n" + key

    return TlsContext(read, lambda found: trusting(*found, source))


def _content(file: str | None) -> bytes:
    return read_file(Path(file), "the certificates cannot be read") if file else b""


def read_file(file: Path, problem: str) -> bytes:
    """The content. Raises CredentialsError, with these words for the problem."""
    try:
        return file.read_bytes()
    except OSError as error:
        raise CredentialsError(f"{problem}: {error}") from error


# -- ServiceAccounts and kubeconfigs without the `kubernetes` package --------------------------------

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def in_cluster(folder: Path = SERVICE_ACCOUNT) -> Credentials:
    """Those of the pod's own ServiceAccount. Raises CredentialsError."""
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    token_file, ca = folder / "token", folder / "ca.crt"
    if not token_file.exists():
        problem = "is missing: set automountServiceAccountToken of the pod, or give --kubeconfig"
        raise CredentialsError(f"{token_file}: {problem}")
    url = f"https://{joined(host, port)}"
    problem = f"{ca}: the certificate authority cannot be read"
    tls = TlsContext(lambda: read_file(ca, problem), lambda pem: trusting(pem, b"", str(ca)))
    by, source = f"the token in {token_file}", "the pod's ServiceAccount"
    return _with_token(Endpoint(url, tls()), _file_token(token_file), source, by, tls)


def _read_kubeconfig(file: Path, context: str | None) -> Credentials | None:
    """Those that a context of the file gives; None if it needs a plugin. Raises CredentialsError."""
    document = _document(file)
    chosen = _context(document, file, context)
    cluster = _named(document, "clusters", "cluster", chosen.get("cluster"), file)
    user = _named(document, "users", "user", chosen["user"], file) if chosen.get("user") else {}
    if user.get("auth-provider"):
        return None
    plugin = _plugin(user["exec"], cluster, file) if user.get("exec") else None
    (token, by), tls = _token(user, file, plugin), _cluster_tls(cluster, user, file, plugin)
    url = str(cluster.get("server") or "").rstrip("/")
    proxy = _proxy(url, cluster.get("proxy-url") or None)
    endpoint = Endpoint(url, None if tls is None else tls(), cluster.get("tls-server-name") or None, proxy)
    return _with_token(endpoint, token, str(file), by, tls)


def yaml_of(file: Path) -> Any:
    """What a file has as YAML, read by the parser in C where there is one: a tenth of the other's time."""
    import yaml

    return yaml.load(file.read_text(encoding="utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506


def _document(file: Path) -> dict[str, Any]:
    from yaml import YAMLError

    try:
        found = yaml_of(file)
    except FileNotFoundError as error:
        advice = "name another file with --kubeconfig or $KUBECONFIG"
        raise CredentialsError(f"there is no kubeconfig {file}: {advice}") from error
    except (OSError, UnicodeDecodeError, ValueError, YAMLError) as error:
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


def _plugin(config: dict[str, Any], cluster: dict[str, Any], file: Path) -> ExecPlugin:
    """The exec plugin of a user; if it asks for the cluster, with what the API of plugins has of that."""
    from eclectus.kubeclient.exec_plugin import ExecPlugin

    if not config.get("provideClusterInfo"):
        return ExecPlugin(config, file, None)
    info = {key: cluster[key] for key in ("server", "tls-server-name", "proxy-url") if cluster.get(key)}
    if authority := _pem(cluster, "certificate-authority", file):
        info["certificate-authority-data"] = base64.b64encode(authority).decode()
    for each in cluster.get("extensions") or ():
        if each.get("name") == "client.authentication.k8s.io/exec":
            info["config"] = each.get("extension")
    return ExecPlugin(config, file, info)


def _token(user: dict[str, Any], file: Path, plugin: ExecPlugin | None) -> tuple[Callable[[], str], str]:
    """What reads the token (empty: none), and the words for how the client authenticates."""
    if plugin is not None:
        return lambda: plugin.current().token, f"the login of {file}"
    if user.get("tokenFile"):
        path = file.parent / str(user["tokenFile"])
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


def _cluster_tls(
    cluster: dict[str, Any], user: dict[str, Any], file: Path, plugin: ExecPlugin | None
) -> Callable[[], ssl.SSLContext] | None:
    server = str(cluster.get("server") or "")
    if not server.startswith(("http://", "https://")):
        raise CredentialsError(f"{file}: server {server!r} of the cluster must start with https://")
    if server.startswith("http:"):
        return None
    if cluster.get("insecure-skip-tls-verify"):
        raise CredentialsError(f"{file}: {_UNVERIFIED}")

    def read() -> tuple[bytes, bytes]:
        authority = _pem(cluster, "certificate-authority", file)
        if plugin is not None:
            return authority, plugin.current().pem
        certificate, key = _pem(user, "client-certificate", file), _pem(user, "client-key", file)
        return authority, certificate and certificate + b"\n" + key

    return TlsContext(read, lambda found: trusting(*found, str(file)))


def _pem(entry: Mapping[str, Any], key: str, file: Path) -> bytes:
    """The bytes of `key`-data or of the file that `key` names; empty if there is neither."""
    if data := entry.get(f"{key}-data"):
        try:
            return base64.b64decode(str(data), validate=True)
        except binascii.Error as error:
            raise CredentialsError(f"{file}: {key}-data is not base64: {error}") from error
    # Relative paths of a kubeconfig are relative to its folder.
    return read_file(file.parent / str(entry[key]), f"{file}: {key}") if entry.get(key) else b""


T = TypeVar("T")


class TlsContext(Generic[T]):
    """A context made of what `read` returns, as bytes of certificates; made anew when that changes.

    Otherwise it stays the same object: a pool keeps connections by context, and uses none of another.
    """

    def __init__(self, read: Callable[[], T], make: Callable[[T], ssl.SSLContext]) -> None:
        self._read = read
        self._make = make
        self._found = read()
        self._context = make(self._found)

    def __call__(self) -> ssl.SSLContext:
        """The context for the certificates as they are now. Raises what `read` and `make` raise."""
        found = self._read()
        if found != self._found:
            self._context, self._found = self._make(found), found
        return self._context


def trusting(authority: bytes, certificate: bytes, where: str) -> ssl.SSLContext:
    """A context that trusts this authority, or those of the machine if it is empty.

    It authenticates with a client certificate and its key, unless they are empty. Raises CredentialsError.
    """
    try:
        context = ssl.create_default_context(cadata=authority.decode(errors="replace"))
    except (ValueError, ssl.SSLError) as error:
        raise CredentialsError(f"{where}: the certificate authority cannot be read: {error}") from error
    if certificate:
        load_certificate(context, certificate, where)
    return context


def load_certificate(context: ssl.SSLContext, pem: bytes, where: str) -> None:
    """Authenticate with this certificate and its key, as client or as server. Raises CredentialsError."""
    with _file_with(pem) as name:
        try:
            # An empty password: for an encrypted key OpenSSL would ask on the terminal.
            context.load_cert_chain(name, password="")
        except (OSError, ssl.SSLError) as error:
            problem = f"the certificate and its key cannot be read: {error}"
            raise CredentialsError(f"{where}: {problem}") from error


@contextmanager
def _file_with(content: bytes) -> Iterator[str]:
    """The name of a file with this content, which is gone after the block: Python reads keys from files only.

    Where Linux allows it the file is in memory: no key is on a disk, and the module `tempfile`, with the four
    formats of compression that it imports, is not needed.
    """
    with ExitStack() as stack:
        try:
            file: Any = stack.enter_context(os.fdopen(os.memfd_create("certificate"), "wb"))
            name = f"/proc/self/fd/{file.fileno()}"
        except (AttributeError, OSError):
            from tempfile import NamedTemporaryFile

            file = stack.enter_context(NamedTemporaryFile())  # mode 0600
            name = file.name
        file.write(content)
        file.flush()
        yield name
