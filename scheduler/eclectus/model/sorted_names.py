"""Names in a sorted tuple."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence


def contains(names: Sequence[str], name: str) -> bool:
    """Whether the name is one of these, which are sorted; there may be thousands."""
    at = bisect_left(names, name)
    return at < len(names) and names[at] == name
