"""The tables of a comparison: a row for each profile, with means and Student 95 % intervals over runs."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from msgspec.structs import astuple

from eclectus.sim.base import results

UNITS = (
    (864_000.0, 86_400.0, "d"),
    (36_000.0, 3600.0, "h"),
    (3600.0, 60.0, "min"),
    (0.1, 1.0, "s"),
    (1e-4, 1e-3, "ms"),
    (0.0, 1e-6, "µs"),
)  # least time in seconds, seconds per unit, name
QUANTITIES = ("mean", "median", "p90", "p99")  # what `times_cells` writes
NO_VALUE = "-"  # if no task or job has ended


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells; the first cell of a row is text, the others are numbers, or names of groups."""

    heads: list[str]
    rows: list[list[str]]


def format_interval(value: results.Interval, digits: int = 3, scale: float = 1.0) -> str:
    """`1.046 ±0.004`: digits according to the width of the interval."""
    mean = value.mean / scale
    if value.half_width is None:
        return f"{mean:,.0f}" if abs(mean) >= 10**digits else f"{mean:.{digits}g}"
    half = value.half_width / scale
    magnitude = int(f"{max(half, abs(mean) / 1000) or 1.0:e}".partition("e")[2])
    places = max(0, min(6, 1 - magnitude))
    return f"{mean:,.{places}f} ±{half:,.{places}f}"


def optional_cell(value: results.Interval | None, scale: float = 1.0) -> str:
    """The interval, or `NO_VALUE` if there is none."""
    return NO_VALUE if value is None else format_interval(value, scale=scale)


def times_cells(spread: results.TimeStatistics | None, scale: float) -> list[str]:
    """A cell for each of QUANTITIES; `scale`: seconds per unit."""
    if spread is None:
        return [NO_VALUE] * len(QUANTITIES)
    return [format_interval(value, scale=scale) for value in astuple(spread)]


def unit_for(seconds: float) -> tuple[float, str]:
    """Seconds per unit, and the name of the unit that suits this time."""
    return next(((size, name) for least, size, name in UNITS if seconds >= least), UNITS[-1][1:])


def scale_of(summaries: Sequence[results.ProfileSummary]) -> tuple[float, str]:
    """The same for all response times of the comparison."""
    means = [each.all.response.mean.mean for each in summaries if each.all.response is not None]
    return unit_for(min(means, default=1.0))


ALL = ("", "all")  # the group of all tasks or jobs


def group_tables(report: results.ComparisonReport) -> Iterator[Table]:
    """Tasks by group and the worst groups, if there are several; jobs, if they have several tasks."""
    groups = groups_of(report)
    if groups:
        yield _tasks_by_group(report, groups)
        yield _worst_groups(report)
    if has_jobs(report):
        heads = [f"response of jobs, {scale_of(report.summaries)[1]}", *QUANTITIES]
        yield _by_group(
            report, heads, [ALL, *groups], lambda figures, scale: times_cells(figures.jobs, scale)
        )


def groups_of(report: results.ComparisonReport) -> list[tuple[str, str]]:
    """Pairs of grouping and group, without groupings that have only one group."""
    found = {
        (name, label): None
        for each in report.summaries
        for name, some in each.groups.items()
        for label in some
    }
    return [pair for pair in found if sum(pair[0] == name for name, _ in found) > 1]


def has_jobs(report: results.ComparisonReport) -> bool:
    """Whether any job has several tasks."""
    return any(run.jobs.count != run.response.count for run in report.runs)


def _tasks_by_group(report: results.ComparisonReport, groups: Sequence[tuple[str, str]]) -> Table:
    """Responses, waits, and preferences met if any task has preferences."""
    prefers = any(each.all.met is not None for each in report.summaries)

    def cells(figures: results.Statistics, scale: float) -> list[str]:
        wait = times_cells(figures.wait, scale)
        met = [optional_cell(figures.met, scale=0.01)] if prefers else []
        return [*times_cells(figures.response, scale), wait[0], wait[-1], *met]

    what = f"response of tasks, {scale_of(report.summaries)[1]}"
    heads = [what, *QUANTITIES, "wait", "wait p99", *(["met, %"] if prefers else [])]
    return _by_group(report, heads, groups, cells)


def _by_group(
    report: results.ComparisonReport,
    heads: list[str],
    groups: Sequence[tuple[str, str]],
    cells: Callable[[results.Statistics, float], list[str]],
) -> Table:
    """Statistics by group, and by profile within a group; `cells` gets the seconds per unit of times."""
    scale, _ = scale_of(report.summaries)
    blank = [""] * (len(heads) - 1)
    rows = []
    for name, label in groups:
        rows.append([label, *blank])
        for each in report.summaries:
            figures = each.all if (name, label) == ALL else each.groups.get(name, {}).get(label)
            values = [NO_VALUE] * len(blank) if figures is None else cells(figures, scale)
            rows.append([f"  {each.profile}", *values])
    return Table(heads, rows)


def _worst_groups(report: results.ComparisonReport) -> Table:
    """Of each grouping the group that is delayed most in proportion to its size, by profile."""
    rows = []
    for name in {name: None for each in report.summaries for name in each.worst}:
        rows.append([name, "", ""])
        for each in report.summaries:
            worst = each.worst.get(name)
            if worst is not None:
                rows.append([f"  {each.profile}", worst.group, format_interval(worst.slowdown)])
    return Table(["slowest group in proportion to size", "group", "slowdown"], rows)


def dag_tables(summaries: Sequence[results.ProfileSummary]) -> Iterator[Table]:
    """Responses and fairness of jobs with stages, if all profiles have any."""
    found = [(each.profile, each.dags) for each in summaries if each.dags is not None]
    if not found or len(found) != len(summaries):
        return
    scale, unit = unit_for(min(dags.mean.mean for _, dags in found))
    times = (f"jobs with stages, {unit}", "mean", "median", "p95", "last end")
    compared = ("factor", "factor p50", "below 0.8, %") if len(found) > 1 else ()
    rows = []
    for at, (profile, dags) in enumerate(found):
        cells = [format_interval(each, scale=scale) for each in (dags.mean, dags.p50, dags.p95, dags.end)]
        if compared and at:
            cells += [optional_cell(dags.factor), optional_cell(dags.factor_p50)]
            cells.append(optional_cell(dags.losers, scale=0.01))
        elif compared:
            cells += ["1", "1", "0"]  # the baseline
        rows.append([profile, *cells])
    yield Table([*times, *compared], rows)
    shares = ("Jain", "x alone", "p95", "below 1/N", "above 1/N", "lost", "slips", "slipped, s")
    rows = []
    for profile, dags in found:
        amounts = (dags.unfairness, dags.unfairness_p95, dags.below_share, dags.above_share, dags.lost)
        moved = (dags.slips, dags.slip_seconds)
        rows.append([profile, optional_cell(dags.fairness), *map(format_interval, (*amounts, *moved))])
    yield Table(["sharing among jobs", *shares], rows)


def pool_tables(summaries: Sequence[results.ProfileSummary]) -> Iterator[Table]:
    """What each pool was entitled to and held, its waits, and Jain's index of all; none without pools."""
    found = [(each.profile, each.pools) for each in summaries if each.pools is not None]
    paths = {path: None for _, pools in found for path in pools.pools}
    if not paths:
        return
    waits = [each.wait.mean.mean for _, pools in found for each in pools.pools.values() if each.wait]
    scale, unit = unit_for(min((each for each in waits if each), default=1.0))
    heads = ("pools", "entitled, %", "held, %", "apart, %", f"wait, {unit}", "p99", f"first, {unit}")
    rows = list[list[str]]()
    for path in paths:
        rows.append([path, *[""] * (len(heads) - 1)])
        for profile, pools in found:
            if (each := pools.pools.get(path)) is not None:
                parts = (format_interval(part, scale=0.01) for part in (each.share, each.held, each.off))
                wait = times_cells(each.wait, scale)
                first = optional_cell(each.first_wait, scale)
                rows.append([f"  {profile}", *parts, wait[0], wait[-1], first])
    yield Table(list(heads), rows)
    rows = [
        [profile, optional_cell(pools.fairness), optional_cell(pools.fairness_least)]
        for profile, pools in found
    ]
    yield Table(["sharing among pools", "Jain", "least"], rows)


REQUESTED = (25, 50, 80, 90, 100, 110, 120, 130)  # per cent of capacity: columns of the allocation table


def text_lines(report: results.ComparisonReport) -> Iterator[str]:
    """The whole comparison as lines of text."""
    if report.about:
        yield report.about
    yield subtitle(report)
    for table in tables(report):
        yield ""
        yield from _columns([table.heads, *table.rows])
    yield from remarks(report.runs)


def subtitle(report: results.ComparisonReport) -> str:
    """The load, the number of measured tasks, and the meaning of ±."""
    load = ""
    if report.load is not None:
        load = f"load {'' if report.load_is_exact else 'at least '}{report.load:.2f}, "
    counts = [run.tasks if report.shows_allocation else run.response.count for run in report.runs]
    what = "tasks" if report.shows_allocation else "measured tasks"
    runs = max(each.runs for each in report.summaries)
    many = f"mean ± half of the 95 % interval over {runs} runs"
    return f"{load}{fmean(counts):,.0f} {what} a run; {many if runs > 1 else 'one run, so no intervals'}"


def how_to_read(report: results.ComparisonReport) -> str:
    """What the colours of a picture are, and which way is better."""
    if report.shows_allocation:
        return (
            "each colour is one profile, all profiles got the same pods, and its curve shows the allocated "
            "share of the resource by the requested share; higher is better."
        )
    return (
        "each colour is one profile, all profiles ran the same jobs, and lower is better for response times, "
        "waits, slowdown, tasks in the system and learning error; in a distribution of times the curve "
        "further to the left is better."
    )


def tables(report: results.ComparisonReport) -> Iterator[Table]:
    """All tasks; then tasks by group, if there are several, and jobs by group, if jobs have several tasks.

    If tasks never end, only the allocation table.
    """
    if report.shows_allocation:
        yield _allocation_table(report)
        return
    yield _overview(report.summaries)
    yield from dag_tables(report.summaries)
    yield from pool_tables(report.summaries)
    yield from group_tables(report)


def remarks(runs: Sequence[results.RunResult]) -> Iterator[str]:
    """Notes on incomplete runs and on faults of policies."""
    for run in runs:
        who = f"note: {run.profile}, seed {run.seed}"
        if not run.complete:
            yield f"{who}: stopped after {run.tasks:,} tasks; results cover those that had ended"
        if run.faults:
            yield f"{who}: {run.faults} invalid actions of a policy; first: {run.first_fault}"


def _overview(summaries: Sequence[results.ProfileSummary]) -> Table:
    """A row for each profile; a column that no profile has a value for is left out."""
    scale, unit = scale_of(summaries)
    found: list[tuple[str, list[results.Interval | None], float]] = [
        ("preferences met, %", [each.all.met for each in summaries], 0.01),
        ("at data, %", [each.locality for each in summaries], 0.01),
        ("across racks, GB", [each.across_gigabytes for each in summaries], 1.0),
        ("probes, %", [each.probe_share for each in summaries], 0.01),
        ("evictions", [each.evictions for each in summaries], 1.0),
    ]
    more = [column for column in found if any(column[1])]
    times = [f"{name}, {unit}" for name in ("response", "median", "p99", "wait")]
    heads = ["profile", *times, "slowdown", "in system", "slots, %", *(head for head, _, _ in more)]
    rows = []
    for at, each in enumerate(summaries):
        mean, median, _, p99 = times_cells(each.all.response, scale)
        numbers = [optional_cell(each.all.slowdown), format_interval(each.in_system_mean)]
        numbers.append(format_interval(each.utilisation, scale=0.01))
        numbers += [optional_cell(values[at], per_unit) for _, values, per_unit in more]
        rows.append([each.profile, mean, median, p99, times_cells(each.all.wait, scale)[0], *numbers])
    return Table(heads, rows)


def requested_columns(summaries: Sequence[results.ProfileSummary]) -> list[int]:
    """The per cents of requests of which all profiles have an allocation."""
    return [x for x in REQUESTED if all(x in each.allocation for each in summaries)]


def _allocation_table(report: results.ComparisonReport) -> Table:
    shown = requested_columns(report.summaries)
    rows = []
    for each in report.summaries:
        allocated = (format_interval(each.allocation[x], digits=4) for x in shown)
        rows.append([each.profile, format_interval(each.dropped, digits=6), *allocated])
    return Table(["allocated, %, by requested, %", "dropped", *map(str, shown)], rows)


def _columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    for row in rows:
        numbers = (cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))
        yield "  ".join([row[0].ljust(widths[0]), *numbers]).rstrip()
