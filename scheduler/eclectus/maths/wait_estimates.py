"""How long a task of a class waits for one of the slots that may run it, from the class's load and backlog.

The project's own selection of textbook formulas; Phoenix (ICDCS 2017) names an M/G/1 wait and no more. For c
servers of mean service time s, utilisation rho, and squared coefficients of variation C_a (time between
arrivals) and C_s (service):

    Erlang C         P(c, rho): the share of Poisson arrivals that wait at exponential servers
    Allen-Cunneen    W = P(c, rho) s / (c (1 - rho)) * (C_a + C_s) / 2      (Allen, 1990)
    batches          W + P((c - 1) / b, rho) * (b - 1) s / (2 c (1 - rho)),      b = E[X^2] / E[X]
    backlog          (queued work + r) / c,      r = s (1 + C_s) / 2: what is left of the service at hand

X is the size of a batch, and b the mean size of the batch in which a task comes. The second line is exact for
M/M/c and M/G/1, the third for batches at one server (Cooper, 1981). For several servers its second
probability is fitted here: a batch of b fills about b servers, so that the last of it sees (c - 1) / b of
them as spare. Compared with the exact waits of batches of 3 and 10 with exponential service it is within an
eighth at up to 20 servers from rho = .7, and within a quarter at 50; where hardly anything waits it is too
long (tests/maths).

The formulas hold for a steady state, which near saturation takes longer to reach than loads last: from .9 the
larger of formula and backlog counts, and from 1 the backlog alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt

NEARLY_SATURATED = 0.9  # utilisation from which the backlog counts too
NEGLIGIBLE = 1e-15  # probability of a wait


@dataclass(frozen=True, slots=True)
class Station:
    """The slots that may run a class, and what is asked of them.

    `servers`: slots. `utilisation`: arriving work over capacity, or the share of the slots in use.
    `service_seconds`, `service_scv`: mean and squared coefficient of variation of the time that a task holds
    a slot. `arrival_scv`: that of the time between arrivals, of batches where tasks come in batches.
    `batch`: mean size of the batch in which a task comes.
    """

    servers: int
    utilisation: float
    service_seconds: float
    service_scv: float = 1.0
    arrival_scv: float = 1.0
    batch: float = 1.0


def expected_wait_seconds(station: Station, queued_seconds: float) -> float:
    """The wait of a task that arrives now; inf without servers.

    `queued_seconds`: sum of the estimates of the tasks that wait for these servers and have not started.
    """
    if station.utilisation < NEARLY_SATURATED:
        return steady_wait_seconds(station)
    backlog = backlog_wait_seconds(station, queued_seconds)
    return backlog if station.utilisation >= 1.0 else max(steady_wait_seconds(station), backlog)


def steady_wait_seconds(station: Station) -> float:
    """The mean wait in the steady state; inf without servers, or where there is no steady state."""
    servers, rho = station.servers, station.utilisation
    if servers < 1 or rho >= 1.0:
        return inf
    drain_seconds = station.service_seconds / (servers * (1.0 - rho))
    variation = (station.arrival_scv + station.service_scv) / 2.0
    within_batch = erlang_c((servers - 1) / station.batch, rho) * (station.batch - 1.0) / 2.0
    return drain_seconds * (erlang_c(servers, rho) * variation + within_batch)


def backlog_wait_seconds(station: Station, queued_seconds: float) -> float:
    """The time in which the servers, all busy, work off what is queued; inf without servers."""
    if station.servers < 1:
        return inf
    residual_seconds = station.service_seconds * (1.0 + station.service_scv) / 2.0
    return (queued_seconds + residual_seconds) / station.servers


def erlang_c(servers: float, utilisation: float) -> float:
    """The probability that a Poisson arrival waits at exponential servers, 0..1.

    Between two whole numbers of servers it is interpolated geometrically. Costs O(sqrt(servers)).
    """
    if utilisation >= 1.0 or servers <= 0:
        return 1.0
    whole = int(servers)
    part = servers - whole
    fewer = _erlang_c(whole, utilisation)
    return float(fewer ** (1.0 - part) * _erlang_c(whole + 1, utilisation) ** part) if part else fewer


def _erlang_c(servers: int, utilisation: float) -> float:
    blocked = _erlang_b(servers, servers * utilisation)
    return blocked / (1.0 - utilisation * (1.0 - blocked))


def _erlang_b(servers: int, offered: float) -> float:
    """Erlang's loss probability by its recursion over the number of servers.

    The recursion forgets where it began: below `offered` servers it is near 1 - servers / offered, and ten
    standard deviations below, the error of beginning with that has vanished when `offered` is reached.
    """
    first = max(int(offered - 10.0 * sqrt(offered)), 0)
    blocked = 1.0 - first / offered if first else 1.0
    for count in range(first + 1, servers + 1):
        blocked = offered * blocked / (count + offered * blocked)
        if blocked < NEGLIGIBLE:
            return 0.0
    return blocked
