"""Makes room for a pod: nominates it to a node, then deletes the victims there.

The nomination is written first: a process that dies in between has then evicted no pod for one that no other
process knows to be waiting. Each victim gets the condition DisruptionTarget, as with kube-scheduler,
and is deleted gracefully. The uid is a precondition of both: a new pod of the same name is left alone. By the
time that a write is sent the pod may have found room elsewhere: before each try it must still wait, and no
later step may have bound it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct, field

from eclectus.kubeclient.api_errors import ApiError, ConflictError, MissingError
from eclectus.kubeclient.client import STRATEGIC_MERGE
from eclectus.live.inbox import Inbox
from eclectus.live.write.event_recorder import EventRecorder
from eclectus.live.write.status_patches import Nominator
from eclectus.live.write.write_queues import UNDONE, Pool, log_fields, pod_path
from eclectus.model.commands import Bind, Command, Evict, Nominate
from eclectus.model.events import EvictRefused, NominateRefused

PATIENCE_SECONDS = 30.0  # a write not done for this long is given up, since the cluster has changed

_log = logging.getLogger(__name__)


class NeedlessError(Exception):
    """The pod that was to get the room is bound or gone, or is being bound."""


class Relief(Struct):
    """What is written for one pod in one step of the engine."""

    uid: str  # of the pod
    nominate: Nominate | None = None  # None: it is nominated already
    evictions: list[Evict] = field(default_factory=list)
    is_needed: bool = True  # until a later step binds the pod


@dataclass(eq=False)
class Evictor:
    """Writes nominations and evictions; `workers.run()` must run."""

    nominator: Nominator
    recorder: EventRecorder
    inbox: Inbox
    in_flight: int

    def __post_init__(self) -> None:
        self.workers: Pool[Relief] = Pool("evictions", self.in_flight, self._relieve)
        self.under_way: dict[str, Relief] = {}  # by the uid of the pod, the newest of it

    def accept(self, commands: Sequence[Command]) -> None:
        """Queue the nominations and evictions of one step."""
        by_pod: dict[str, Relief] = {}
        for command in commands:
            match command:
                case Bind():
                    by_pod.pop(command.uid, None)  # its room is free already
                    if (relief := self.under_way.get(command.uid)) is not None:
                        relief.is_needed = False
                case Nominate():
                    by_pod.setdefault(command.uid, Relief(command.uid)).nominate = command
                case Evict():
                    of_pod = by_pod.setdefault(command.preemptor, Relief(command.preemptor))
                    of_pod.evictions.append(command)
        self.under_way |= by_pod
        for relief in by_pod.values():
            self.workers.put(relief)

    async def _relieve(self, relief: Relief) -> None:
        problem = "" if relief.nominate is None else await self._nominate(relief.nominate)
        if not problem:
            await asyncio.gather(*(self._evict(each, relief) for each in relief.evictions))
        if self.under_way.get(relief.uid) is relief:
            del self.under_way[relief.uid]
        for evict in relief.evictions if problem else ():
            self.inbox.put(EvictRefused(evict.uid, f"the pod that needs the room: {problem}"))

    async def _nominate(self, nominate: Nominate) -> str:
        """Write the nomination; returns why that was not possible, or nothing."""
        problem = await self.nominator.write(nominate, nominate.node, PATIENCE_SECONDS)
        if problem and nominate.node:  # a nomination that is withdrawn also ends with the bind
            _log.warning("not nominated: %s", problem, extra=log_fields(nominate))
            self.inbox.put(NominateRefused(nominate.uid, nominate.node, problem))
        return problem

    async def _evict(self, evict: Evict, relief: Relief) -> None:
        try:
            error = await self._attempt(evict, relief, self._mark)
            # A request of its own, because the Lease may be lost between the two.
            error = error or await self._attempt(evict, relief, self._delete)
        except NeedlessError as needless:
            self.inbox.put(EvictRefused(evict.uid, str(needless)))
            return
        except (MissingError, ConflictError):
            return  # it is gone, and so is the need: the watch says so
        except ApiError as refused:
            error = refused
        if error is not None:
            _log.warning("not evicted: %s", error.reason, extra=log_fields(evict))
            self.inbox.put(EvictRefused(evict.uid, error.reason))
            return
        self.recorder.preempted(evict)
        _log.info("evicted for pod %s", evict.preemptor, extra=log_fields(evict))

    async def _attempt(
        self, evict: Evict, relief: Relief, write: Callable[[Evict], Awaitable[None]]
    ) -> ApiError | None:
        async def needed() -> None:
            if not relief.is_needed or self.nominator.state_of(evict.preemptor) is None:
                raise NeedlessError("the pod that needs the room waits no more")
            await write(evict)

        return await self.nominator.persistence.attempt(needed, UNDONE, PATIENCE_SECONDS)

    async def _mark(self, evict: Evict) -> None:
        body = disruption_patch(evict, datetime.now(UTC))
        path = pod_path(evict) + "/status"
        await self.nominator.context.client.send("PATCH", path, body, content_type=STRATEGIC_MERGE)

    async def _delete(self, evict: Evict) -> None:
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": evict.uid}}
        await self.nominator.context.client.send("DELETE", pod_path(evict), options)


def disruption_patch(evict: Evict, now: datetime) -> dict[str, Any]:
    """A patch of the condition DisruptionTarget, in kube-scheduler's words where it has any."""
    why = "preempting to accommodate a higher priority pod"
    if evict.pool:
        why = f"pool {evict.pool} takes back its {evict.claim}"
    elif evict.claim:
        why = "its work may begin anew, and another pod would lose more"
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": f"{evict.profile}: {why}",
        "lastTransitionTime": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    return {"metadata": {"uid": evict.uid}, "status": {"conditions": [condition]}}
