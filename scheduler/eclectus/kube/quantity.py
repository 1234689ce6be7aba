"""Kubernetes quantities (`250m`, `1.5Gi`, `12e6`) as whole numbers of thousandths.

The grammar is that of apimachinery's `resource` package: digits with an optional point, then a
binary suffix (Ki..Ei), a decimal one (n u m k M G T P E) or an exponent. The API server rounds every
resource list up to thousandths when it stores it, so thousandths lose nothing and sums stay exact;
rounding to whole bytes happens once, at the end (requests.py).
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from functools import lru_cache

MOST = 2**53 - 1
"""The largest amount counted exactly (cluster/resources.py keeps amounts as float64): 8 PiB less one byte."""

_FORM = re.compile(r"([+-]?)([0-9]+\.?[0-9]*|\.[0-9]+)([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]{1,2})?")
_LONGEST = 64  # characters; a longer text is an attack or an accident, never an amount

_DECIMAL = {
    suffix: Fraction(10) ** power
    for suffix, power in zip("numkMGTPE", (-9, -6, -3, 3, 6, 9, 12, 15, 18), strict=True)
}
_BINARY = {f"{letter}i": Fraction(1024) ** power for power, letter in enumerate("KMGTPE", start=1)}
_SUFFIXES = {"": Fraction(1), **_DECIMAL, **_BINARY}


@lru_cache(maxsize=8192)  # a cluster writes the same few hundred texts over and over
def thousandths(text: str) -> int:
    """The quantity in thousandths of its unit, rounded up. Raises ValueError for what is no amount."""
    found = _FORM.fullmatch(text) if len(text) <= _LONGEST else None
    if found is None:
        raise ValueError(f"{text[:_LONGEST]!r} is not a quantity such as 250m, 2 or 1.5Gi")
    sign, digits, suffix = found.group(1), found.group(2), found.group(3) or ""
    factor = _SUFFIXES.get(suffix)
    if factor is None:
        factor = Fraction(10) ** int(suffix[1:])
    amount = math.ceil(Fraction(digits) * factor * 1000)
    if sign == "-" and amount:
        raise ValueError(f"{text!r} is negative; amounts start at 0")
    return amount


def units(amount: int) -> int:
    """Thousandths as whole units, rounded up."""
    return -(-amount // 1000)
