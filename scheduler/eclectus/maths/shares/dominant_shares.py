"""Dominant resource fairness (DRF) in closed form: what each of many jobs is entitled to.

Ghodsi and others, "Dominant Resource Fairness", NSDI 2011; the closed form is that of Parkes, Procaccia,
Shah, "Beyond Dominant Resource Fairness", EC 2012. With d_k what job k demands, R the capacity, w_k weights:

    s_k = (d_k / R) / max_r (d_k,r / R_r)           what it demands, relative to its dominant resource
    lam = 1 / max_r sum_k w_k s_k,r                 the level at which the first resource is used up
    A_k = w_k lam s_k R

One level for all is not Pareto efficient where some demand nothing of the resource that is used up. So those
who demand it stop at that level, and the others go on to the level at which the next resource is used up.

Departure: a job gets of each resource at most what is useful to it, and goes on with the others: the
direction is that of all its remaining work, and its current stages may need another mix. What it leaves is
divided among the others.

More nodes may shrink a share. So may another job that ends, if some demand nothing of a resource.
"""

from __future__ import annotations

import numpy as np

from eclectus.maths.numbers import Floats
from eclectus.maths.shares.numbers import check_shares_input, relative_demands


def dominant_shares(demands: Floats, weights: Floats, capacity: Floats, most: Floats | None = None) -> Floats:
    """What each job is entitled to, in the unit of the capacity, shape [jobs, resources].

    `demands` [jobs, resources]: only their direction counts; a job without demands gets nothing. `weights`
    [jobs], above 0. `capacity` [resources]; of a resource without capacity nobody gets anything. `most`
    [jobs, resources]: what is useful to a job; None: no bound. Sums are exact to about 1e-12 of the capacity.
    ValueError for a number that is negative or not finite (`most` may be inf).
    """
    check_shares_input(demands, weights, capacity, most)
    rates = relative_demands(demands, capacity) * weights * capacity[:, None]
    bounds = np.full(rates.shape, np.inf) if most is None else np.ascontiguousarray(most.T)
    return np.ascontiguousarray(_filled(rates, capacity, bounds).T)


def _filled(rates: Floats, capacity: Floats, bounds: Floats) -> Floats:
    """Raise the level of all from 0; `rates` [resources, jobs], of a unit of the level, is changed.

    Each pass takes the level that would use up a resource if nobody else reached a bound. Who is beyond a
    bound there gets the bound; if nobody is, who demands that resource stops. As bounds only leave more to
    the others, the level never exceeds the right one, and each pass ends something: a bound or a resource.
    """
    shares = np.zeros_like(rates)
    free = capacity.astype(float)
    while True:
        totals = rates.sum(axis=1)
        wanted = totals > 0.0
        if not wanted.any():
            return shares
        levels = np.divide(free, totals, out=np.full_like(free, np.inf), where=wanted)
        scarcest = int(levels.argmin())
        level = max(float(levels[scarcest]), 0.0)
        reached = rates * level
        bounded = (reached > bounds) & (rates > 0.0)
        if bounded.any():
            stopping, amounts = bounded, bounds
        else:
            stopping, amounts = (rates > 0.0) & (rates[scarcest] > 0.0), reached
        np.copyto(shares, amounts, where=stopping)
        free -= np.where(stopping, amounts, 0.0).sum(axis=1)
        rates[stopping] = 0.0
