"""The login of kopf's watches: again after a while, and with a back-off when the API server refuses it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from random import Random
from typing import Any

import kopf

from eclectus.kubeclient.backoff import Backoff
from eclectus_operator.login import Login

LOGIN_SECONDS = 600.0  # kopf reads certificates only when it logs in, so it does that again after this time
HEALTHY_SECONDS = 30.0  # a login that was accepted for so long resets the back-off

_log = logging.getLogger(__name__)


class WatchLogin:
    """Answers kopf whenever it has no valid login. `now` returns seconds since the epoch.

    kopf ends its watches for good when it is given none, or one again that was refused. So each has an end of
    its own, by which it differs from those before, and what cannot be read leaves the last in use.
    """

    def __init__(
        self,
        login: Login,
        now: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._login, self._now, self._sleep = login, now, sleep
        self._backoff = Backoff(1.0, 30.0, Random())
        self._found: kopf.ConnectionInfo | None = None
        self._at = 0.0  # when the last login was given

    async def log_in(self, **_: Any) -> kopf.ConnectionInfo:
        """The credentials for the next while. Raises kopf.LoginError and OSError if there never were any."""
        age = self._now() - self._at
        if age > HEALTHY_SECONDS:
            self._backoff.reset()
        if age < LOGIN_SECONDS:  # asked for before its end: the last one was refused
            await self._sleep(self._backoff.wait())
        self._found = self._present()
        self._at = self._now()
        return replace(self._found, expiration=datetime.fromtimestamp(self._at + LOGIN_SECONDS, UTC))

    def _present(self) -> kopf.ConnectionInfo:
        try:
            return self._login()
        except (kopf.LoginError, OSError) as error:
            if self._found is None:
                raise
            _log.warning("the credentials could not be read, so the old ones stay in use: %s", error)
            return self._found
