"""The contest as a table: a column for each contestant, and who is ahead in each row."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import msgspec

from eclectus.maths.student import half_width
from eclectus_bench.contest.reckoning import Outcome, Played, outcome, sample
from eclectus_bench.schedulers import ECLECTUS
from eclectus_e2e import pairs
from eclectus_e2e.pairs import FEW_PAIRS, LEAST_PAIRS, LOST, WON, mean_interval

NEVER, NOT_COMPARED = "never", ""
SHOWN_EVERY_SECONDS = 10


@dataclass(frozen=True)
class Row:
    """A measure; less is better unless it says more."""

    title: str
    read: Callable[[Outcome], float | None]
    more: bool = False


ROWS = (
    Row("furthest from its share, %", lambda each: each.furthest_percent),
    Row("slots held above a share, % of all", lambda each: each.astray_percent),
    Row("Jain's index of held over entitled", lambda each: each.jain, more=True),
    Row("slots in use, %", lambda each: each.in_use_percent, more=True),
    Row("the late tenant's first start, s", lambda each: each.first_start_seconds),
    Row("its minimum held after, s", lambda each: each.minimum_seconds),
    Row("pods evicted", lambda each: each.evictions),
    Row("work lost, s", lambda each: each.lost_seconds),
    Row("pods started a second", lambda each: each.starts_a_second, more=True),
    Row("of a burst, pods started a second", lambda each: each.burst_a_second, more=True),
    Row("CPU of the scheduler, s", lambda each: each.scheduler_cpu_seconds),
    Row("CPU of API server, etcd, controllers, s", lambda each: each.plane_cpu_seconds),
)


def shares(played: Played) -> Iterator[str]:
    """Slots held over time, a line for each tenant, beside what it is entitled to at the end."""
    times = range(SHOWN_EVERY_SECONDS, int(played.ends) + 1, SHOWN_EVERY_SECONDS)
    samples = [sample(played, float(at) - 0.5) for at in times]
    yield f"    {'slots at second':<18}" + "".join(f"{at:>5}" for at in times) + "   entitled"
    for place, tenant in enumerate(played.tenants):
        cells = "".join(f"{each.held[place]:>5}" for each in samples)
        yield f"    {tenant:<18}{cells}{samples[-1].entitled[place]:>11.0f}"


def table(runs: Sequence[Played]) -> Iterator[str]:
    """Means ± half of Student's 95 % interval, and how Eclectus does beside each other one."""
    found: dict[str, list[Outcome]] = {}
    for each in sorted(runs, key=lambda run: run.pair):
        found.setdefault(each.contestant, []).append(outcome(each))
    names = sorted(found, key=lambda name: name != ECLECTUS)
    heads = [f"{name:>18}" for name in names] + [f"{f'beside {name}':>24}" for name in names[1:]]
    yield f"{'':<42}" + "".join(heads)
    for row in ROWS:
        values = {name: [row.read(each) for each in found[name]] for name in names}
        cells = [f"{cell(values[name]):>18}" for name in names]
        cells += [f"{verdict(row, values[names[0]], values[name]):>24}" for name in names[1:]]
        yield f"{row.title:<42}" + "".join(cells)


def cell(values: Sequence[float | None]) -> str:
    """The mean and its interval, of the runs that have the value."""
    known = [value for value in values if value is not None]
    if not known:
        return NEVER
    half = half_width(known)
    text = _number(fmean(known)) + ("" if half is None else f" ±{_number(half)}")
    return text if len(known) == len(values) else f"{text} ({len(known)} of {len(values)})"


def _number(value: float) -> str:
    return f"{value:.3f}" if abs(value) < 2 else f"{value:.1f}" if abs(value) < 100 else f"{value:.0f}"


def verdict(row: Row, ours: Sequence[float | None], theirs: Sequence[float | None]) -> str:
    """Whether Eclectus is ahead, by the interval of the differences pair by pair."""
    if len(ours) < LEAST_PAIRS:
        return FEW_PAIRS
    if None in ours or None in theirs:
        reached = [all(value is not None for value in values) for values in (ours, theirs)]
        never = [all(value is None for value in values) for values in (ours, theirs)]
        if reached[0] and never[1]:
            return WON
        return LOST if never[0] and reached[1] else NOT_COMPARED
    more = [(one or 0.0) - (other or 0.0) for one, other in zip(ours, theirs, strict=True)]
    return pairs.verdict(mean_interval(more), even=0.0, more_is_better=row.more)


def content(runs: Sequence[Played]) -> list[Mapping[str, object]]:
    """For report.json: the figures of each run, and its slots over time."""
    return [
        {
            "scheduler": each.contestant,
            "pair": each.pair,
            "strangers_cores": each.strangers_cores,
            **msgspec.to_builtins(outcome(each)),
            "samples": [msgspec.to_builtins(sample(each, float(at))) for at in range(int(each.ends))],
        }
        for each in runs
    ]
