"""What the share formulas start from: checked numbers, and demands relative to the dominant resource."""

from __future__ import annotations

import numpy as np

from eclectus.maths.numbers import Floats


def check_shares_input(demands: Floats, weights: Floats, capacity: Floats, most: Floats | None) -> None:
    """ValueError for a number that is negative or not finite (`most` may be inf), and for a weight of 0."""
    # A comparison with nan is false, so `not (all are in range)` finds it too.
    for name, values in (("demands", demands), ("capacity", capacity)):
        if not ((values >= 0.0).all() and (values < np.inf).all()):
            raise ValueError(f"{name} must be finite and not negative")
    if not ((weights > 0.0).all() and (weights < np.inf).all()):
        raise ValueError("weights must be finite and above 0")
    if most is not None and not (most >= 0.0).all():
        raise ValueError("what is useful must not be negative or nan")


def relative_demands(demands: Floats, capacity: Floats) -> Floats:
    """s of each job: its part of each resource, relative to its dominant one; shape [resources, jobs].

    0 for a resource without capacity, and for a job without demands.
    """
    per_unit = np.divide(1.0, capacity, out=np.zeros_like(capacity), where=capacity > 0.0)
    parts = np.ascontiguousarray(demands.T) * per_unit[:, None]
    dominant = parts.max(axis=0, initial=0.0)
    return np.asarray(np.divide(parts, dominant, out=np.zeros_like(parts), where=dominant > 0.0))
