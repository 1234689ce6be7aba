"""The election against the API server: every retry period the Lease is read or written."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from math import inf
from random import Random

from eclectus.kubeclient.client import ObjectApi
from eclectus.kubeclient.clock import elapsed
from eclectus.kubeclient.election import Election, ElectionSettings, Lease, lease_body, lease_from
from eclectus.kubeclient.errors import ApiError, ConflictError, MissingError
from eclectus.kubeclient.trouble import TroubleLog

HUNG_SECONDS = 20.0  # beyond the lease duration: as long as kube-scheduler's watchdog allows
JITTER = 1.2  # standbys wait up to this many retry periods, so that they do not try at the same moment
REQUEST_SHARE = 0.9  # of a retry period that a request may take: so every period has its try

_log = logging.getLogger(__name__)


def no_annotations() -> dict[str, str]:
    """None."""
    return {}


class Elector:
    """Tries to lead until it is cancelled or has lost the Lease.

    `leading` is set by the first successful write, `lost` when leadership is over. `annotations` returns
    what is written on the Lease with each renewal, besides the annotations of the settings.
    """

    def __init__(
        self,
        api: ObjectApi,
        identity: str,
        settings: ElectionSettings,
        rng: Random,
        *,
        acquired: str = "acquired the lease",
        annotations: Callable[[], Mapping[str, str]] = no_annotations,
    ) -> None:
        self._api, self._settings, self._rng = api, settings, rng
        self._acquired = acquired  # what the log says when the Lease is acquired
        self._annotations = annotations
        self._election = Election(identity, settings)
        self._path = f"/apis/coordination.k8s.io/v1/namespaces/{settings.namespace}/leases"
        self._is_current = False  # whether the Lease is known well enough to write without a read
        self._requests = asyncio.Lock()
        self._has_resigned = False
        self._tried_at = elapsed()
        self._next_try_at = inf
        self._answered_at: float | None = None
        self._trouble = TroubleLog(_log)
        self.tried = asyncio.Event()  # set after the first try, whoever leads now
        self.leading = asyncio.Event()
        self.lost = asyncio.Event()
        if not settings.enabled:
            self.tried.set()
            self._lead()

    @property
    def holder(self) -> str:
        """Who held the Lease when it was last observed; empty if nobody did."""
        return self._election.holder

    def holds_lease(self) -> bool:
        """Whether anything may be written now. Cheap, and may be called from any thread."""
        return not self._settings.enabled or self._election.leads(elapsed())

    async def run(self) -> None:
        """Acquire the Lease and renew it. Returns when it is lost or given back."""
        while not self._has_resigned:
            async with self._requests:
                await self._try()
            self.tried.set()
            if self._election.leads(elapsed()):
                if not self.leading.is_set():
                    self._lead()
                # Not longer than the lease lasts: its loss is reported when it happens, not at the next try.
                await self._pause(min(self._settings.retry_period, self._election.seconds_left(elapsed())))
            elif self.leading.is_set() and not self._has_resigned:
                _log.error("lost the lease%s", self._how_lost(), extra={"holder": self._election.holder})
                self.lost.set()
                return
            else:
                await self._pause(self._settings.retry_period * self._rng.uniform(1.0, JITTER))

    async def resign(self) -> None:
        """Give the Lease back, so that the next leader need not wait until it expires."""
        self._has_resigned = True
        async with self._requests:  # a renewal in flight would make this write a conflict
            lease = self._election.resign()
            if lease is None:
                return
            try:
                await self._write(lease)
                _log.info("released the lease")
            except ApiError as error:
                _log.warning("could not release the lease, so it has to expire: %s", error)

    def is_try_due(self) -> bool:
        """Whether the time of the next try has come, and it has not begun because other tasks run."""
        return elapsed() >= self._next_try_at

    def trouble(self) -> str:
        """What is wrong with the election; empty if it proceeds."""
        silent = elapsed() - self._tried_at
        is_hung = self._settings.enabled and silent > self._settings.lease_duration + HUNG_SECONDS
        return f"no try for {silent:.0f} s" if is_hung else ""

    def unanswered(self) -> str:
        """For how long the API server has not answered; empty if it has within the lease duration.

        Without an election nothing is asked, so nothing is known.
        """
        if not self._settings.enabled:
            return ""
        if self._answered_at is None:
            return "no answer from the API server yet"
        silent = elapsed() - self._answered_at
        is_silent = silent > self._settings.lease_duration
        return f"no answer from the API server for {silent:.0f} s" if is_silent else ""

    async def _pause(self, seconds: float) -> None:
        self._next_try_at = elapsed() + seconds
        try:
            await asyncio.sleep(seconds)
        finally:
            self._next_try_at = inf

    async def _try(self) -> None:
        """One read where needed, one write where due. A failure is logged; the next try repeats it."""
        self._tried_at = elapsed()
        try:
            if not self._is_current:
                self._election.observed(await self._read(), elapsed())
                self._answered_at = elapsed()
            self._is_current = False
            lease = self._election.desired(elapsed(), datetime.now(UTC))
            if lease is not None:
                sent_at = elapsed()
                self._election.committed(await self._write(lease), sent_at, elapsed())
                self._answered_at = elapsed()
                self._is_current = True
            self._trouble.succeeded("the lease can be read and written again")
        except ConflictError as error:
            self._answered_at = elapsed()
            _log.info("another replica was faster: %s", error)
        except (ApiError, ValueError) as error:
            if not getattr(error, "is_logged", False):
                self._trouble.failed(type(error).__name__, f"lease: {error}")

    async def _read(self) -> Lease | None:
        try:
            found = await self._api.send("GET", self._lease_path, seconds=self._request_seconds)
        except MissingError:
            return None
        return lease_from(found)

    async def _write(self, lease: Lease) -> Lease:
        body = lease_body(lease, self._settings, self._annotations())
        method, path = ("PUT", self._lease_path) if lease.version else ("POST", self._path)
        return lease_from(await self._api.send(method, path, body, seconds=self._request_seconds))

    @property
    def _lease_path(self) -> str:
        return f"{self._path}/{self._settings.name}"

    @property
    def _request_seconds(self) -> float:
        return self._settings.retry_period * REQUEST_SHARE

    def _how_lost(self) -> str:
        holder = self._election.holder
        if holder in ("", self._election.identity):
            return f": it was not renewed within {self._settings.renew_deadline:g} s"
        return f" to {holder!r}"

    def _lead(self) -> None:
        _log.info("%s", self._acquired, extra={"holder": self._election.identity})
        self.leading.set()
