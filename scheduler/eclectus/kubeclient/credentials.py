"""The address of the API server, how to trust it, and how the client authenticates.

`load` uses the `kubernetes` package, but only to read kubeconfigs (exec plugins, OIDC and merging included)
and in-cluster ServiceAccounts. It is imported when it is called, because the import takes a fifth of a second
and 20 MB; the operator, which has its own source of credentials, does without it.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import proxy_bypass

from eclectus.kubeclient.errors import CredentialsError

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

    `headers` are empty where a client certificate authenticates. `renew` reads them again from their source;
    it runs in a thread, since a plugin may be slow.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        headers: Mapping[str, str] | None = None,
        renew: Callable[[], Mapping[str, str]] | None = None,
    ) -> None:
        self.endpoint = endpoint
        self.headers = headers or {}
        self._renew = renew
        self._renewing = asyncio.Lock()

    async def refresh(self) -> None:
        """Renew the headers. Raises whatever their source raises; the old ones stay in use then."""
        if self._renew is not None:
            async with self._renewing:
                self.headers = await asyncio.to_thread(self._renew)


def load(kubeconfig: Path | None = None, context: str | None = None) -> Credentials:
    """Credentials from a kubeconfig; without one, the pod's own ServiceAccount, else the user's kubeconfig.

    Raises CredentialsError.
    """
    from kubernetes.client import Configuration
    from kubernetes.config import ConfigException, load_incluster_config, load_kube_config
    from yaml import YAMLError

    configuration = Configuration()
    configuration.proxy = None  # only the kubeconfig's proxy-url counts, not an environment variable
    try:
        if kubeconfig is None and "KUBERNETES_SERVICE_HOST" in os.environ:
            load_incluster_config(configuration)  # type: ignore[no-untyped-call]
        else:
            file = None if kubeconfig is None else str(kubeconfig)
            load_kube_config(file, context, configuration)  # type: ignore[no-untyped-call]
    except (ConfigException, OSError, ValueError, YAMLError) as error:
        raise CredentialsError(f"{kubeconfig or 'default credentials'}: {error}") from error
    return from_configuration(_endpoint(configuration), configuration)


def from_configuration(endpoint: Endpoint, configuration: Any) -> Credentials:
    """Credentials with the token of a `kubernetes.client.Configuration`, renewed by its own hook."""
    hook = getattr(configuration, "refresh_api_key_hook", None)

    def renew() -> Mapping[str, str]:
        if hook is not None:
            hook(configuration)
        return _headers(configuration)

    return Credentials(endpoint, _headers(configuration), renew)


def _headers(configuration: Any) -> dict[str, str]:
    token = configuration.api_key.get("BearerToken")
    # The package writes the scheme in lower case, which some proxies do not accept.
    return {"Authorization": "Bearer " + token.split(" ", 1)[-1]} if token else {}


def _endpoint(configuration: Any) -> Endpoint:
    url = configuration.host.rstrip("/")
    proxy = configuration.proxy
    if proxy and _bypasses_proxy(urlsplit(url).hostname or ""):
        proxy = None
    return Endpoint(url, _tls(configuration), configuration.tls_server_name or None, proxy)


def _tls(configuration: Any) -> ssl.SSLContext | None:
    if not configuration.host.startswith("https:"):
        return None
    if not configuration.verify_ssl:
        raise CredentialsError(
            "the kubeconfig sets insecure-skip-tls-verify, so anybody could answer for the API server: "
            "put the cluster's CA into certificate-authority-data instead"
        )
    try:
        context = ssl.create_default_context(cafile=configuration.ssl_ca_cert or None)
        if configuration.cert_file:
            context.load_cert_chain(configuration.cert_file, configuration.key_file or None)
    except (OSError, ssl.SSLError) as error:
        raise CredentialsError(f"the certificates cannot be read: {error}") from error
    return context


def _bypasses_proxy(host: str) -> bool:
    try:
        is_local = ip_address(host).is_loopback
    except ValueError:
        is_local = host == "localhost"
    return is_local or bool(proxy_bypass(host))
