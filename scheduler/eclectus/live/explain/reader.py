"""Who asks for an explanation, and what they may read by the API server's word."""

from __future__ import annotations

from http import HTTPStatus

from eclectus.kubeclient.serving.access import PERMITTED, AccessControl, Decision
from eclectus.kubeclient.serving.reviews import ReadObject, Right
from eclectus.live.explain.redaction import Answer, namespaces_named, redacted

NAMESPACES_MOST = (
    8  # of one answer about which the API server is asked; the names of further ones are left out
)
EVERY_POD = ReadObject("pods")


class Reader:
    """The sender of one request. Without `access` everybody may read everything."""

    def __init__(self, access: AccessControl | None, token: str) -> None:
        self._access, self._token = access, token

    async def decision(self, right: Right) -> Decision:
        """Whether the right is given. Raises nothing."""
        return PERMITTED if self._access is None else await self._access.decision(self._token, right)

    async def readable(self, answer: Answer) -> Answer:
        """The answer with the names of those other pods only that may be read.

        A right that could not be found out counts as not given.
        """
        named = sorted(namespaces_named(answer))
        if not named or await self._has(EVERY_POD):
            return answer
        asked = named[:NAMESPACES_MOST]
        given = frozenset([each for each in asked if await self._has(ReadObject("pods", each))])
        return redacted(answer, given.__contains__)

    async def _has(self, right: Right) -> bool:
        return (await self.decision(right)).status == HTTPStatus.OK
