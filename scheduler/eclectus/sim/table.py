"""The table a person reads: one line a profile, means and Student 95 % intervals over runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eclectus.sim.compare import interval
from eclectus.sim.results import Interval, Report, Run, Summary

UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))


def lines(report: Report) -> Iterator[str]:
    """The whole of it."""
    load = (
        ""
        if report.load is None
        else f"load {'' if report.load_is_exact else 'at least '}{report.load:.2f}, "
    )
    measured = sum(run.response.count for run in report.runs) / max(len(report.runs), 1)
    if report.about:
        yield report.about
    yield f"{load}{measured:,.0f} measured tasks a run; mean ± half of the 95 % interval over runs"
    yield ""
    yield from _columns(
        [_heads(report.summaries), *(_row(each, report.summaries) for each in report.summaries)]
    )
    yield from _classes(report)
    yield from _remarks(report.runs)


def spelled(value: Interval, digits: int = 3, scale: float = 1.0) -> str:
    """`1.046 ±0.004`: as many digits as the interval deserves."""
    mean = value.mean / scale
    if value.half_width is None:
        return f"{mean:.{digits}g}"
    half = value.half_width / scale
    places = max(0, min(6, 1 - _magnitude(half or mean / 10 or 1.0)))
    return f"{mean:,.{places}f} ±{half:,.{places}f}"


def unit_for(seconds: float) -> tuple[float, str]:
    """The unit in which a time reads well."""
    return next(((size, name) for size, name in UNITS if seconds >= size * 0.1), UNITS[-1])


def _magnitude(value: float) -> int:
    return int(f"{abs(value):e}".partition("e")[2])


def _scale(summaries: Sequence[Summary]) -> tuple[float, str]:
    return unit_for(min(each.response_mean.mean for each in summaries))


def _heads(summaries: Sequence[Summary]) -> list[str]:
    unit = _scale(summaries)[1]
    times = [f"{name}, {unit}" for name in ("response", "median", "p99", "wait")]
    return ["profile", "runs", *times, "slowdown", "in system", "slots used"]


def _row(each: Summary, every: Sequence[Summary]) -> list[str]:
    scale = _scale(every)[0]
    times = [each.response_mean, each.response_p50, each.response_p99, each.wait_mean]
    return [
        each.profile,
        str(each.runs),
        *(spelled(value, scale=scale) for value in times),
        spelled(each.slowdown),
        spelled(each.in_system_mean),
        spelled(each.utilisation, scale=0.01) + " %",
    ]


def _columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    for row in rows:
        cells = [
            row[0].ljust(widths[0]),
            *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)),
        ]
        yield "  ".join(cells).rstrip()


def _classes(report: Report) -> Iterator[str]:
    """Mean and p99 response by class, where there is more than one."""
    names = sorted({name for run in report.runs for name in run.classes})
    if len(names) < 2:
        return
    scale, unit = _scale(report.summaries)
    heads = [f"{name} {what}, {unit}" for what in ("mean", "p99") for name in names]
    rows = [["response by class", *heads]]
    for each in report.summaries:
        runs = [run for run in report.runs if run.profile == each.profile]
        times = [[run.classes[name].response for run in runs if name in run.classes] for name in names]
        means = [interval([one.mean for one in some]) if some else None for some in times]
        tails = [interval([one.p99 for one in some]) if some else None for some in times]
        cells = ("-" if value is None else spelled(value, scale=scale) for value in means + tails)
        rows.append([each.profile, *cells])
    yield ""
    yield from _columns(rows)


def _remarks(runs: Sequence[Run]) -> Iterator[str]:
    """What must not be overlooked."""
    for run in runs:
        who = f"note: {run.profile}, seed {run.seed}"
        if not run.complete:
            yield f"{who}: stopped after {run.tasks:,} tasks; its figures are of those that had ended"
        if run.faults:
            yield f"{who}: {run.faults} faults of a policy; first: {run.first_fault}"
