"""A comparison that `eclectus simulate --json` has written, as a panel of the page shows it.

Its tables are those that the command prints. Its charts have, for each profile, a dot with its interval.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import ValidationError
from msgspec.json import Decoder

from eclectus.api.common import NOT_JSON, read_json
from eclectus.model.errors import SettingsError
from eclectus.sim.base.results import FORMAT, ComparisonReport, Interval
from eclectus.sim.report.tables import (
    format_interval,
    remarks,
    requested_columns,
    scale_of,
    subtitle,
    tables,
    unit_for,
)

Object = dict[str, Any]
WRITTEN_BY = "`eclectus simulate SCENARIO --json FILE` writes what can be shown"
_DECODER = Decoder(ComparisonReport)


def read_comparison(file: Path) -> Object:
    """What the panel shows of a file. Raises SettingsError with what is wrong with it, and OSError."""
    try:
        return shown(read_json(_DECODER.decode, file.read_bytes()))
    except ValidationError as error:
        problem, _, path = str(error).partition(" - at `$")
        field = path.rstrip("`").lstrip(".")
        if field == "format":
            problem = f"the file is of another version of eclectus: only format {FORMAT} is read"
        where = f"{file}: {field}" if field else str(file)
        raise SettingsError(where, f"{problem}; {WRITTEN_BY}") from error
    except NOT_JSON as error:
        raise SettingsError(str(file), f"not valid JSON: {error}; {WRITTEN_BY}") from error
    except (ArithmeticError, LookupError, ValueError) as error:
        raise SettingsError(str(file), f"its results do not fit together: {error}; {WRITTEN_BY}") from error


def shown(report: ComparisonReport) -> Object:
    """What the panel shows. Raises ValueError, or other errors, where the report contradicts itself."""
    if not report.summaries or not report.runs:
        raise ValueError("no run has ended")
    drawn = (_drawn(each, report.profiles) for each in figures(report))
    failed = [f"failed: {each.profile}, seed {each.seed}: {each.reason}" for each in report.failures]
    return {
        "scenario": report.scenario,
        "about": report.about,
        "subtitle": f"{subtitle(report)}; by eclectus {report.eclectus}",
        "figures": [each for each in drawn if each["values"]],
        "tables": [{"heads": each.heads, "rows": each.rows} for each in tables(report)],
        "notes": [*remarks(report.runs), *failed],
    }


class Figure(NamedTuple):
    """One chart: a value of each profile, in the order of the profiles. `scale`: of its unit."""

    name: str
    values: Sequence[Interval | None]
    scale: float = 1.0
    better: str = "lower"


def figures(report: ComparisonReport) -> Iterator[Figure]:
    """What is drawn: the most important columns of the tables."""
    some = report.summaries
    if report.shows_allocation:
        for x in requested_columns(some):
            allocated = [each.allocation[x] for each in some]
            yield Figure(f"Allocated where {x} % is requested, %", allocated, better="higher")
        return
    scale, unit = scale_of(some)
    responses, waits = [each.all.response for each in some], [each.all.wait for each in some]
    yield Figure(f"Mean response, {unit}", [each.mean if each else None for each in responses], scale)
    yield Figure(f"Median response, {unit}", [each.p50 if each else None for each in responses], scale)
    yield Figure(
        f"99th percentile of responses, {unit}", [each.p99 if each else None for each in responses], scale
    )
    yield Figure(f"Mean wait, {unit}", [each.mean if each else None for each in waits], scale)
    if any(each.all.met for each in some):
        yield Figure("Preferences met, %", [each.all.met for each in some], 0.01, "higher")
    jobs = [each.dags.mean if each.dags else None for each in some]
    if means := [each.mean for each in jobs if each]:
        scale, unit = unit_for(min(means))
        yield Figure(f"Mean completion of jobs with stages, {unit}", jobs, scale)


def _drawn(figure: Figure, profiles: Sequence[str]) -> Object:
    pairs = zip(profiles, figure.values, strict=True)
    values = [_dot(profile, value, figure.scale) for profile, value in pairs if value is not None]
    return {"name": f"{figure.name}: {figure.better} is better", "values": values}


def _dot(profile: str, value: Interval, scale: float) -> Object:
    mean, half = value.mean / scale, (value.half_width or 0.0) / scale
    low, high = mean - half, mean + half
    if not (isfinite(low) and isfinite(high)):
        raise ValueError(f"{value.mean:g} ± {half:g} is beyond what can be drawn")
    text = format_interval(value, scale=scale)
    return {"profile": profile, "mean": mean, "low": low, "high": high, "text": text}
