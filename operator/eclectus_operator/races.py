"""Races of pods with their copies: the steps of the table (eclectus/maths/copies.py), carried out.

A pod that has lost is marked with the condition DisruptionTarget and then deleted, both by the version that
was read: it may have ended since, and then the next sync decides anew. Nothing of a race is ever an error of
a job: a request that fails is logged, and its step is taken again by a later sync.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from eclectus.api.common import ObjectMeta, time_text
from eclectus.kubeclient.api_errors import ApiError, ConflictError, MissingError, RejectedError
from eclectus.kubeclient.client import Object
from eclectus.maths.copies import Step
from eclectus_operator.observed import DISRUPTION, Metadata
from eclectus_operator.operator_context import NotLeadingError, OperatorContext, Sync
from eclectus_operator.pod_stages import FORCED, LEAVING, forced_note

About = ObjectMeta | Metadata
"""Of the DagJob or the pod that events are about."""
OVERTAKEN, RESTARTED = "OvertakenByAttempt", "RestartedElsewhere"  # reasons of the condition of ended pods
PAUSE_SECONDS = 300.0  # after a copy that was refused or withdrawn, until its original gets another one
RETRY_SECONDS = 2.0  # after a request that was not answered
_log = logging.getLogger(__name__)


class Contender(Protocol):
    """A pod of a race. `lags`: why it straggles; `began`, `finished`: of its containers.

    `stage_until`: until when it may be in its stage, and `late`: what is said of it after that. Times are
    seconds since the epoch.
    """

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def uid(self) -> str: ...  # noqa: D102
    @property
    def version(self) -> str | None: ...  # noqa: D102
    @property
    def node(self) -> str: ...  # noqa: D102
    @property
    def has_ended(self) -> bool: ...  # noqa: D102
    @property
    def lags(self) -> str: ...  # noqa: D102
    @property
    def stage_until(self) -> float | None: ...  # noqa: D102
    @property
    def late(self) -> str: ...  # noqa: D102
    @property
    def began(self) -> float | None: ...  # noqa: D102
    @property
    def finished(self) -> float | None: ...  # noqa: D102


P_co = TypeVar("P_co", bound=Contender, covariant=True)


@dataclass(frozen=True)
class Race(Generic[P_co]):
    """A pod that straggles and its copy, and the next step. `is_overdue`: the copy is, in its stage."""

    original: P_co | None
    copy: P_co | None
    step: Step
    is_overdue: bool = False


@dataclass
class Pauses:
    """Originals, by uid, that get no other copy before some time: one was refused or withdrawn.

    Losing it costs one more try.
    """

    until: dict[str, float] = field(default_factory=dict)

    def pause(self, uid: str, now: float) -> None:
        """No copy of this pod for some minutes."""
        self.until[uid] = now + PAUSE_SECONDS

    def holds(self, uid: str, now: float) -> bool:
        """Whether it gets none now."""
        return now < self.until.get(uid, 0.0)

    def forget_but(self, uids: Iterable[str]) -> None:
        """Forget all pods but these, which exist."""
        kept = set(uids)
        self.until = {uid: until for uid, until in self.until.items() if uid in kept}


@dataclass
class RaceSync(Sync):
    """Carries out the steps of the races of one namespace; an event about each is one about `about`.

    `may_mark`: whether the operator may write the status of pods there. `forced`: uids of the pods that are
    not gone in time, for which no more is to be done.
    """

    context: OperatorContext
    pods_path: str
    pauses: Pauses
    may_mark: bool = True
    forced: set[str] = field(default_factory=set)

    async def start(self, about: About, race: Race[Contender], body: Object, task: str = "") -> bool:
        """Create the copy; whether it exists then. Raises NotLeadingError."""
        original, name = race.original, body["metadata"]["name"]
        if original is None:
            return False
        try:
            await self.context.api.send("POST", self.pods_path, body)
        except NotLeadingError:
            raise
        except ConflictError:  # by an earlier request, or the name is taken: the list tells
            self.pauses.pause(original.uid, self.now)
            return True
        except RejectedError as error:  # such as a quota that is full
            await self.refuse(about, original, error.message, task)
            return False
        except ApiError as error:
            _log.warning("%s: %s not created: %s", self.pods_path, name, error)
            self.wake_by(self.now + RETRY_SECONDS)
            return False
        self.context.metrics.count_copy("created")
        _log.info("created %s/%s, a copy", self.pods_path, name)
        why = f": {original.lags}" if original.lags else ""
        text = f"{task}{name} runs beside {original.name} on {original.node}, which straggles{why}"
        await self._record(about, "CopyCreated", text)
        return True

    async def refuse(
        self, about: About, original: Contender, why: str, task: str = "", *, is_restart: bool = False
    ) -> None:
        """Say why a pod gets no copy for now, or is not restarted."""
        self.pauses.pause(original.uid, self.now)
        self.context.metrics.count_copy("refused")
        reason = "RestartRefused" if is_restart else "CopyRefused"
        what = "is not restarted" if is_restart else "gets no copy"
        await self._record(about, reason, f"{task}{original.name} {what}: {why}")

    async def restart(self, about: About, original: Contender) -> None:
        """End a pod, so that its Job makes another. Raises NotLeadingError."""
        text = f"{original.name} is ended, so that its Job makes another: {original.lags}"
        try:
            if await self._end(original, text, RESTARTED):
                self.context.metrics.count_copy("restarted")
                await self._record(about, "Restarted", text)
        except NotLeadingError:
            raise
        except ConflictError:  # it has changed since it was read: it may have ended
            self.wake_by(self.now)
        except ApiError as error:
            _log.warning("%s: %s not restarted: %s", self.pods_path, original.name, error)

    async def take(self, about: About, race: Race[Contender], task: str = "") -> None:
        """Take the step of a race that ends a pod. Raises NotLeadingError."""
        try:
            await self._take(about, race, task)
        except NotLeadingError:
            raise
        except ConflictError:  # it has changed since it was read, so the step may be another one
            self.wake_by(self.now)
        except ApiError as error:
            _log.warning("%s: %s of a race failed: %s", self.pods_path, race.step, error)

    async def _take(self, about: About, race: Race[Contender], task: str) -> None:
        original, copy = race.original, race.copy
        if race.step is Step.WIN and original is not None and copy is not None:
            text = f"{task}{_settled(copy, original, 'its original', self.now)}"
            if await self._end(original, text):
                self.context.metrics.count_copy("won")
                await self._record(about, "CopyWon", text)
        elif copy is None:
            return
        elif race.step is Step.LOSE:
            text = f"{task}{_settled(original, copy, 'its copy', self.now)}"
            if await self._end(copy, text):
                self.context.metrics.count_copy("lost")
                await self._record(about, "CopyLost", text)
        elif race.step in (Step.WITHDRAW, Step.DROP):
            text = copy.late if race.is_overdue else f"copy {copy.name} is not needed any more"
            await self._withdraw(about, race, task + text)
        elif race.step is Step.FORCE:
            await self.force(about, copy)

    def is_overdue(self, pod: Contender | None) -> bool:
        """Whether it has been in its stage for too long; if not yet, the next sync is due when it has."""
        if pod is None or pod.stage_until is None:
            return False
        if self.now < pod.stage_until:
            self.wake_by(pod.stage_until)
            return False
        return pod.uid not in self.forced

    async def force(self, about: About, pod: Contender, why_not: str = "") -> None:
        """Delete a pod without its node, which has not ended it in time; or say why it stays. Once.

        Raises NotLeadingError.
        """
        if pod.uid in self.forced:
            return
        text, reason = f"deleted, and not gone: {pod.late}; {why_not}", LEAVING
        try:
            if not why_not:
                await self.context.delete(f"{self.pods_path}/{pod.name}", pod.uid, gracePeriodSeconds=0)
                text, reason = forced_note(pod.late), FORCED
        except NotLeadingError:
            raise
        except ApiError as error:
            _log.warning("%s: %s not deleted: %s", self.pods_path, pod.name, error)
            return
        self.forced.add(pod.uid)
        _log.warning("%s: %s", self.pods_path, text)
        await self._record(about, reason, text)

    async def _withdraw(self, about: About, race: Race[Contender], text: str) -> None:
        copy = race.copy
        if copy is None or not await self._end(copy, text):
            return
        self.context.metrics.count_copy("withdrawn")
        if race.is_overdue:
            if race.original is not None:
                self.pauses.pause(race.original.uid, self.now)
            await self._record(about, "CopyWithdrawn", text)

    async def _end(self, pod: Contender, message: str, reason: str = OVERTAKEN) -> bool:
        """Delete a pod as it was read; whether it was there. Raises ApiError: ConflictError if it changed.

        One that runs is marked first, so that nobody takes its end for a failure of its own.
        """
        path, version = f"{self.pods_path}/{pod.name}", pod.version
        if self.may_mark and pod.node and not pod.has_ended:
            try:
                version = await self._mark(path, pod, message, reason)
            except MissingError:
                return False
        was_there = await self.context.delete(path, pod.uid, version)
        _log.info("deleted %s: %s", path, message)
        return was_there

    async def _mark(self, path: str, pod: Contender, message: str, reason: str) -> str:
        """Mark a pod as one that is about to be ended; its version after that."""
        found = await self.context.api.send("GET", path)
        meta, conditions = found["metadata"], found.get("status", {}).get("conditions") or []
        if meta["uid"] != pod.uid or pod.version not in (None, meta["resourceVersion"]):
            raise ConflictError(f"GET {path}", message="it has changed since it was read")
        if any(each.get("type") == DISRUPTION and each.get("status") == "True" for each in conditions):
            return str(meta["resourceVersion"])
        condition = {
            "type": DISRUPTION,
            "status": "True",
            "reason": reason,
            "message": message,
            "lastTransitionTime": time_text(self.now),
        }
        others = [each for each in conditions if each.get("type") != DISRUPTION]
        body = {
            "metadata": {"resourceVersion": meta["resourceVersion"]},
            "status": {"conditions": [*others, condition]},
        }
        answer = await self.context.api.send("PATCH", f"{path}/status", body)
        return str(answer["metadata"]["resourceVersion"])

    async def _record(self, about: About, reason: str, note: str) -> None:
        await self.context.record(about, "Copy", reason, note, is_warning=False)


def _settled(winner: Contender | None, loser: Contender, what: str, now: float) -> str:
    """Who has ended first and who is deleted, each with the seconds for which it has run.

    Without a winner its pod is gone, and the task is recorded as one that has succeeded.
    """
    won = "the task has succeeded before" if winner is None else f"{winner.name} has ended first"
    ran = "" if winner is None else _ran(winner, now)
    return f"{won}{ran}; {loser.name}, {what}, is deleted{_ran(loser, now) or ', which has not started'}"


def _ran(pod: Contender, now: float) -> str:
    """After how many seconds; empty while no container has begun."""
    if pod.began is None:
        return ""
    until = pod.finished if pod.has_ended and pod.finished is not None else now
    return f", after {max(0.0, until - pod.began):.0f} s"
