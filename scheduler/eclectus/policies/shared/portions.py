"""Amounts by resource beside what somebody is entitled to, for Orders that share the cluster."""

from __future__ import annotations

from math import log2

Vector = tuple[float, ...]
"""Amounts by resource, in an order that its owner knows."""


def used_part(usage: Vector, share: Vector) -> float:
    """How much of a share is used: the largest part of any resource that the share has."""
    return max((used / most for used, most in zip(usage, share, strict=True) if most), default=0.0)


def added(one: Vector, other: Vector) -> Vector:
    """The sum of two vectors."""
    return tuple(map(float.__add__, one, other))


def magnitude(amount: float) -> int:
    """Equal for amounts that differ by less than a fifth or so: shares follow these, and not every pod."""
    return round(4.0 * log2(1.0 + amount))
