"""Requests that the API server passes on: who asks is in headers, and its client certificate proves them.

What counts as such a certificate, and the names of the headers, are in a ConfigMap that every API server
writes. Headers of whoever has no such certificate are not read.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol
from urllib.parse import unquote

import msgspec
from msgspec import Struct

from eclectus.kubeclient.api_errors import CredentialsError
from eclectus.kubeclient.serving.callers import Subject, as_extra
from eclectus.kubeclient.serving.certificate import loaded

PUBLISHED = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
_NAMES = msgspec.json.Decoder(tuple[str, ...])


class Headers(Protocol):
    """The headers of a request; names in any case."""

    def getall(self, key: str, default: list[str], /) -> list[str]:
        """All values of a header."""

    def __iter__(self) -> Iterator[str]:
        """The names."""


class FrontProxy(Struct, frozen=True):
    """Whom to believe: `authority` is PEM; without `allowed_names` every name that it certifies counts."""

    authority: str
    allowed_names: tuple[str, ...]
    user_headers: tuple[str, ...]
    uid_headers: tuple[str, ...]
    group_headers: tuple[str, ...]
    extra_prefixes: tuple[str, ...]

    def why_not(self, certificate: Mapping[str, Any] | None) -> str:
        """Why a client is not believed; empty if it is.

        The certificate is as `ssl` tells of one that it has verified against the authority.
        """
        if not certificate:
            return "the client has no certificate that the authority of the request headers has signed"
        parts = (pair for part in certificate.get("subject", ()) for pair in part)
        name = next((value for key, value in reversed(list(parts)) if key == "commonName"), "")
        if self.allowed_names and name not in self.allowed_names:
            return f"the client's certificate is for {name!r}, whose headers are not believed"
        return ""

    def subject(self, headers: Headers) -> Subject:
        """Who asks, by the headers of a client that is believed. Without a name it is nobody."""
        extra = dict[str, list[str]]()
        for header in dict.fromkeys(each.lower() for each in headers):
            for prefix in self.extra_prefixes:
                if header.startswith(prefix.lower()):
                    key = unquote(header[len(prefix) :])
                    extra.setdefault(key, []).extend(headers.getall(header, []))
        groups = [value for name in self.group_headers for value in headers.getall(name, [])]
        return Subject(
            _first(headers, self.user_headers),
            _first(headers, self.uid_headers),
            tuple(groups),
            as_extra(extra.items()),
        )

    def context(self, pem: bytes) -> ssl.SSLContext:
        """TLS of a server with this certificate and key, which takes no client without a certificate.

        Raises CredentialsError where the authority is none.
        """
        context = loaded(pem, "the certificate of the aggregated API")
        context.verify_mode = ssl.CERT_REQUIRED
        try:
            context.load_verify_locations(cadata=self.authority)
        except (ssl.SSLError, ValueError) as error:
            raise CredentialsError(f"{PUBLISHED}: requestheader-client-ca-file: {error}") from error
        return context


def front_proxy_of(published: Mapping[str, Any]) -> FrontProxy:
    """What the ConfigMap says. Raises CredentialsError where it names no authority, or is not of its form."""
    data = published.get("data") or {}
    authority = data.get("requestheader-client-ca-file")
    if not authority:
        advice = "start the API server with --requestheader-client-ca-file"
        raise CredentialsError(f"{PUBLISHED} has no requestheader-client-ca-file: {advice}")
    allowed = _names(data, "requestheader-allowed-names")
    if not allowed and authority.strip() in data.get("client-ca-file", ""):
        problem = "with one authority for users and request headers every user could pass for any other"
        raise CredentialsError(f"{PUBLISHED}: {problem}: set --requestheader-allowed-names")
    return FrontProxy(
        authority,
        allowed,
        _names(data, "requestheader-username-headers"),
        _names(data, "requestheader-uid-headers"),
        _names(data, "requestheader-group-headers"),
        _names(data, "requestheader-extra-headers-prefix"),
    )


def _names(data: Mapping[str, str], key: str) -> tuple[str, ...]:
    try:
        return _NAMES.decode(data[key]) if key in data else ()
    except (msgspec.DecodeError, TypeError) as error:
        raise CredentialsError(f"{PUBLISHED}: {key} is not a list of names: {error}") from error


def _first(headers: Headers, names: Iterable[str]) -> str:
    return next((value for name in names for value in headers.getall(name, []) if value), "")
