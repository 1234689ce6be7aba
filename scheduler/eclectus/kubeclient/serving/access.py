"""Whether a caller may read what they ask for: the API server is asked, few times, and its answers are kept.

A flood of made-up tokens costs the API server five reviews a second. Tokens that were permitted before have a
budget of their own, so that the flood does not lock out the readers of metrics.
"""

import asyncio
import logging
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Generic, Literal, TypeVar

from msgspec import Struct

from eclectus.kubeclient.api_errors import ApiError
from eclectus.kubeclient.client import ObjectApi
from eclectus.kubeclient.serving.callers import Caller, Subject, Token
from eclectus.kubeclient.serving.server_settings import ServerSettings
from eclectus.kubeclient.timing import TroubleLog, elapsed

_log = logging.getLogger(__name__)


class Bucket:
    """A token bucket, full at first; more may be spent than is in it. `now` returns seconds."""

    def __init__(self, burst: float, per_second: float, now: Callable[[], float]) -> None:
        self.per_second = per_second
        self._burst, self._now = burst, now
        self._left, self._at = burst, now()

    def until(self, amount: float) -> float:
        """Seconds until so much is in it; 0 if it is now."""
        now = self._now()
        self._left = min(self._burst, self._left + (now - self._at) * self.per_second)
        self._at = now
        return max(0.0, (amount - self._left) / self.per_second)

    def spend(self, amount: float) -> None:
        """So much is spent."""
        self._left -= amount


@dataclass(eq=False)
class Budget:
    """A bucket of questions with a bound of what is in flight."""

    bucket: Bucket
    free: int  # how many more may be in flight

    def take(self) -> bool:
        """Whether one more may be asked for; `give_back` is to be called when it is answered."""
        if not self.free or self.bucket.until(1):
            return False
        self.bucket.spend(1)
        self.free -= 1
        return True

    def give_back(self) -> None:
        """One has been answered."""
        self.free += 1


Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


@dataclass(eq=False)
class Recent(Generic[Key, Value]):
    """Key -> value for `seconds` after it was put; of more than `most` the oldest are forgotten."""

    seconds: float
    most: int
    now: Callable[[], float]

    def __post_init__(self) -> None:
        self._kept: dict[Key, tuple[float, Value]] = {}  # in the order in which they end

    def get(self, key: Key) -> Value | None:
        """The value; None if it was not put or its time is over."""
        until, value = self._kept.get(key, (0.0, None))
        return value if self.now() < until else None

    def put(self, key: Key, value: Value) -> None:
        """Keep the value from now on."""
        self._kept.pop(key, None)
        self._kept[key] = self.now() + self.seconds, value
        while len(self._kept) > self.most:
            del self._kept[next(iter(self._kept))]

    def __len__(self) -> int:
        return len(self._kept)


ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
REVIEW_SECONDS = 3.0  # two of them end before a scrape's usual 10 s


class PageRight(Struct, frozen=True):
    """The right to `get` a page of this server, to `put` what it is about, or to `post` there."""

    path: str
    verb: Literal["get", "put", "post"] = "get"

    @property
    def attributes(self) -> dict[str, Any]:
        """As a SubjectAccessReview asks for it."""
        return {"nonResourceAttributes": {"path": self.path, "verb": self.verb}}

    def refusal(self, user: str) -> str:
        """The answer to a user without the right, in the API server's words."""
        return f'forbidden: User "{user}" cannot {self.verb} path "{self.path}"'


class ReadObject(Struct, frozen=True):
    """The right to `get` an object, or all without a name, or all of all namespaces; or to `list` them."""

    resource: str
    namespace: str = ""
    name: str = ""
    verb: Literal["get", "list"] = "get"
    group: str = ""  # empty: the core group

    @property
    def attributes(self) -> dict[str, Any]:
        """As a SubjectAccessReview asks for it."""
        named = {"group": self.group, "namespace": self.namespace, "name": self.name}
        given = {key: value for key, value in named.items() if value}
        return {"resourceAttributes": {"verb": self.verb, "resource": self.resource, **given}}

    def refusal(self, user: str) -> str:
        """The answer to a user without the right, in the API server's words."""
        resource = f"{self.resource}.{self.group}" if self.group else self.resource
        what = f'{resource} "{self.name}"' if self.name else resource
        where = f'in the namespace "{self.namespace}"' if self.namespace else "at the cluster scope"
        asked = f'User "{user}" cannot {self.verb} resource "{self.resource}" in API group "{self.group}"'
        return f"{what} is forbidden: {asked} {where}"


Right = PageRight | ReadObject


DECISION_SECONDS = 10.0  # for how long a decision is kept, as in kube-scheduler
DECISIONS_MOST = 1024  # ten seconds of reviews are far fewer
PERMITTED_SECONDS = 3600.0  # for how long a token that was permitted counts as known
PERMITTED_MOST = 256
REVIEWS_IN_A_ROW, REVIEWS_A_SECOND, REVIEWS_IN_FLIGHT = 20, 5.0, 8
USER_SECONDS, USERS_MOST = 60.0, 1024  # after a pause so long a budget is full again
ASKING_MOST = 64  # reviews in flight of all together


class Decision(Struct, frozen=True):
    """What becomes of a request: status 200 if it is permitted, otherwise the answer to it."""

    status: HTTPStatus
    message: str = ""


PERMITTED = Decision(HTTPStatus.OK)
UNAUTHENTICATED = Decision(HTTPStatus.UNAUTHORIZED, "Unauthorized")
TOO_MANY = Decision(
    HTTPStatus.TOO_MANY_REQUESTS, "too many callers wait to be reviewed: repeat the request later"
)
UNDECIDED = Decision(
    HTTPStatus.INTERNAL_SERVER_ERROR,
    "the API server could not be asked whether this caller may read this; this server's log says why",
)


class AccessControl:
    """Decides by caller and right. `now` returns seconds.

    Tokens that nobody has permitted yet share one budget of reviews, those that were permitted another; each
    user who is known already has one of their own, so that nobody uses up that of others.
    """

    def __init__(self, api: ObjectApi, now: Callable[[], float] = elapsed) -> None:
        self._api = api
        self._now = now
        self._decided: Recent[tuple[bytes, Right], Decision] = Recent(DECISION_SECONDS, DECISIONS_MOST, now)
        self._known: Recent[bytes, bool] = Recent(PERMITTED_SECONDS, PERMITTED_MOST, now)
        self._of_known = self._new_budget()
        self._of_strangers = self._new_budget()
        self._of_users: Recent[str, Budget] = Recent(USER_SECONDS, USERS_MOST, now)
        self._asking: dict[tuple[bytes, Right], asyncio.Task[Decision]] = {}
        self._trouble = TroubleLog(_log)

    async def decision(self, caller: Caller, right: Right) -> Decision:
        """Whether this caller has this right. Raises nothing."""
        if not caller.key:
            return UNAUTHENTICATED
        key = caller.key, right
        if (decided := self._decided.get(key)) is not None:
            return decided
        asking = self._asking.get(key)
        if asking is None:
            budget = self._budget(caller)
            if len(self._asking) >= ASKING_MOST or not budget.take():
                return TOO_MANY
            asking = self._asking[key] = asyncio.create_task(self._ask(caller, key, budget))
            asking.add_done_callback(lambda _: self._asking.pop(key))
        return await asyncio.shield(asking)  # others may wait for it too

    def _new_budget(self) -> Budget:
        return Budget(Bucket(REVIEWS_IN_A_ROW, REVIEWS_A_SECOND, self._now), REVIEWS_IN_FLIGHT)

    def _budget(self, caller: Caller) -> Budget:
        if isinstance(caller, Token):
            return self._of_strangers if self._known.get(caller.key) is None else self._of_known
        budget = self._of_users.get(caller.user) or self._new_budget()
        self._of_users.put(caller.user, budget)
        return budget

    async def _ask(self, caller: Caller, key: tuple[bytes, Right], budget: Budget) -> Decision:
        digest, right = key
        try:
            subject = await caller.known(self._status)
            if subject is None:
                decided = UNAUTHENTICATED
            elif await self._permits(subject, right):
                decided = PERMITTED
            else:
                decided = Decision(HTTPStatus.FORBIDDEN, right.refusal(subject.user))
        except ApiError as error:
            if not error.is_logged:
                self._trouble.failed(type(error).__name__, f"pages are answered with 500: {error}")
            return UNDECIDED
        finally:
            budget.give_back()
        self._trouble.succeeded("callers can be reviewed again")
        self._decided.put(key, decided)
        if decided is PERMITTED:
            self._known.put(digest, True)
        return decided

    async def _permits(self, subject: Subject, right: Right) -> bool:
        spec = {**subject.spec, **right.attributes}
        return (await self._status(ACCESS_REVIEWS, "SubjectAccessReview", spec)).get("allowed") is True

    async def _status(self, path: str, kind: str, spec: Mapping[str, Any]) -> dict[str, Any]:
        """The status of a review, which is one request. Raises ApiError."""
        group = path.removeprefix("/apis/").rpartition("/")[0]
        review = {"apiVersion": group, "kind": kind, "metadata": {}, "spec": dict(spec)}
        answer = await self._api.send("POST", path, review, seconds=REVIEW_SECONDS)
        status = answer.get("status")
        return status if isinstance(status, dict) else {}


def access_of(settings: ServerSettings, api: ObjectApi) -> AccessControl | None:
    """The access that the settings ask for; None if everybody may read the pages."""
    return None if settings.authentication == "none" else AccessControl(api)
