"""How answers are printed: tables in columns, JSON and YAML, and ages as kubectl prints them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime

import yaml

ABSENT = "-"
MESSAGE_CHARACTERS = 100  # of a message in a table; `-o wide` shows all


def structured(value: object, output: str) -> str:
    """The value as `json` or `yaml`."""
    if output == "json":
        return json.dumps(value, indent=2)
    return str(yaml.safe_dump(value, sort_keys=False)).rstrip("\n")


def shortened(text: str, wide: bool) -> str:
    """A message for a table."""
    return text if wide or len(text) <= MESSAGE_CHARACTERS else text[: MESSAGE_CHARACTERS - 1] + "…"


def aligned(lines: Sequence[Sequence[str]]) -> Iterator[str]:
    """The lines of cells in columns, without trailing blanks."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        yield "   ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()


def age(moment: str | None, now: datetime) -> str:
    """The time since an RFC 3339 moment: 45s, 12m, 5h, 3d."""
    if moment is None:
        return ABSENT
    return span(max((now - datetime.fromisoformat(moment)).total_seconds(), 0.0))


def span(seconds: float) -> str:
    """A duration in one unit: 45s, 12m, 5h, 3d."""
    for unit, length in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f}{unit}"
    return f"{seconds:.0f}s"
