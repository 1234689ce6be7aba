"""The election's talk with the API server: read or write the Lease every retry period, whatever happens."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime

import orjson

from eclectus.config.process_settings import LeaderElection
from eclectus.kubeclient.clock import elapsed
from eclectus.kubeclient.election import Election, Lease, lease_body, lease_from
from eclectus.kubeclient.errors import ApiError, ConflictError, MissingError
from eclectus.live.context import Context

HUNG_SECONDS = 20.0  # kube-scheduler's watchdog allows as much beyond the lease's own time
JITTER = 1.2  # standbys wait up to this many retry periods, so that they do not grab in step

_log = logging.getLogger(__name__)


class Elector:
    """Keeps trying until cancelled. `leading` is set from the first good write on; `lost` when it is over."""

    def __init__(self, means: Context, identity: str, settings: LeaderElection) -> None:
        self._means, self._settings = means, settings
        self._election = Election(identity, settings)
        self._path = f"/apis/coordination.k8s.io/v1/namespaces/{settings.resource_namespace}/leases"
        self._known = False  # whether the picture is fresh enough to write without a look
        self._talking = asyncio.Lock()
        self._resigned = False
        self._tried_at = elapsed()
        self.tried = asyncio.Event()  # set when the first try is over, whoever leads now
        self.leading = asyncio.Event()
        self.lost = asyncio.Event()
        if not settings.leader_elect:
            self.tried.set()
            self._lead()

    def surely_leads(self) -> bool:
        """Whether anything may be written now. Asked before every bind; costs a look at the clock."""
        return not self._settings.leader_elect or self._election.leads(elapsed())

    async def run(self) -> None:
        """Acquire, then renew until it fails for too long. Returns when the Lease is lost or given back."""
        while not self._resigned:
            async with self._talking:
                await self._try()
            self.tried.set()
            if self._election.leads(elapsed()):
                if not self.leading.is_set():
                    self._lead()
                # No longer than we lead: the loss is told when it happens, not at the next try.
                await asyncio.sleep(min(self._settings.retry_period, self._election.left(elapsed())))
            elif self.leading.is_set() and not self._resigned:
                _log.error("lost the lease", extra={"holder": self._election.holder})
                self._means.metrics.leader.set(0)
                self.lost.set()
                return
            else:
                await asyncio.sleep(self._settings.retry_period * self._means.rng.uniform(1.0, JITTER))

    async def resign(self) -> None:
        """Give the Lease back, so that the next leader need not wait for it to run out."""
        self._resigned = True
        self._means.metrics.leader.set(0)
        async with self._talking:  # a renewal under way would make our last word a conflict
            lease = self._election.resign()
            if lease is None:
                return
            try:
                await self._write(lease)
                _log.info("released the lease")
            except ApiError as error:
                _log.warning("could not release the lease, it runs out by itself: %s", error)

    def trouble(self) -> str:
        """What is wrong with the election; empty when it goes on."""
        silent = elapsed() - self._tried_at
        hung = self._settings.leader_elect and silent > self._settings.lease_duration + HUNG_SECONDS
        return f"no try for {silent:.0f} s" if hung else ""

    async def _try(self) -> None:
        """One look where needed, one write where due; a failure of any kind is logged and tried again."""
        self._tried_at = elapsed()
        try:
            if not self._known:
                self._election.saw(await self._read(), elapsed())
            self._known = False
            wish = self._election.wish(elapsed(), datetime.now(UTC))
            if wish is not None:
                sent_at = elapsed()
                self._election.wrote(await self._write(wish), sent_at, elapsed())
                self._known = True
        except ConflictError as error:
            _log.info("another was faster: %s", error)
        except (ApiError, ValueError) as error:
            _log.warning("lease: %s", error)

    async def _read(self) -> Lease | None:
        try:
            found = await self._means.client.get(
                f"{self._path}/{self._settings.resource_name}", seconds=self._limit
            )
        except MissingError:
            return None
        return lease_from(orjson.loads(found))

    async def _write(self, lease: Lease) -> Lease:
        body = lease_body(lease, self._settings.resource_namespace, self._settings.resource_name)
        method, path = (
            ("PUT", f"{self._path}/{self._settings.resource_name}") if lease.version else ("POST", self._path)
        )
        written = await self._means.client.send(method, path, body, seconds=self._limit)
        return lease_from(orjson.loads(written))

    @property
    def _limit(self) -> float:
        """Seconds: less than a retry period, so that there are as many tries as the deadline has periods."""
        return self._settings.retry_period * 0.9

    def _lead(self) -> None:
        _log.info("leading", extra={"holder": self._election.identity})
        self._means.metrics.leader.set(1)
        self.leading.set()
