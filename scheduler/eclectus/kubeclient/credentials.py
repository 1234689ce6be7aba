"""Who we are to the API server, and how we know that it is the API server.

The `kubernetes` package reads kubeconfigs (exec plugins, OIDC and merging included) and in-cluster
ServiceAccounts; nothing else of it is used. It is imported when asked for, because that costs a fifth
of a second and 20 MB.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import proxy_bypass

from yaml import YAMLError

from eclectus.kubeclient.errors import CredentialsError

TOKEN_SECONDS = 60.0  # bound tokens rotate: the file or the plugin is asked again this often at most


@dataclass(frozen=True)
class Endpoint:
    """Where the API server is and how to trust it. `tls` is None for plain HTTP."""

    url: str
    tls: ssl.SSLContext | None = None
    server_name: str | None = None
    proxy: str | None = None


class Credentials:
    """The endpoint, and the header that says who we are, renewed as tokens rotate."""

    def __init__(self, endpoint: Endpoint, configuration: Any = None) -> None:
        self.endpoint = endpoint
        self._configuration = configuration
        self._refreshing = asyncio.Lock()

    def headers(self) -> dict[str, str]:
        """What every request carries; empty where a client certificate speaks for us."""
        token = self._configuration.api_key.get("BearerToken") if self._configuration else None
        # The package writes the scheme in lower case, which some proxies do not take.
        return {"Authorization": "Bearer " + token.split(" ", 1)[-1]} if token else {}

    async def refresh(self) -> None:
        """Read the token again where its source says it is time; off the loop, since a plugin may be slow."""
        hook = getattr(self._configuration, "refresh_api_key_hook", None)
        if hook is None:
            return
        async with self._refreshing:
            await asyncio.to_thread(hook, self._configuration)


def load(kubeconfig: Path | None = None, context: str | None = None) -> Credentials:
    """Credentials from a kubeconfig; without one, the pod's own ServiceAccount, else the user's kubeconfig.

    Raises CredentialsError.
    """
    from kubernetes.client import Configuration
    from kubernetes.config import ConfigException, load_incluster_config, load_kube_config

    configuration = Configuration()
    configuration.proxy = None  # only the kubeconfig's proxy-url counts, not a stray variable
    try:
        if kubeconfig is None and "KUBERNETES_SERVICE_HOST" in os.environ:
            load_incluster_config(configuration)  # type: ignore[no-untyped-call]
        else:
            file = None if kubeconfig is None else str(kubeconfig)
            load_kube_config(file, context, configuration)  # type: ignore[no-untyped-call]
    except (ConfigException, OSError, ValueError, YAMLError) as error:
        raise CredentialsError(f"{kubeconfig or 'default credentials'}: {error}") from error
    return Credentials(_endpoint(configuration), configuration)


def _endpoint(configuration: Any) -> Endpoint:
    url = configuration.host.rstrip("/")
    proxy = configuration.proxy
    if proxy and _needs_no_proxy(urlsplit(url).hostname or ""):
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


def _needs_no_proxy(host: str) -> bool:
    try:
        local = ip_address(host).is_loopback
    except ValueError:
        local = host == "localhost"
    return local or bool(proxy_bypass(host))
