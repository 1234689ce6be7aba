"""What can go wrong between us and the API server, by what the caller does next.

EclectusError
├── CredentialsError     mend the kubeconfig or the ServiceAccount; nothing was started
└── ApiError             an HTTP request did not end well
    ├── NotDoneError     surely not done: wait `retry_after` or back off, then ask again
    ├── UnsureError      done or not, nobody knows: look before anything else
    ├── StaleError       410: what we know is too old to go on from: list again
    ├── ConflictError    409: the object is not as we thought: look, then decide
    ├── MissingError     404: it is gone
    └── RejectedError    any other refusal: the same request will never pass; mend it or the RBAC rule
"""

from __future__ import annotations

from eclectus.model.errors import EclectusError


class CredentialsError(EclectusError):
    """No way to reach and trust the API server can be made from what was given."""


class ApiError(EclectusError):
    """An HTTP request that did not end well; `status` is 0 when there was no answer."""

    def __init__(self, what: str, status: int = 0, message: str = "") -> None:
        super().__init__(f"{what}: {status} {message}" if status else f"{what}: {message}")
        self.status = status
        self.message = message


class NotDoneError(ApiError):
    """Surely not done: throttled before it was handled, or never sent."""

    def __init__(
        self, what: str, status: int = 0, message: str = "", retry_after: float | None = None
    ) -> None:
        super().__init__(what, status, message)
        self.retry_after = retry_after  # seconds the server asked us to wait


class UnsureError(ApiError):
    """Sent, and the answer was lost, late or a server's fault: it may have been done."""


class StaleError(ApiError):
    """The resourceVersion or the continue token is too old."""


class ConflictError(ApiError):
    """The object is not as the request assumed."""


class MissingError(ApiError):
    """The object, or its namespace, is not there."""


class RejectedError(ApiError):
    """Refused for good: malformed, forbidden, or not understood."""
