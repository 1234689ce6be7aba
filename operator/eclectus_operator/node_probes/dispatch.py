"""When the next run of a NodeProbe is due, and on which node.

Rosella's benchmark dispatcher, by the formulas of `eclectus.maths.probing`: runs form
a Poisson process, each on a node drawn uniformly. A run that finds its node or the cluster busy is dropped,
not postponed: the next one is due soon enough.

The times are memoryless, so none of them has to survive a crash.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from eclectus.api.node_probe import Load, NodeProbe, ProbeClass
from eclectus.api.node_profile import NodeProfile
from eclectus.maths.probing import draw_target, gap_seconds, probe_rate
from eclectus.model.objects import kind_of
from eclectus_operator.node_probes.probe_pods import Original

LOAD_SECONDS = 600.0  # an older `status.load` is ignored
HOUR = 3600.0


@dataclass(frozen=True)
class Blocked:
    """Why no run is started now: reason and message of a condition."""

    reason: str
    message: str


@dataclass(frozen=True)
class Target:
    """What to measure: a node, by name, and a class of work; by a copy of `original`, if there is one."""

    node: str
    work: ProbeClass
    original: Original | None = None


@dataclass(frozen=True)
class Due:
    """When the next run is due (seconds since the epoch), and the rate (1/s) for which that was drawn."""

    at: float
    rate: float


def rate(probe: NodeProbe, now: float) -> float:
    """Runs per second: a share of the spare capacity; `leastPerHour` while the load is unknown."""
    limits, load = probe.spec.limits, _fresh_load(probe, now)
    least, most = limits.least_per_hour / HOUR, limits.per_hour / HOUR
    if load is None:
        return least
    return probe_rate(load.service_rate, load.arrival_rate, limits.spare_share, least, most)


def due(old: Due | None, rate_now: float, now: float, rng: Random) -> Due | None:
    """When the next run is due at the present rate; None if never.

    A time that was drawn for another rate is rescaled from now on, which for exponential times gives exactly
    the distribution of the new rate.
    """
    if rate_now <= 0:
        return None
    if old is None:
        return Due(now + gap_seconds(rng, rate_now), rate_now)
    if old.rate == rate_now or old.at <= now:
        return old
    return Due(now + (old.at - now) * old.rate / rate_now, rate_now)


def draw(probe: NodeProbe, names: Sequence[str], now: float, rng: Random) -> Target | None:
    """A node, uniformly, and a class in proportion to its share of the arriving work; None without nodes."""
    drawn = draw_target(rng, names, _shares(probe, now))
    return None if drawn is None else Target(drawn[0], probe.spec.classes[drawn[1]])


def is_resting(profile: NodeProfile, interval: float, now: float) -> bool:
    """Whether the last run on the node began less than `interval` seconds ago."""
    last = profile.status.last_probe
    return last is not None and last.begun_time is not None and now - last.begun_time.timestamp() < interval


def _shares(probe: NodeProbe, now: float) -> list[float]:
    """The share of each class in the arriving work; a class without one counts as the mean of the others.

    A class of the same name in several namespaces counts with all of them.
    """
    load, names = _fresh_load(probe, now), [work.name for work in probe.spec.classes]
    known: dict[str, float] = {}
    for each in load.classes if load else ():
        if (name := kind_of(each.name)) in names:
            known[name] = known.get(name, 0.0) + each.share
    if sum(known.values()) == 0:
        return [1.0] * len(names)
    mean = sum(known.values()) / len(known)
    return [known.get(name, mean) for name in names]


def _fresh_load(probe: NodeProbe, now: float) -> Load | None:
    load = probe.status.load
    is_fresh = load is not None and now - load.observed_time.timestamp() <= LOAD_SECONDS
    return load if is_fresh else None
