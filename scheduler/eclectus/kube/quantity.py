"""Kubernetes quantities (`250m`, `1.5Gi`, `12e6`) as whole numbers of thousandths.

The grammar is that of apimachinery's package `resource`: digits with an optional point, then a binary
suffix (Ki..Ei), a decimal suffix (n u m k M G T P E) or an exponent. The API server rounds resource lists
up to thousandths when it stores them, so thousandths lose nothing and sums are exact. Amounts are rounded
to whole bytes once, at the end (requests.py).

The API server stores many quantities as they were written: `0064`, `64e000`, `64e4294967296` (an exponent
counts modulo 2**32) are 64 cores to a kubelet. They must be read as it reads them, or a pod would take room
that nobody counts; and the work must not grow with the exponent.
"""

from __future__ import annotations

import re
from functools import lru_cache

MOST = 2**53 - 1
"""The largest amount that is counted exactly, because cluster/ stores amounts as float64: 8 PiB - 1 byte."""

BEYOND_MOST = MOST + 1
"""Stands for every larger amount, and is exact as float64 too."""

_FORM = re.compile(
    r"([+-]?)(?=\.?[0-9])([0-9]*+)(?:\.([0-9]*+))?"
    r"([numkMGTPE]|[KMGTPE]i|[eE]([+-]?)(?=[0-9])0*+([0-9]{0,19}))?"
)
_SHORT = 64  # characters: of a text that is cached, and of one that a message shows
_MAX_DIGITS = 64  # that are read, the first ones; those after them only round up
_MAX_PLACES = 40  # digits of units before the point; an amount with more counts as `_HUGE`
_HUGE: int = 10 ** (_MAX_PLACES + 3)

_POWERS = dict(zip("numkMGTPE", (-9, -6, -3, 3, 6, 9, 12, 15, 18), strict=True))
_FACTORS = {f"{letter}i": 1024**power for power, letter in enumerate("KMGTPE", start=1)}


def thousandths(text: str) -> int:
    """The quantity in thousandths of its unit, rounded up. Raises ValueError if it is no valid amount.

    Exact below 1e40 units; a larger amount is some number that is not below that.
    """
    return _cached(text) if len(text) <= _SHORT else _parse(text)


def units(amount: int) -> int:
    """Thousandths as whole units, rounded up."""
    return -(-amount // 1000)


def _parse(text: str) -> int:
    found = _FORM.fullmatch(text)
    if found is None:
        raise ValueError(f"{text[:_SHORT]!r} is not a quantity such as 250m, 2 or 1.5Gi")
    sign, whole, fraction, suffix, exponent_sign, exponent = found.groups(default="")
    power = _wrapped(int(exponent_sign + exponent)) if exponent else _POWERS.get(suffix, 0)
    amount = _scaled(whole + fraction, power - len(fraction) + 3, _FACTORS.get(suffix, 1))
    if sign == "-" and amount:
        raise ValueError(f"{text[:_SHORT]!r} is negative; it must be 0 or more")
    return amount


# A cluster uses the same few hundred quantities again and again. Long ones are not cached: a pod may have one
# of a megabyte.
_cached = lru_cache(maxsize=8192)(_parse)


def _wrapped(exponent: int) -> int:
    """The lowest 32 bits, signed: what apimachinery keeps of an exponent."""
    return (exponent + 2**31) % 2**32 - 2**31


def _scaled(digits: str, power: int, factor: int) -> int:
    """digits * 10**power * factor, rounded up."""
    digits = digits.lstrip("0")
    places = len(digits) + power
    if not digits or places < -_MAX_PLACES:
        return int(bool(digits))
    if places > _MAX_PLACES + 3:
        return _HUGE
    rest = digits[_MAX_DIGITS:]
    number = (int(digits[:_MAX_DIGITS]) + bool(rest.strip("0"))) * factor
    power += len(rest)
    if power >= 0:
        return number * int(10**power)
    return -(-number // int(10**-power))
