"""Moments as the API writes them (RFC 3339, UTC) and as seconds since the epoch."""

from datetime import UTC, datetime


def text(seconds: float) -> str:
    """A moment in whole seconds, cut off as Kubernetes does."""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_text(seconds: float) -> str:
    """A MicroTime: six digits and a Z, which the API server insists on in an event."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def seconds(moment: str) -> float:
    """Seconds since the epoch. Raises ValueError for a text that is no RFC 3339 time."""
    return datetime.fromisoformat(moment).timestamp()
