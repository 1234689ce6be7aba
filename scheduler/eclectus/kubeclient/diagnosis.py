"""Why there is no connection to the API server, and what to change: one sentence each."""

from __future__ import annotations

import errno
import ssl

import aiohttp

from eclectus.kubeclient.credentials import Credentials

# X509_V_ERR codes of OpenSSL.
_NOT_YET_VALID, _EXPIRED, _WRONG_NAMES = 9, 10, (62, 64)


def unreachable(error: aiohttp.ClientError | TimeoutError, credentials: Credentials) -> tuple[str, str]:
    """(kind, sentence) for an error before the request was sent."""
    kind, problem = _problem(error, credentials.source or "the kubeconfig")
    return kind, f"the API server at {credentials.endpoint.url} cannot be reached: {problem}"


def unauthenticated(credentials: Credentials) -> str:
    """The sentence for an answer 401."""
    by = credentials.authenticates_by or "the credentials"
    advice = "expired, revoked, or of another cluster: replace it"
    if by == "no credentials":
        by, advice = (
            "requests without credentials",
            f"add a user with a token or certificate to {credentials.source}",
        )
    return f"the API server at {credentials.endpoint.url} does not accept {by}: {advice}"


def _problem(error: aiohttp.ClientError | TimeoutError, source: str) -> tuple[str, str]:
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return _certificate(error.certificate_error, source)
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return "dns", f"its name cannot be resolved: correct `server` in {source}, or the DNS"
    if isinstance(error, aiohttp.ClientConnectorSSLError):
        return "tls", f"no TLS connection ({error.os_error}): does `server` in {source} name the right port?"
    if isinstance(error, TimeoutError):
        return (
            "timeout",
            f"it accepts no connection: is it running, and does no firewall block `server` of {source}?",
        )
    number = getattr(error, "errno", None)
    if number == errno.ECONNREFUSED:
        return "refused", f"connection refused: is it running there, and is `server` in {source} right?"
    return f"errno {number}", f"{error}: is `server` in {source} right?"


def _certificate(error: Exception, source: str) -> tuple[str, str]:
    code = error.verify_code if isinstance(error, ssl.SSLCertVerificationError) else 0
    if code == _EXPIRED:
        return "expired", "its certificate has expired: renew it, or correct the clock of this machine"
    if code == _NOT_YET_VALID:
        return "not yet valid", "its certificate is not valid yet: correct the clock of this machine"
    if code in _WRONG_NAMES:
        names = f"use a name of the certificate as `server` in {source}, or set tls-server-name there"
        return "name", f"its certificate is for other names than this: {names}"
    problem = "its certificate is not signed by the certificate authority that is known for it"
    return "authority", f"{problem}: put the cluster's CA into certificate-authority-data of {source}"
