"""The table of `eclectus speeds`: speeds relative to the typical node, by class of work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from math import inf
from statistics import median
from typing import Any

from msgspec.structs import replace

from eclectus.api.node_profile import LastProbe, NodeProfile
from eclectus.cli.columns import ABSENT, age, aligned
from eclectus.model.workload_names import concerns

CLASSES_SHOWN = 4  # in the plain table; `-o wide` shows all

Row = dict[str, Any]


def limited(profile: NodeProfile, namespace: str) -> NodeProfile:
    """The profile with the classes of one namespace and the shared ones."""
    classes = tuple(each for each in profile.status.classes if concerns(each.name, namespace))
    return replace(profile, status=replace(profile.status, classes=classes))


def rows(profiles: Sequence[NodeProfile], only_class: str = "", nodes: Sequence[str] = ()) -> list[Row]:
    """One mapping per node, the slowest first and those of which nothing is known last.

    `relative`: the rate over the median rate of the class. `nodes` may name nodes without a NodeProfile.
    """
    medians = _medians(profiles)
    found = {name: _unknown(name) for name in nodes}
    for profile in profiles:
        name, last_probe = profile.metadata.name, profile.status.last_probe
        is_known = profile.status.epoch > 0
        found[name] = _row(profile, medians, only_class) if is_known else _unknown(name, last_probe)
    return sorted(found.values(), key=lambda row: (_speed(row, only_class), row["node"]))


def table(found: Sequence[Row], now: datetime, *, wide: bool = False) -> Iterator[str]:
    """The lines of a table in columns, without trailing blanks."""
    names = _class_names(found)
    shown = names if wide else names[:CLASSES_SHOWN]
    prices = ["PRICE"] if wide else []
    heads = ["NODE", "SPEED", "STATE", "CONFIDENCE", "SAMPLES", *prices, *shown, "LAST SEEN", "LAST PROBE"]
    cells = [heads, *(_cells(row, shown, now, wide) for row in found)]
    yield from aligned(cells)
    if len(names) > len(shown):
        yield f"({len(names) - len(shown)} more classes: -o wide, or --class NAME)"


def _row(profile: NodeProfile, medians: dict[str, float], only_class: str) -> Row:
    status = profile.status
    return {
        "node": profile.metadata.name,
        "speed": status.speed,
        "state": status.state,
        "confidence": status.confidence,
        "samples": sum(each.samples for each in status.classes),
        "price": status.price,
        "observedTime": _moment(status.observed_time),
        "lastProbe": _probe(status.last_probe),
        "classes": {
            each.name: {
                "rate": each.rate,
                "relative": each.rate / medians[each.name] if medians[each.name] else 0.0,
                "samples": each.samples,
                "confidence": each.confidence,
                "price": each.price,
            }
            for each in status.classes
            if only_class in ("", each.name)
        },
    }


def _unknown(node: str, last_probe: LastProbe | None = None) -> Row:
    """The row of a node without samples."""
    return {
        "node": node,
        "speed": None,
        "state": "Unknown",
        "confidence": None,
        "samples": 0,
        "price": None,
        "observedTime": None,
        "lastProbe": _probe(last_probe),
        "classes": {},
    }


def _probe(last: LastProbe | None) -> Row | None:
    return None if last is None else {"endedTime": _moment(last.ended_time), "reason": last.reason}


def _medians(profiles: Sequence[NodeProfile]) -> dict[str, float]:
    rates: dict[str, list[float]] = {}
    for profile in profiles:
        for each in profile.status.classes:
            rates.setdefault(each.name, []).append(each.rate)
    return {name: median(found) for name, found in rates.items()}


def _speed(row: Row, only_class: str) -> float:
    speed = row["classes"].get(only_class, {}).get("relative") if only_class else row["speed"]
    return inf if speed is None else float(speed)


def _class_names(found: Sequence[Row]) -> list[str]:
    """All classes of work, those with the most samples first."""
    samples: dict[str, int] = {}
    for row in found:
        for name, each in row["classes"].items():
            samples[name] = samples.get(name, 0) + each["samples"]
    return sorted(samples, key=lambda name: (-samples[name], name))


def _cells(row: Row, shown: Sequence[str], now: datetime, wide: bool) -> list[str]:
    classes = row["classes"]
    price = ABSENT if row["price"] is None else f"{row['price']:.2f}"
    relative = [_relative(classes[name], wide) if name in classes else ABSENT for name in shown]
    probe = row["lastProbe"]
    return [
        row["node"],
        ABSENT if row["speed"] is None else f"{row['speed']:.2f}",
        row["state"],
        ABSENT if row["confidence"] is None else f"{row['confidence']:.0%}",
        str(row["samples"]),
        *([price] if wide else []),
        *relative,
        age(row["observedTime"], now),
        f"{age(probe['endedTime'], now)} {probe['reason']}".strip() if probe else ABSENT,
    ]


def _relative(of_class: Row, wide: bool) -> str:
    price = f" x{of_class['price']:.1f}" if wide and of_class["price"] is not None else ""
    return f"{of_class['relative']:.2f}{price}"


def _moment(at: datetime | None) -> str | None:
    return None if at is None else at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
