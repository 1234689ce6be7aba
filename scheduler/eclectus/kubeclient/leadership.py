"""One process leads: of the replicas of its installation, and of all installations that would do its work.

Two installations with default values serve the same schedulerName. By a Lease of its own one replica of each
leads, and both would place the same pods and over-commit nodes. So a replica that holds the Lease of its
installation also claims what it serves: a Lease for each claim, at a place that no setting changes.

A claim is held by the installation, not by the process. So the installation's next leader has it at once,
safely, because it has acquired the installation's Lease before; and a claim is not given back but expires, so
that a rolling update does not hand it to another installation. Claims are acquired one by one in the order of
their names, so that two installations never wait for each other.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from eclectus.api.names import CLAIMS_NAMESPACE, PART_OF, PART_OF_LABEL
from eclectus.kubeclient.api_errors import ApiError, ConflictError, MissingError
from eclectus.kubeclient.client import ObjectApi
from eclectus.kubeclient.election import Election, ElectionSettings, Lease, lease_body, lease_from
from eclectus.kubeclient.timing import TroubleLog, elapsed

_log = logging.getLogger(__name__)

HUNG_SECONDS = 20.0  # beyond the lease duration: as long as kube-scheduler's watchdog allows
JITTER = 1.2  # standbys wait up to this many retry periods, so that they do not try at the same moment


@dataclass(eq=False)
class Elector:
    """Tries to lead until it is cancelled or has lost the Lease.

    `leading` is set by the first successful write, `lost` when leadership is over. `annotations` returns
    what is written on the Lease with each renewal, besides the annotations of the settings. `hung` says why
    the process can do nothing with the Lease, and is empty while it can: a hung one neither acquires nor
    renews it. By default it is never hung: it turns on the loop of the election.
    """

    api: ObjectApi
    identity: str
    settings: ElectionSettings
    rng: Random
    acquired: str = "acquired the lease"  # what the log says when the Lease is acquired
    annotations: Callable[[], Mapping[str, str]] = dict
    hung: Callable[[], str] = lambda: ""

    def __post_init__(self) -> None:
        self.election = Election(self.identity, self.settings)
        self._path = f"/apis/coordination.k8s.io/v1/namespaces/{self.settings.namespace}/leases"
        # Twice so long and a pause fit into the deadline: an answer that is lost is asked for again, and a
        # server that is short of CPU is given more than a retry period.
        self._request_seconds = (self.settings.renew_deadline - self.settings.retry_period) / 2
        self._is_current = False  # whether the Lease is known well enough to write without a read
        self._requests = asyncio.Lock()
        self._has_resigned = False
        self._tried_at = elapsed()
        self._answered_at: float | None = None
        self._is_late = False  # whether it leads, but for a renewal that is overdue
        self._trouble = TroubleLog(_log)
        self.tried = asyncio.Event()  # set after the first try, successful or not
        self.leading = asyncio.Event()
        self.lost = asyncio.Event()
        if not self.settings.enabled:
            self.tried.set()
            self._lead()

    def holds_lease(self) -> bool:
        """Whether anything may be written now. Cheap, and may be called from any thread."""
        return not self.settings.enabled or self.election.leads(elapsed())

    async def run(self) -> None:
        """Acquire the Lease and renew it. Returns when another has taken it, or when it is given back.

        A leader that could not renew in time writes nothing until a renewal succeeds. Until somebody else
        takes the Lease nobody else has written anything, so it then goes on with what it knows.
        """
        while not self._has_resigned:
            async with self._requests:
                await self._try()
            self.tried.set()
            if self.election.leads(elapsed()):
                self._lead()
                # Not longer than the lease lasts: that it is late is said when it happens.
                left = self.election.seconds_left(elapsed())
                await asyncio.sleep(min(self.settings.retry_period, left))
            elif self.leading.is_set() and not self._has_resigned:
                if self.election.holder != self.identity:
                    holder = self.election.holder
                    _log.error("lost the lease to %r", holder, extra={"holder": holder})
                    self.lost.set()
                    return
                self._log_late()
                await asyncio.sleep(self.settings.retry_period)
            else:
                await asyncio.sleep(self.settings.retry_period * self.rng.uniform(1.0, JITTER))

    async def resign(self) -> None:
        """Give the Lease back, so that the next leader need not wait until it expires."""
        self._has_resigned = True
        async with self._requests:  # a renewal in flight would make this write a conflict
            lease = self.election.resign()
            if lease is None:
                return
            try:
                await self._write(lease)
                _log.info("released the lease")
            except ApiError as error:
                _log.warning("could not release the lease, so it has to expire: %s", error)

    def trouble(self) -> str:
        """What is wrong with the election; empty if it proceeds."""
        silent = elapsed() - self._tried_at
        is_hung = self.settings.enabled and silent > self.settings.lease_duration + HUNG_SECONDS
        return f"no try for {silent:.0f} s" if is_hung else ""

    def unanswered(self) -> str:
        """For how long the API server has not answered; empty if it has within the lease duration.

        Without an election nothing is asked, so nothing is known.
        """
        if not self.settings.enabled:
            return ""
        if self._answered_at is None:
            return "no answer from the API server yet"
        silent = elapsed() - self._answered_at
        is_silent = silent > self.settings.lease_duration
        return f"no answer from the API server for {silent:.0f} s" if is_silent else ""

    async def _try(self) -> None:
        """One read where needed, one write where due. A failure is logged; the next try repeats it."""
        self._tried_at = elapsed()
        if hung := self.hung():
            self._trouble.failed("hung", f"the lease is left to others: {hung}")
            return
        try:
            if not self._is_current:
                self.election.observed(await self._read(), elapsed())
                self._answered_at = elapsed()
            self._is_current = False
            lease = self.election.desired(elapsed(), datetime.now(UTC))
            if lease is not None:
                sent_at = elapsed()
                self.election.committed(await self._write(lease), sent_at, elapsed())
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
            path = f"{self._path}/{self.settings.name}"
            return lease_from(await self.api.send("GET", path, seconds=self._request_seconds))
        except MissingError:
            return None

    async def _write(self, lease: Lease) -> Lease:
        body, path = lease_body(lease, self.settings, self.annotations()), self._path
        method, path = ("PUT", f"{path}/{self.settings.name}") if lease.version else ("POST", path)
        return lease_from(await self.api.send(method, path, body, seconds=self._request_seconds))

    def _log_late(self) -> None:
        """Say once that nothing is written until the Lease is renewed."""
        if not self._is_late:
            deadline = self.settings.renew_deadline
            _log.warning("the lease was not renewed within %g s: nothing is written until it is", deadline)
        self._is_late = True

    def _lead(self) -> None:
        if not self.leading.is_set():
            _log.info("%s", self.acquired, extra={"holder": self.election.identity})
            self.leading.set()
        elif self._is_late:
            _log.info("the lease is renewed again; nobody else has led meanwhile")
        self._is_late = False


class Claim(Struct, frozen=True):
    """The name of a Lease, what it stands for, and what to do if another installation holds it."""

    lease: str
    what: str
    advice: str


class Leadership:
    """Tries to lead until it is cancelled or has lost a Lease: the installation's, or one of its claims.

    `tried` is set once it is known whether this process leads at once, `leading` when it holds all Leases,
    `lost` when leadership is over: another process has taken one. `annotations` returns what is written on
    the installation's Lease with each renewal; `hung` says why the Lease is of no use to this process, and is
    empty while it is of use.
    """

    def __init__(
        self,
        api: ObjectApi,
        identity: str,
        settings: ElectionSettings,
        rng: Random,
        claims: Iterable[Claim],
        *,
        annotations: Callable[[], Mapping[str, str]] = dict,
        hung: Callable[[], str] = lambda: "",
    ) -> None:
        installation, labels = f"{settings.namespace}/{settings.name}", {"labels": {PART_OF_LABEL: PART_OF}}
        self._elector = Elector(api, identity, settings, rng, annotations=annotations, hung=hung)
        self._claims: list[tuple[Claim, Elector]] = []
        for claim in sorted(claims, key=lambda each: each.lease) if settings.enabled else ():
            its = replace(settings, namespace=CLAIMS_NAMESPACE, name=claim.lease, metadata=labels)
            elector = Elector(api, installation, its, rng, acquired=f"claimed {claim.what}")
            self._claims.append((claim, elector))
        self._is_elected = settings.enabled
        self._running = [self._elector]
        self._tasks: list[asyncio.Task[None]] = []
        self._has_resigned = False
        self._may_write = True
        self._retry_seconds = settings.retry_period
        self._ended = asyncio.Event()  # a Lease is lost or given back
        self.tried = asyncio.Event()
        self.leading = asyncio.Event()
        self.lost = asyncio.Event()
        if not settings.enabled:
            self._lead()

    def holds_lease(self) -> bool:
        """Whether anything may be written now. Cheap, and may be called from any thread."""
        leases = (self._elector, *(elector for _, elector in self._claims))
        return self._may_write and all(each.holds_lease() for each in leases)

    def since(self) -> str:
        """When the installation's Lease was acquired, by which the API server knows a former leader.

        Empty without an election.
        """
        return self._elector.election.since if self._is_elected else ""

    def why_standby(self) -> str:
        """Why this process does not lead, with the name of the leader; empty while it leads."""
        if self.leading.is_set() and self.holds_lease():
            return ""
        if (holder := self._elector.election.holder) and not self._elector.holds_lease():
            late = "the lease was not renewed in time: nothing is written until it is"
            return late if holder == self._elector.identity else f"this replica does not lead; {holder} does"
        for claim, elector in self._claims:
            if (holder := elector.election.holder) not in ("", elector.identity):
                return f"{claim.what} is taken by another installation, {holder}"
        return "this replica does not lead, and no other is known to"

    async def run(self) -> None:
        """Acquire the Leases and renew them. Returns when one is lost or given back."""
        self._start(self._elector.run())
        self._start(self._acquire())
        try:
            await self._ended.wait()
            for task in self._tasks:
                if task.done():
                    task.result()
            if not self._has_resigned:
                self.lost.set()
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def stop_writing(self) -> None:
        """Let nothing more be written. The Leases are held and renewed until `resign` or the end of `run`."""
        self._may_write = False

    async def resign(self) -> None:
        """Give the installation's Lease back, so that its next leader need not wait until it expires."""
        self._has_resigned = True
        await self._elector.resign()

    def trouble(self) -> str:
        """What is wrong with the election; empty if it proceeds."""
        return next(filter(None, (each.trouble() for each in self._running)), "")

    def unanswered(self) -> str:
        """For how long the API server has not answered; empty if it has within the lease duration."""
        return self._elector.unanswered()

    async def _acquire(self) -> None:
        """Acquire the Leases one by one; then lead, until this is cancelled."""
        await self._elector.tried.wait()
        if not self._elector.leading.is_set():
            self.tried.set()
        await self._elector.leading.wait()
        for claim, elector in self._claims:
            self._running.append(elector)
            self._start(elector.run())
            await elector.tried.wait()
            await self._wait_for(claim, elector)
        self._lead()
        await asyncio.Event().wait()  # for ever

    async def _wait_for(self, claim: Claim, elector: Elector) -> None:
        """Wait until the claim is held; say once which installation holds it."""
        is_reported, lease = False, f"{CLAIMS_NAMESPACE}/{claim.lease}"
        while not elector.leading.is_set():
            self.tried.set()
            if (holder := elector.election.holder) not in ("", elector.identity) and not is_reported:
                problem = f"{claim.what} is taken by another installation, {holder} (Lease {lease})"
                _log.error("%s: this one does nothing until that one is gone. %s", problem, claim.advice)
                is_reported = True
            with suppress(TimeoutError):
                async with asyncio.timeout(self._retry_seconds):
                    await elector.leading.wait()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        task.add_done_callback(lambda _: self._ended.set())
        self._tasks.append(task)

    def _lead(self) -> None:
        _log.info("leading")
        self.leading.set()
        self.tried.set()
