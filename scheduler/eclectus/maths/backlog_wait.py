"""How long a task waits for one of several busy servers: the time in which they work off what is ahead of it.

    W = (queued work + r) / c,      r = s (1 + C^2) / 2

for c servers with mean service time s. r is what is left of the service at hand, C^2 the squared coefficient
of variation of service times. Phoenix (ICDCS 2017) has a wait of M/G/1, a mean over the steady state: it is
infinite at saturation, is for one server, and does not say what is ahead of a task that waits already.
"""

from __future__ import annotations

from math import inf


def backlog_wait_seconds(
    servers: int, queued_seconds: float, *, service_seconds: float, service_scv: float
) -> float:
    """The wait of a task that finds all servers busy; inf without servers.

    `queued_seconds`: sum of the estimates of the tasks ahead that have not started. `service_seconds`,
    `service_scv`: mean and squared coefficient of variation of the time that a task holds a server.
    """
    if servers < 1:
        return inf
    residual_seconds = service_seconds * (1.0 + service_scv) / 2.0
    return (queued_seconds + residual_seconds) / servers
