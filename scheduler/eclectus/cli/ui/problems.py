"""What is wrong when a question to the cluster fails, in words for who looks at the page."""

from http import HTTPStatus
from typing import NamedTuple

from eclectus.api.names import DAG_JOBS, VISIBILITY_API
from eclectus.cli.explain.patience import LEAST_SECONDS
from eclectus.kubeclient.api_errors import ApiError


class Problem(NamedTuple):
    """The status that the page is answered with, and a sentence; after how many seconds it may ask again."""

    status: int
    message: str
    again: float | None = None


def in_words(error: ApiError) -> Problem:
    """The problem that an answer of the API server, or its absence, means."""
    status, reason = error.status, error.reason
    is_of_scheduler = f"/apis/{VISIBILITY_API}" in error.what
    if status == HTTPStatus.FORBIDDEN:
        return Problem(status, f"You may not see this: {reason}")
    if status == HTTPStatus.NOT_FOUND:
        return Problem(status, _missing(reason, error.what, is_of_scheduler=is_of_scheduler))
    if status == HTTPStatus.UNAUTHORIZED:
        # Not 401, by which the page knows that its own secret is wrong.
        return Problem(
            HTTPStatus.BAD_GATEWAY, f"The API server does not accept your credentials: log in again. {reason}"
        )
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        again = max(error.retry_after or 0.0, LEAST_SECONDS)
        return Problem(status, f"The scheduler is asked too much now. {reason}", again)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR and is_of_scheduler:
        cause = "no scheduler leads, its leader cannot be reached, or another replica leads since a moment"
        return Problem(HTTPStatus.SERVICE_UNAVAILABLE, f"The scheduler does not answer: {cause}. {reason}")
    return Problem(status if status >= HTTPStatus.BAD_REQUEST else HTTPStatus.BAD_GATEWAY, reason)


def _missing(reason: str, what: str, *, is_of_scheduler: bool) -> str:
    if reason.endswith("not found") and '"' in reason:  # of an object that is named
        return f"It does not exist, or not any more: {reason}"
    if is_of_scheduler:
        advice = "the chart's visibility.enabled is not set, or its scheduler is of an older version"
        return f"The cluster does not pass questions on to the scheduler: {advice}."
    if what.partition("?")[0].endswith(f"/{DAG_JOBS}"):
        return "The cluster does not define DagJobs; the chart does with crds.install=true."
    return reason
