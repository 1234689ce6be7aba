"""When the next probe of a NodeProbe is due, and where it may run.

Rosella's dispatcher, by the formulas of `eclectus.maths.probing`: a Poisson stream, each probe to a node
drawn uniformly. A probe that finds its node or the cluster busy is not put off but dropped: the next is due
soon enough.

The times are memoryless, so nothing of them need survive a crash.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
from numpy.typing import NDArray

from eclectus.api.node_probe import Load, NodeProbe, ProbeClass
from eclectus.api.node_profile import NodeProfile
from eclectus.maths.probing import draw_cell, gap_seconds, probe_rate

LOAD_SECONDS = 600.0  # what the scheduler said longer ago is not used
HOUR = 3600.0


@dataclass(frozen=True)
class Held:
    """Why no probe is started now, as a condition says it."""

    reason: str
    message: str


@dataclass(frozen=True)
class Cell:
    """Which node to measure, by name, and with which work."""

    node: str
    work: ProbeClass


@dataclass(frozen=True)
class Due:
    """When the next probe is due (seconds since the epoch), and the rate (1/s) at which that was drawn."""

    at: float
    rate: float


def rate(probe: NodeProbe, now: float) -> float:
    """Probes a second: a share of the spare capacity, or the floor where the scheduler has said nothing."""
    limits, load = probe.spec.limits, _load(probe, now)
    least, most = limits.least_per_hour / HOUR, limits.per_hour / HOUR
    if load is None:
        return least
    return probe_rate(load.service_rate, load.arrival_rate, limits.spare_share, least, most)


def due(old: Due | None, rate_now: float, now: float, rng: Random) -> Due | None:
    """When the next one is due, now that the rate is this; None if never.

    A time that was drawn at another rate is stretched from now on, which for an exponential time gives
    exactly the law of the new rate.
    """
    if rate_now <= 0:
        return None
    if old is None:
        return Due(now + gap_seconds(rng, rate_now), rate_now)
    if old.rate == rate_now or old.at <= now:
        return old
    return Due(now + (old.at - now) * old.rate / rate_now, rate_now)


def cell(probe: NodeProbe, names: Sequence[str], now: float, rng: Random) -> Cell | None:
    """One of the nodes, drawn uniformly, and a class by its share of what comes; None without nodes."""
    drawn = draw_cell(rng, np.arange(len(names)), _shares(probe, now))
    return None if drawn is None else Cell(names[drawn[0]], probe.spec.classes[drawn[1]])


def rests(profile: NodeProfile, interval: float, now: float) -> bool:
    """Whether a node was probed less than `interval` seconds ago."""
    last = profile.status.last_probe
    return last is not None and last.begun_time is not None and now - last.begun_time.timestamp() < interval


def _shares(probe: NodeProbe, now: float) -> NDArray[np.float64]:
    """The share of each class in the work that comes; one nothing was said of counts like the mean."""
    load, names = _load(probe, now), [work.name for work in probe.spec.classes]
    said = {each.name: each.share for each in (load.classes if load else ()) if each.name in names}
    if sum(said.values()) == 0:
        return np.ones(len(names))
    usual = sum(said.values()) / len(said)
    return np.array([said.get(name, usual) for name in names])


def _load(probe: NodeProbe, now: float) -> Load | None:
    """What the scheduler has lately said."""
    load = probe.status.load
    fresh = load is not None and now - load.observed_time.timestamp() <= LOAD_SECONDS
    return load if fresh else None
