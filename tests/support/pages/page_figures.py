"""Figures of pages, with their intervals, and whether one is another with fewer digits."""

from __future__ import annotations

import re
from typing import NamedTuple

NUMBER = r"(?<![\w.,])\d*\.\d+"
FIGURE = re.compile(
    rf"(?P<mean>{NUMBER})(?: ±(?P<half>\d*\.?\d+)|(?: \(| \| )(?P<least>{NUMBER}) to (?P<most>{NUMBER}))?"
)


class Figure(NamedTuple):
    """A mean, and its interval if it has one: half of its width, or both ends."""

    text: str
    parts: tuple[str | None, ...]

    def is_in(self, page: list[Figure]) -> bool:
        """Whether the page has it with the same interval, rounded to these digits."""
        return any(all(map(_rounds_to, self.parts, each.parts)) for each in page)


def _rounds_to(quoted: str | None, found: str | None) -> bool:
    if quoted is None or found is None:
        return quoted is None
    digits = len(quoted.partition(".")[2])
    return abs(float(quoted) - float(found)) <= 0.5 * 10.0**-digits + 1e-9


def figures(text: str) -> list[Figure]:
    plain = re.sub(r"`[^`\n]*`|\]\([^)]*\)|\*\*|arXiv [\d.]+", "", text)
    return [Figure(each[0], each.groups()) for each in FIGURE.finditer(plain)]
