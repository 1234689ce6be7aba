"""What each of sibling pools is entitled to of one resource: minimum shares and weights.

The formula of the Hadoop Fair Scheduler (Zaharia and others, "Job Scheduling for Multi-User MapReduce
Clusters", 2009). With the demand d, the minimum m and the weight w of each pool there is a level r with

    sum_i min(d_i, max(r w_i, min(m_i, d_i))) = min(total, sum_i d_i)

and the i-th term is the share of pool i. Hadoop doubles r and bisects it. The sum is linear between the
levels at which a pool begins or ends to grow, so here these are sorted, and r is exact.

Departures:
- minima that exceed the total together are scaled to it; Hadoop returns them in full. They are scaled as
  far as they are in demand, so that a minimum that nobody uses costs no sibling anything;
- a pool of weight 0 gets its minimum, and beyond it what the others leave, for which doubling r never ends.
"""

from collections.abc import Sequence


def level_shares(
    total: float, demands: Sequence[float], minima: Sequence[float], weights: Sequence[float]
) -> list[float]:
    """The share of each sibling, in the unit of the total; all three sequences have a number for each.

    Numbers are finite and not negative. O(n log n) for n siblings.
    """
    least = [min(demand, minimum) for demand, minimum in zip(demands, minima, strict=True)]
    guaranteed = sum(least)
    if guaranteed >= total:
        return [each * total / guaranteed if guaranteed else 0.0 for each in least]
    if sum(demands) <= total:
        return list(demands)
    level = _level(total, demands, least, weights)
    shares = [
        min(demand, max(level * weight, minimum)) if weight else minimum
        for demand, minimum, weight in zip(demands, least, weights, strict=True)
    ]
    left = total - sum(shares)
    idle = [at for at, weight in enumerate(weights) if not weight and shares[at] < demands[at]]
    if left > 0.0 and idle:  # the others have what they demand
        rest = left + sum(shares[at] for at in idle)
        some = level_shares(rest, [demands[at] for at in idle], [least[at] for at in idle], [1.0] * len(idle))
        for at, share in zip(idle, some, strict=True):
            shares[at] = share
    return shares


def _level(total: float, demands: Sequence[float], least: Sequence[float], weights: Sequence[float]) -> float:
    """The level at which the shares add up to the total; the highest, where demands are less than it."""
    changes = list[tuple[float, float]]()  # from this level on the sum grows so much faster
    for demand, minimum, weight in zip(demands, least, weights, strict=True):
        if weight and demand > minimum:
            changes += ((minimum / weight, weight), (demand / weight, -weight))
    level, given, slope = 0.0, sum(least), 0.0
    for at, change in sorted(changes):
        if given + slope * (at - level) >= total:
            break
        level, given, slope = at, given + slope * (at - level), slope + change
    return level + max(total - given, 0.0) / slope if slope > 0.0 else level
