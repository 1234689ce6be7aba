"""What can go wrong with the API server, by what the caller does next.

EclectusError
├── CredentialsError           correct the kubeconfig or the ServiceAccount; nothing was started
├── ListenError                correct the address or the port of the health checks; nothing was started
└── ApiError                   an HTTP request failed
    ├── NotDoneError           certainly not done: wait `retry_after` or back off, then repeat the request
    ├── UnauthenticatedError   401 even with a renewed token: not done; repeat it once the token is accepted
    ├── UnsureError            perhaps done: read the object before anything else
    ├── StaleError             410: the resourceVersion or continue token has expired: list again
    ├── ConflictError          409: the object is not as the request assumed: read it, then decide
    ├── MissingError           404: it does not exist
    ├── TooLargeError          the answer is longer than the caller takes: ask for less
    └── RejectedError          any other refusal: the same request never passes; correct it, or the RBAC rule
"""

from collections.abc import Mapping

import msgspec

from eclectus.api.common import NOT_JSON
from eclectus.model.errors import EclectusError

ADD_TO_CLUSTER_ROLE = "add the rule to its ClusterRole (the chart's role has all of them)"
"""What to do when an account that the chart creates lacks a right."""

ASK_FOR_THE_RIGHT = "you lack this right: who administers the cluster can grant it"
"""The same for a user of a command."""


class CredentialsError(EclectusError):
    """The credentials name no API server that can be reached and trusted."""


class ListenError(EclectusError):
    """The address of the health checks cannot be listened on."""


class ApiError(EclectusError):
    """A failed HTTP request; `what` is its method and path, `status` is 0 when there was no answer.

    `is_logged`: the client has logged the cause, which is the same for all requests.
    """

    def __init__(
        self,
        what: str,
        status: int = 0,
        message: str = "",
        retry_after: float | None = None,
        *,
        is_logged: bool = False,
    ) -> None:
        reason = f"{status} {message}" if status else message
        super().__init__(f"{what}: {reason}" if reason else what)
        self.what = what
        self.status = status
        self.message = message
        self.retry_after = retry_after  # seconds that the server asks the caller to wait
        self.is_logged = is_logged

    @property
    def reason(self) -> str:
        """The message alone; where there is none, what was requested too."""
        return self.message or str(self)


class NotDoneError(ApiError):
    """Throttled before it was handled, or never sent."""


class UnauthenticatedError(ApiError):
    """The API server does not accept the token, nor the one it was renewed to."""


class UnsureError(ApiError):
    """Sent, but the answer was lost, late, unreadable or a server error."""


class StaleError(ApiError):
    """The resourceVersion or the continue token has expired."""


class ConflictError(ApiError):
    """The object is not as the request assumed, or its name is taken."""


class MissingError(ApiError):
    """The object, its namespace or its definition does not exist."""


class TooLargeError(ApiError):
    """The answer has more bytes than the caller takes; it was not read to its end."""


class RejectedError(ApiError):
    """Malformed, forbidden or not understood."""


_BY_STATUS: dict[int, type[ApiError]] = {
    401: UnauthenticatedError,
    404: MissingError,
    408: UnsureError,
    409: ConflictError,
    410: StaleError,
}


def error_from(what: str, status: int, body: bytes, headers: Mapping[str, str], advice: str) -> ApiError:
    """The error for an answer with a status of 400 or above. `advice`: what to do where RBAC forbids."""
    message = message_of(body)
    if status == 403 and "is forbidden: User" in message:  # by RBAC, not by an admission plugin
        message += f"; {advice}"
    if status == 429:
        return NotDoneError(what, status, message, retry_after(headers))
    kind = _BY_STATUS.get(status, UnsureError if status >= 500 else RejectedError)
    return kind(what, status, message)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the server asks the caller to wait. HTTP also allows a date; the API server sends none."""
    value = headers.get("Retry-After", "")
    return float(value) if value.isdigit() else None


def message_of(body: bytes) -> str:
    """The message of a Status object, or the start of what a proxy in between answered."""
    try:
        answer = msgspec.json.decode(body)
    except NOT_JSON:
        return body[:200].decode(errors="replace")
    return str(answer.get("message") or answer.get("reason") or "") if isinstance(answer, dict) else ""
