"""Kubernetes quantities (`250m`, `1.5Gi`, `12e6`) as whole numbers of thousandths.

The grammar is that of apimachinery's package `resource`: digits with an optional point, then a binary
suffix (Ki..Ei), a decimal suffix (n u m k M G T P E) or an exponent. The API server rounds resource lists
up to thousandths when it stores them, so thousandths lose nothing and sums are exact. Amounts are rounded
to whole bytes once, at the end (requests.py).
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from functools import lru_cache

MOST = 2**53 - 1
"""The largest amount that is counted exactly, because cluster/ stores amounts as float64: 8 PiB - 1 byte."""

BEYOND_MOST = MOST + 1
"""Stands for every larger amount, and is exact as float64 too."""

_FORM = re.compile(r"([+-]?)([0-9]+\.?[0-9]*|\.[0-9]+)([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]{1,2})?")
_MAX_LENGTH = 64  # characters; no valid quantity is longer

_DECIMAL = {
    suffix: Fraction(10) ** power
    for suffix, power in zip("numkMGTPE", (-9, -6, -3, 3, 6, 9, 12, 15, 18), strict=True)
}
_BINARY = {f"{letter}i": Fraction(1024) ** power for power, letter in enumerate("KMGTPE", start=1)}
_SUFFIXES = {"": Fraction(1), **_DECIMAL, **_BINARY}


@lru_cache(maxsize=8192)  # a cluster uses the same few hundred quantities again and again
def thousandths(text: str) -> int:
    """The quantity in thousandths of its unit, rounded up. Raises ValueError if it is no valid amount."""
    found = _FORM.fullmatch(text) if len(text) <= _MAX_LENGTH else None
    if found is None:
        raise ValueError(f"{text[:_MAX_LENGTH]!r} is not a quantity such as 250m, 2 or 1.5Gi")
    sign, digits, suffix = found.group(1), found.group(2), found.group(3) or ""
    factor = _SUFFIXES.get(suffix)
    if factor is None:
        factor = Fraction(10) ** int(suffix[1:])
    amount = math.ceil(Fraction(digits) * factor * 1000)
    if sign == "-" and amount:
        raise ValueError(f"{text!r} is negative; it must be 0 or more")
    return amount


def units(amount: int) -> int:
    """Thousandths as whole units, rounded up."""
    return -(-amount // 1000)
