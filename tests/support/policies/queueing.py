"""A minimal queueing simulation: exponential work on nodes of unequal speed, response times."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush
from random import Random

import numpy as np
from msgspec.structs import replace

from builders import ExactSpeeds, make_engine, make_node, make_task
from eclectus.framework import Place
from eclectus.model.commands import Bind, Fault
from eclectus.model.events import BindConfirmed, Event, NodeSeen, Resumed, TaskSeen

GROUPS = [1.0] * 8 + [2.0] * 8 + [4.0] * 7 + [8.0] * 7  # 30 nodes, 1 : 2 : 4 : 8


@dataclass(frozen=True)
class Responses:
    """Response times in units of the mean service time on a node of speed 1."""

    mean: float
    p99: float
    served: int


def simulate(place: Place, *, load: float, slots: int, tasks: int, seed: int) -> Responses:
    """Poisson arrivals at this load, with exactly known rates; the first fifth is not measured."""
    rng = Random(seed)
    speeds = rng.sample(GROUPS, len(GROUPS))  # results must not depend on which rows are fast
    nodes = {f"n{at}": speed for at, speed in enumerate(speeds)}
    engine = make_engine(place, ExactSpeeds(nodes), seed)
    engine.step([Resumed(), *(NodeSeen(make_node(name, cpu=slots)) for name in nodes)], 0.0)
    begun, work, now = [], [], 0.0
    for serial in range(tasks):
        now += rng.expovariate(load * slots * sum(speeds))
        begun.append(make_task(str(serial), created=now))
        work.append(rng.expovariate(1.0))
    heap = [(task.created, serial, task) for serial, task in enumerate(begun)]
    response, confirmed = np.full(tasks, np.nan), list[Event]()
    while heap:
        wake, events = engine.next_step_at(), confirmed
        if wake is not None and wake < heap[0][0]:
            now = wake
        else:
            now, serial, task = heappop(heap)
            events = [*events, TaskSeen(task)]
            if task.ended:
                response[serial] = now - task.created
        confirmed = []
        for command in engine.step(events, now):
            assert not isinstance(command, Fault), command
            if isinstance(command, Bind):
                serial = int(command.name)
                done = now + work[serial] / nodes[command.node]
                heappush(heap, (done, serial, replace(begun[serial], phase="Succeeded")))
                confirmed.append(BindConfirmed(command.uid, command.node))
    measured = response[tasks // 5 :]
    served = int(np.isfinite(response).sum())
    return Responses(float(measured.mean()), float(np.quantile(measured, 0.99)), served)
