"""Requests with a bearer token, and answers as the API server writes them."""

from __future__ import annotations

from http import HTTPStatus

from aiohttp import web

from eclectus.kubeclient.serving.access import Decision

RETRY_SECONDS = "1"  # after which a client that was refused asks again
_REASONS = {  # of metav1.Status
    HTTPStatus.BAD_REQUEST: "BadRequest",
    HTTPStatus.UNAUTHORIZED: "Unauthorized",
    HTTPStatus.FORBIDDEN: "Forbidden",
    HTTPStatus.NOT_FOUND: "NotFound",
    HTTPStatus.TOO_MANY_REQUESTS: "TooManyRequests",
    HTTPStatus.INTERNAL_SERVER_ERROR: "InternalError",
    HTTPStatus.SERVICE_UNAVAILABLE: "ServiceUnavailable",
}


def bearer_token(request: web.Request) -> str:
    """The token of a request; empty if it has none."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def refusal(decided: Decision) -> web.Response:
    """The answer to a request that is not permitted."""
    return failure(decided.status, decided.message)


def failure(status: HTTPStatus, message: str) -> web.Response:
    """A Status; with 429 it says when to ask again."""
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": _REASONS[status],
        "code": int(status),
    }
    wait = {"Retry-After": RETRY_SECONDS} if status == HTTPStatus.TOO_MANY_REQUESTS else {}
    return web.json_response(body, status=status, headers=wait)
