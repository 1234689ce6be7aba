"""What a process says of itself, and the one flag that can be changed while it runs.

As the z-pages of Kubernetes' components (KEP-4827, KEP-4828), with their field names: /statusz has version
and start, /flagz the options of the command line as they are now. PUT /debug/flags/v sets the verbosity of
the log of this process, until it ends.
"""

import logging
import platform
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from msgspec import json

from eclectus import __version__
from eclectus.kubeclient.serving.pages import PageParts, QueryError
from eclectus.live import logs

_log = logging.getLogger(__name__)


def status(started: float, now: Callable[[], float], why_standby: Callable[[], str]) -> PageParts:
    """The page /statusz of a process that started then. Times are in seconds since the epoch."""

    def page(_: Mapping[str, str]) -> Iterable[bytes]:
        standby = why_standby()
        found = {
            "kind": "Statusz",
            "binaryVersion": __version__,
            "pythonVersion": platform.python_version(),
            "startTime": datetime.fromtimestamp(started, UTC).isoformat(timespec="seconds"),
            "uptimeSeconds": int(now() - started),
            "leads": not standby,
            **({"standby": standby} if standby else {}),
        }
        return [json.encode(found)]

    return page


def flags(given: Mapping[str, Any]) -> bytes:
    """The page /flagz: the options by name, defaults included, without those that are not given."""
    found = {name.replace("_", "-"): str(value) for name, value in given.items() if value is not None}
    return json.encode({"kind": "Flagz", "flags": {**found, "verbosity": str(logs.verbosity())}})


def put_verbosity(text: str) -> str:
    """Log so much from now on; returns the answer. Raises QueryError."""
    most = len(logs.LEVELS) - 1
    if text not in map(str, range(most + 1)):
        raise QueryError(f"the verbosity must be a whole number from 0 to {most}, not {text[:20]!r}")
    before = logs.verbosity()
    logs.set_verbosity(int(text))
    # A warning, so that it is in the log whatever the verbosity.
    _log.warning("the verbosity of the log is %s, it was %d", text, before)
    return f"the verbosity is {text}, it was {before}"


PUTS = {"/debug/flags/v": put_verbosity}
