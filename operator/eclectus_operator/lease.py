"""Which replica works: one Lease, by the arithmetic of `eclectus.kubeclient.election`.

kopf's own peering is not enough: of two operators of one priority it stops both.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random
from typing import Annotated

from eclectus.kubeclient.election import Election, Lease, lease_body, lease_from
from eclectus.model.settings import Setting
from eclectus_operator.api import Api, ApiError, ConflictError, MissingError, NotLeadingError, Object, Query

REQUEST_SECONDS = 4.0  # until a request of the leader's is given up
HUNG_SECONDS = 20.0  # beyond the Lease's own time, until a silent elector counts as hung
JITTER = 1.2  # standbys wait up to this many retry periods, so that they do not grab in step
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class LeaseSettings:
    """Where the Lease is, and its times."""

    lease_namespace: Annotated[
        str, Setting("namespace of the Lease by which one replica of the operator works")
    ]
    lease_name: Annotated[str, Setting("name of that Lease")] = "eclectus-operator"
    lease_duration: Annotated[
        float, Setting("how long a silent leader keeps the Lease", unit="s", least=2, most=3600)
    ] = 15.0
    renew_deadline: Annotated[
        float, Setting("a leader that could not renew for so long stops", unit="s", least=1, most=3600)
    ] = 10.0
    retry_period: Annotated[
        float, Setting("pause between two tries to take or renew it", unit="s", least=0.1, most=600)
    ] = 2.0

    def __post_init__(self) -> None:
        if not self.retry_period * JITTER < self.renew_deadline < self.lease_duration:
            raise ValueError(
                "lease times: retry-period times 1.2 < renew-deadline < lease-duration must hold"
            )
        if self.lease_duration - self.renew_deadline < REQUEST_SECONDS:
            raise ValueError(
                f"lease times: lease-duration must be {REQUEST_SECONDS:g} s above renew-deadline, so that "
                "what a leader sent last has ended before another leads"
            )


def elapsed() -> float:
    """Seconds since some fixed moment, the time that the machine slept included."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Elector:
    """Keeps trying until cancelled. `leading` is set from the first good write on."""

    def __init__(self, api: Api, settings: LeaseSettings, identity: str, rng: Random) -> None:
        self._api, self._settings, self._rng = api, settings, rng
        self._election = Election(identity, settings)
        self._path = f"/apis/coordination.k8s.io/v1/namespaces/{settings.lease_namespace}/leases"
        self._tried_at = elapsed()
        self._heard_at: float | None = None
        self.leading = asyncio.Event()

    def leads(self) -> bool:
        """Whether anything may be written now. May be asked from any thread."""
        return self._election.leads(elapsed())

    async def run(self) -> None:
        """Acquire the Lease and keep it; returns when it is lost."""
        while True:
            await self._try()
            left = self._election.left(elapsed())
            if left > 0:
                self.leading.set()
                await asyncio.sleep(min(self._settings.retry_period, left))
            elif self.leading.is_set():
                _log.error("lost the lease to %r", self._election.holder)
                return
            else:
                await asyncio.sleep(self._settings.retry_period * self._rng.uniform(1.0, JITTER))

    async def resign(self) -> None:
        """Give the Lease back; to be called when `run` runs no more."""
        lease = self._election.resign()
        if lease is not None:
            try:
                await self._write(lease)
            except ApiError as error:
                _log.warning("could not release the lease, it runs out by itself: %s", error)

    def trouble(self) -> str:
        """What is wrong with the election; empty when it goes on."""
        silent = elapsed() - self._tried_at
        return f"no try for {silent:.0f} s" if silent > self._settings.lease_duration + HUNG_SECONDS else ""

    def unheard(self) -> str:
        """Whether the API server gives no answers, in words; empty when it does."""
        if self._heard_at is None:
            return "no answer from the API server yet"
        silent = elapsed() - self._heard_at
        return (
            f"no answer from the API server for {silent:.0f} s"
            if silent > self._settings.lease_duration
            else ""
        )

    async def _try(self) -> None:
        """One look and, where due, one write; a failure of any kind is logged and tried again."""
        self._tried_at = elapsed()
        try:
            self._election.saw(await self._read(), elapsed())
            self._heard_at = elapsed()
            wish = self._election.wish(elapsed(), datetime.now(UTC))
            if wish is not None:
                sent_at = elapsed()
                self._election.wrote(await self._write(wish), sent_at, elapsed())
        except ConflictError as error:
            _log.info("another was faster: %s", error)
        except ApiError as error:
            _log.warning("lease: %s", error)

    async def _read(self) -> Lease | None:
        try:
            return lease_from(await self._api.send("GET", f"{self._path}/{self._settings.lease_name}"))
        except MissingError:
            return None

    async def _write(self, lease: Lease) -> Lease:
        body = lease_body(lease, self._settings.lease_namespace, self._settings.lease_name)
        if lease.version:
            return lease_from(await self._api.send("PUT", f"{self._path}/{self._settings.lease_name}", body))
        return lease_from(await self._api.send("POST", self._path, body))


class Gated:
    """An Api that sends nothing but reads while the Lease is not surely ours."""

    def __init__(self, api: Api, leads: Callable[[], bool]) -> None:
        self._api, self._leads = api, leads

    async def send(
        self,
        method: str,
        path: str,
        body: Object | None = None,
        query: Query | None = None,
        *,
        brief: bool = False,
    ) -> Object:
        """One request. Raises ApiError, NotLeadingError among them."""
        if method != "GET" and not self._leads():
            raise NotLeadingError(f"{method} {path}: the lease is not surely ours; nothing was sent")
        return await self._api.send(method, path, body, query, brief=brief)
