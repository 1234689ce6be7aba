"""Label and taint values as integers, by Kubernetes' rules; Python's also allow `1_000` and spaces."""

from __future__ import annotations

import re

_INTEGER = re.compile(r"[+-]?[0-9]+")
_LEAST, _MOST = -(2**63), 2**63 - 1


def parse_integer(text: str) -> int | None:
    """The 64-bit integer that the text stands for; None if it stands for none."""
    if len(text) > 63 or not _INTEGER.fullmatch(text):  # no label value is longer
        return None
    number = int(text)
    return number if _LEAST <= number <= _MOST else None
