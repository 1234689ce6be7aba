"""Asks the API server whose token it is, and what its user may do: TokenReview and SubjectAccessReview."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from eclectus.kubeclient.client import ObjectApi

TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"  # noqa: S105 — a path
ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
REVIEW_SECONDS = 3.0  # two of them end before a scrape's usual 10 s


@dataclass(frozen=True)
class ReadPage:
    """The right to read a page of this server."""

    path: str

    @property
    def attributes(self) -> dict[str, Any]:
        """As a SubjectAccessReview asks for it."""
        return {"nonResourceAttributes": {"path": self.path, "verb": "get"}}

    def refusal(self, user: str) -> str:
        """What the user is answered who does not have it, in the API server's words."""
        return f'forbidden: User "{user}" cannot get path "{self.path}"'


@dataclass(frozen=True)
class ReadObject:
    """The right to `get` an object of the core group, or all without a name, or all of all namespaces."""

    resource: str
    namespace: str = ""
    name: str = ""

    @property
    def attributes(self) -> dict[str, Any]:
        """As a SubjectAccessReview asks for it."""
        named = {"namespace": self.namespace, "name": self.name}
        given = {key: value for key, value in named.items() if value}
        return {"resourceAttributes": {"verb": "get", "resource": self.resource, **given}}

    def refusal(self, user: str) -> str:
        """What the user is answered who does not have it, in the API server's words."""
        what = f'{self.resource} "{self.name}"' if self.name else self.resource
        where = f'in the namespace "{self.namespace}"' if self.namespace else "at the cluster scope"
        asked = f'User "{user}" cannot get resource "{self.resource}" in API group ""'
        return f"{what} is forbidden: {asked} {where}"


Right = ReadPage | ReadObject


@dataclass(frozen=True)
class User:
    """Who sends a request, as the API server knows them."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)


class Reviews:
    """The two questions; each is one request."""

    def __init__(self, api: ObjectApi) -> None:
        self._api = api

    async def user(self, token: str) -> User | None:
        """The user of a token; None if the API server does not accept it. Raises ApiError."""
        status = await self._status(TOKEN_REVIEWS, "TokenReview", {"token": token})
        if status.get("authenticated") is not True:
            return None
        found = status.get("user") or {}
        groups, extra = tuple(found.get("groups") or ()), found.get("extra") or {}
        return User(str(found.get("username", "")), str(found.get("uid", "")), groups, extra)

    async def permits(self, user: User, right: Right) -> bool:
        """Whether the user has the right. Raises ApiError."""
        who = {"user": user.name, "uid": user.uid, "groups": list(user.groups), "extra": dict(user.extra)}
        status = await self._status(ACCESS_REVIEWS, "SubjectAccessReview", {**who, **right.attributes})
        return status.get("allowed") is True

    async def _status(self, path: str, kind: str, spec: Mapping[str, Any]) -> dict[str, Any]:
        group = path.removeprefix("/apis/").rpartition("/")[0]
        review = {"apiVersion": group, "kind": kind, "metadata": {}, "spec": dict(spec)}
        answer = await self._api.send("POST", path, review, seconds=REVIEW_SECONDS)
        status = answer.get("status")
        return status if isinstance(status, dict) else {}
