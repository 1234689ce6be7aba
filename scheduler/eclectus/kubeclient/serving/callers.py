"""Who sends a request: a bearer token, whose user the API server is asked for, or a user who is known.

A user is known where somebody who is believed says so, as the API server's front proxy does.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Struct

TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"  # noqa: S105 — a path

Ask = Callable[[str, str, Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
"""The status of a review, given its path, kind and spec. Raises ApiError."""


class Subject(Struct, frozen=True):
    """A user, as a SubjectAccessReview names them."""

    user: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def key(self) -> bytes:
        """What decisions about this subject are kept by: two that differ in anything have two."""
        return b"subject" + sha256(msgspec.json.encode(self)).digest()

    @property
    def spec(self) -> dict[str, Any]:
        """The fields of a SubjectAccessReview's spec."""
        extra = {name: list(values) for name, values in self.extra}
        return {"user": self.user, "uid": self.uid, "groups": list(self.groups), "extra": extra}

    async def known(self, ask: Ask) -> Subject | None:
        """The subject itself."""
        return self if self.user else None


class Token(Struct, frozen=True):
    """A bearer token; empty: the request has none."""

    text: str

    @property
    def key(self) -> bytes:
        """What decisions about this token are kept by, as no token is kept; empty if it can be none."""
        # No token of Kubernetes is anything but ASCII.
        return b"token" + sha256(self.text.encode()).digest() if self.text.isascii() and self.text else b""

    async def known(self, ask: Ask) -> Subject | None:
        """The user of the token; None if it is not accepted. Raises ApiError."""
        status = await ask(TOKEN_REVIEWS, "TokenReview", {"token": self.text})
        if status.get("authenticated") is not True:
            return None
        found = status.get("user") or {}
        return Subject(
            str(found.get("username", "")),
            str(found.get("uid", "")),
            tuple(found.get("groups") or ()),
            as_extra((found.get("extra") or {}).items()),
        )


Caller = Token | Subject


def as_extra(pairs: Iterable[tuple[str, Iterable[str]]]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The extra fields of a subject, in the order of their names."""
    return tuple(sorted((name, tuple(values or ())) for name, values in pairs))
