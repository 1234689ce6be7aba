"""Who may read what: the API server is asked, few times, and its answers are kept for some seconds.

A flood of made-up tokens costs the API server five reviews a second. Tokens that were permitted before have a
budget of their own, so that the flood does not lock out who reads the metrics.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from http import HTTPStatus

from eclectus.kubeclient.client import ObjectApi
from eclectus.kubeclient.clock import elapsed
from eclectus.kubeclient.errors import ApiError
from eclectus.kubeclient.serving.budget import Budget
from eclectus.kubeclient.serving.recent import Recent
from eclectus.kubeclient.serving.reviews import Reviews, Right
from eclectus.kubeclient.serving.settings import ServerSettings
from eclectus.kubeclient.trouble import TroubleLog

DECISION_SECONDS = 10.0  # for how long a decision is kept, as in kube-scheduler
DECISIONS_MOST = 1024  # ten seconds of reviews are far fewer
PERMITTED_SECONDS = 3600.0  # for how long a token that was permitted counts as known
PERMITTED_MOST = 256
REVIEWS_IN_A_ROW, REVIEWS_A_SECOND, REVIEWS_IN_FLIGHT = 20, 5.0, 8

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Decision:
    """What becomes of a request: status 200 if it is permitted, otherwise the answer to it."""

    status: HTTPStatus
    message: str = ""


PERMITTED = Decision(HTTPStatus.OK)
UNAUTHENTICATED = Decision(HTTPStatus.UNAUTHORIZED, "Unauthorized")
TOO_MANY = Decision(
    HTTPStatus.TOO_MANY_REQUESTS, "too many tokens wait to be reviewed: repeat the request later"
)
UNDECIDED = Decision(
    HTTPStatus.INTERNAL_SERVER_ERROR,
    "the API server could not be asked whether this token may read this; this server's log says why",
)


class AccessControl:
    """Decides by token and right. `now` returns seconds."""

    def __init__(self, reviews: Reviews, now: Callable[[], float] = elapsed) -> None:
        self._reviews = reviews
        self._decided: Recent[tuple[bytes, Right], Decision] = Recent(DECISION_SECONDS, DECISIONS_MOST, now)
        self._known: Recent[bytes, bool] = Recent(PERMITTED_SECONDS, PERMITTED_MOST, now)
        bounds = REVIEWS_IN_A_ROW, REVIEWS_A_SECOND, REVIEWS_IN_FLIGHT
        self._of_known, self._of_strangers = Budget(*bounds, now), Budget(*bounds, now)
        self._asking: dict[tuple[bytes, Right], asyncio.Task[Decision]] = {}
        self._trouble = TroubleLog(_log)

    async def decision(self, token: str, right: Right) -> Decision:
        """Whether this token has this right; an empty token is none. Raises nothing."""
        if not token or not token.isascii():  # no token of Kubernetes is anything else
            return UNAUTHENTICATED
        digest = sha256(token.encode()).digest()  # no token is kept
        key = digest, right
        if (decided := self._decided.get(key)) is not None:
            return decided
        asking = self._asking.get(key)
        if asking is None:
            budget = self._of_strangers if self._known.get(digest) is None else self._of_known
            if not budget.take():
                return TOO_MANY
            asking = self._asking[key] = asyncio.create_task(self._ask(token, key, budget))
            asking.add_done_callback(lambda _: self._asking.pop(key))
        return await asyncio.shield(asking)  # others may wait for it too

    async def _ask(self, token: str, key: tuple[bytes, Right], budget: Budget) -> Decision:
        digest, right = key
        try:
            decided = await self._reviewed(token, right)
        except ApiError as error:
            if not error.is_logged:
                self._trouble.failed(type(error).__name__, f"pages are answered with 500: {error}")
            return UNDECIDED
        finally:
            budget.give_back()
        self._trouble.succeeded("tokens can be reviewed again")
        self._decided.put(key, decided)
        if decided is PERMITTED:
            self._known.put(digest, True)
        return decided

    async def _reviewed(self, token: str, right: Right) -> Decision:
        user = await self._reviews.user(token)
        if user is None:
            return UNAUTHENTICATED
        if await self._reviews.permits(user, right):
            return PERMITTED
        return Decision(HTTPStatus.FORBIDDEN, right.refusal(user.name))


def access_of(settings: ServerSettings, api: ObjectApi) -> AccessControl | None:
    """The access that the settings ask for; None if everybody may read the pages."""
    return None if settings.authentication == "none" else AccessControl(Reviews(api))
