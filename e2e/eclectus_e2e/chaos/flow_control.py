"""API priority and fairness: the slots of a priority level, which flows share.

The accounts of scheduler and operator are in the level `workload-low` with those of the tenants, each a flow
of its own. Their requests for Leases are in another level, as by the chart's FlowSchemas.
A request takes a slot while it is handled. One that finds none free waits in the queue of its flow; the
queues take turns. One that finds its queue full, or waits for too long, is refused with 429.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field

SLOTS = 6
QUEUE_MOST = 50  # requests of a flow, as in Kubernetes' level `workload-low`
WAIT_SECONDS = 15.0  # of a request in a queue: a quarter of the server's time limit
HANDLED_SECONDS = 0.002  # for which a plain request takes a slot
FLOOD_SECONDS = 0.2  # for which one of a flood does: a list of everything
FLOOD_PERIOD = 0.5  # between two batches of a flood
FLOOD_REQUESTS = 30  # of a batch: twice as many as there are slots for

Call = Callable[[], object]


@dataclass(eq=False)
class _Request:
    seconds: float  # for which it takes a slot
    serve: Call
    is_waiting: bool = True


@dataclass(eq=False)
class FlowControl:
    """One level. `later` calls back after seconds of virtual time."""

    later: Callable[..., None]
    squeezed: dict[str, float] = field(default_factory=dict)  # flow -> seconds of its one slot for a request
    refused: Counter[str] = field(default_factory=Counter)  # requests by flow

    def __post_init__(self) -> None:
        self._queues: dict[str, deque[_Request]] = {}  # by flow; that whose turn is next is first
        self._taken = Counter[str]()  # slots by flow

    def admit(self, flow: str, seconds: float, serve: Call, refuse: Call) -> None:
        """Serve the request now, serve it later, or refuse it."""
        queue = self._queues.setdefault(flow, deque())
        if len(queue) >= QUEUE_MOST:
            self.refused[flow] += 1
            refuse()
            return
        request = _Request(self.squeezed.get(flow, seconds), serve)
        queue.append(request)
        self._dispatch()
        if request.is_waiting:
            self.later(WAIT_SECONDS, self._give_up, flow, request, refuse)

    def squeeze(self, flow: str, request_seconds: float, seconds: float) -> None:
        """Leave the flow one slot for a while, and let each of its requests take it for so long."""
        self.squeezed[flow] = request_seconds
        self.later(seconds, self.squeezed.pop, flow, None)

    def flood(self, flow: str, until: float, now: Callable[[], float]) -> None:
        """Let a flow send more than there are slots until a time."""
        for _ in range(FLOOD_REQUESTS):
            self.admit(flow, FLOOD_SECONDS, lambda: None, lambda: None)
        if now() < until:
            self.later(FLOOD_PERIOD, self.flood, flow, until, now)

    def _dispatch(self) -> None:
        """Give free slots to the queues in turn."""
        while self._taken.total() < SLOTS:
            flow = next(filter(self._may_have_slot, self._queues), None)
            if flow is None:
                return
            queue = self._queues.pop(flow)
            request = queue.popleft()
            if queue:
                self._queues[flow] = queue
            request.is_waiting = False
            self._taken[flow] += 1
            self.later(request.seconds, self._free, flow)
            request.serve()

    def _may_have_slot(self, flow: str) -> bool:
        return bool(self._queues[flow]) and (flow not in self.squeezed or not self._taken[flow])

    def _free(self, flow: str) -> None:
        self._taken[flow] -= 1
        self._dispatch()

    def _give_up(self, flow: str, request: _Request, refuse: Call) -> None:
        if request.is_waiting:
            request.is_waiting = False
            self._queues[flow].remove(request)
            self.refused[flow] += 1
            refuse()
