"""The address of the API server, how to trust it, and how the client authenticates.

`load` reads ServiceAccounts and plain kubeconfigs itself (`kubeconfig.py`). It imports the `kubernetes`
package only for exec plugins, OIDC and several files in $KUBECONFIG, because the import takes a second of CPU
and 20 MB. The operator has its own source of credentials.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import proxy_bypass

from eclectus.kubeclient import kubeconfig as kubeconfigs
from eclectus.kubeclient.addresses import is_loopback
from eclectus.kubeclient.api_errors import CredentialsError
from eclectus.kubeclient.tls import TlsContext, authenticating

RENEWAL_SECONDS = 60.0  # bound tokens rotate: the file or the plugin is asked again this often


@dataclass(frozen=True)
class Endpoint:
    """Where the API server is and how to trust it. `tls` is None for plain HTTP."""

    url: str
    tls: ssl.SSLContext | None = None
    server_name: str | None = None
    proxy: str | None = None


class Credentials:
    """The endpoint and the authentication headers of every request.

    `headers` are empty where a client certificate authenticates. `renew` reads them again from their source,
    `renew_tls` the certificates; both run in a thread, since a plugin may be slow. `source` and
    `authenticates_by` are words for messages: where the credentials come from, and what proves the client's
    identity. `renewals` counts how often they were read again, with success or not.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        headers: Mapping[str, str] | None = None,
        renew: Callable[[], Mapping[str, str]] | None = None,
        source: str = "",
        authenticates_by: str = "",
        *,
        renew_tls: Callable[[], ssl.SSLContext] | None = None,
    ) -> None:
        self.endpoint = endpoint
        self.source = source
        self.authenticates_by = authenticates_by
        self.headers = headers or {}
        self.renewals = 0
        self._renew = renew
        self._renew_tls = renew_tls
        self._renewing = asyncio.Lock()

    async def refresh(self) -> None:
        """Renew headers and certificates. Raises what their source raises; the old ones stay in use then."""
        await self.refresh_after(self.renewals)

    async def refresh_after(self, renewals: int) -> None:
        """The same, unless it was done since there were so many: requests that fail together ask once."""
        async with self._renewing:
            if self.renewals != renewals:
                return
            self.renewals += 1
            try:
                if self._renew is not None:
                    self.headers = await asyncio.to_thread(self._renew)
            finally:  # a token that cannot be read keeps no certificate from being renewed
                if self._renew_tls is not None:
                    self.endpoint = replace(self.endpoint, tls=await asyncio.to_thread(self._renew_tls))


def load(kubeconfig: Path | None = None, context: str | None = None) -> Credentials:
    """Credentials from a kubeconfig; without one, the pod's own ServiceAccount, else the user's kubeconfig.

    Raises CredentialsError.
    """
    if kubeconfig is None and "KUBERNETES_SERVICE_HOST" in os.environ:
        return _from_access(kubeconfigs.in_cluster(), "the pod's ServiceAccount")
    default = os.environ.get("KUBECONFIG") or "~/.kube/config"
    several = kubeconfig is None and os.pathsep in default.strip(os.pathsep)
    if not several:
        file = kubeconfig or Path(default.strip(os.pathsep)).expanduser()
        access = kubeconfigs.read(file, context)
        if access is not None:
            return _from_access(access, str(file))
    return _by_package(kubeconfig, context, str(kubeconfig or default))


def _from_access(access: kubeconfigs.Access, source: str) -> Credentials:
    tls = access.tls() if access.tls is not None else None
    endpoint = Endpoint(access.server, tls, access.server_name, _proxy(access.server, access.proxy))

    def headers() -> Mapping[str, str]:
        token = access.token()
        return {"Authorization": f"Bearer {token}"} if token else {}

    return Credentials(endpoint, headers(), headers, source, access.authenticates_by, renew_tls=access.tls)


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
    tls = _tls(configuration, source)
    endpoint = _endpoint(configuration, tls() if tls is not None else None)
    return from_configuration(endpoint, configuration, source, renew_tls=tls)


def from_configuration(
    endpoint: Endpoint,
    configuration: Any,
    source: str = "",
    *,
    renew_tls: Callable[[], ssl.SSLContext] | None = None,
) -> Credentials:
    """Credentials with the token of a `kubernetes.client.Configuration`, renewed by its own hook."""
    hook = getattr(configuration, "refresh_api_key_hook", None)

    def renew() -> Mapping[str, str]:
        if hook is not None:
            hook(configuration)
        return _headers(configuration)

    login = f"the login of {source}"
    return Credentials(endpoint, _headers(configuration), renew, source, login, renew_tls=renew_tls)


def _headers(configuration: Any) -> dict[str, str]:
    token = configuration.api_key.get("BearerToken")
    # The package writes the scheme in lower case, which some proxies do not accept.
    return {"Authorization": "Bearer " + token.split(" ", 1)[-1]} if token else {}


def _endpoint(configuration: Any, tls: ssl.SSLContext | None) -> Endpoint:
    url = configuration.host.rstrip("/")
    proxy = _proxy(url, configuration.proxy)
    return Endpoint(url, tls, configuration.tls_server_name or None, proxy)


def _proxy(url: str, proxy: str | None) -> str | None:
    return None if proxy and _bypasses_proxy(urlsplit(url).hostname or "") else proxy


def _tls(configuration: Any, source: str) -> TlsContext[tuple[bytes, bytes]] | None:
    """The context of the files that the package names now, whose contents a plugin may replace."""
    if not configuration.host.startswith("https:"):
        return None
    if not configuration.verify_ssl:
        raise CredentialsError(
            "the kubeconfig sets insecure-skip-tls-verify, so anybody could answer for the API server: "
            "put the cluster's CA into certificate-authority-data instead"
        )

    def read() -> tuple[bytes, bytes]:
        certificate, key = _content(configuration.cert_file), _content(configuration.key_file)
        return _content(configuration.ssl_ca_cert), certificate and certificate + b"\n" + key

    return TlsContext(read, lambda found: authenticating(*found, source))


def _content(file: str | None) -> bytes:
    try:
        return Path(file).read_bytes() if file else b""
    except OSError as error:
        raise CredentialsError(f"the certificates cannot be read: {error}") from error


def _bypasses_proxy(host: str) -> bool:
    return is_loopback(host) or bool(proxy_bypass(host))
