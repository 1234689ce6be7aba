"""Sets of task numbers as text, as the status of an Indexed Job writes them: `0-5,7`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_PART = re.compile(r"([0-9]{1,5})(?:-([0-9]{1,5}))?")


def parse(text: str, count: int) -> frozenset[int]:
    """The numbers below `count`. What is no number or range is left out: anybody may have written it."""
    matches = (_PART.fullmatch(part) for part in text.split(","))
    return frozenset(
        number
        for match in matches
        if match
        for number in range(int(match[1]), min(int(match[2] or match[1]) + 1, count))
    )


def written(numbers: Iterable[int]) -> str:
    """The numbers as text, in increasing order."""
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in _ranges(numbers))


def _ranges(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    """The longest ranges of consecutive numbers: first and last."""
    ordered = sorted(numbers)
    start = 0
    for at in range(1, len(ordered) + 1):
        if at == len(ordered) or ordered[at] != ordered[at - 1] + 1:
            yield ordered[start], ordered[at - 1]
            start = at
