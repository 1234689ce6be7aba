"""What each job or pool is entitled to of several resources."""

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from eclectus.maths.numbers import Floats

LEAST_PART = 1e-30  # of a dominant demand: levels are divided by less and less of it, and would overflow


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

    0 for a resource without capacity, for a job without demands, and for a part below LEAST_PART.
    """
    per_unit = np.divide(1.0, capacity, out=np.zeros_like(capacity), where=capacity > 0.0)
    parts = np.ascontiguousarray(demands.T) * per_unit[:, None]
    dominant = parts.max(axis=0, initial=0.0)
    relative = np.divide(parts, dominant, out=np.zeros_like(parts), where=dominant > 0.0)
    return np.where(relative < LEAST_PART, 0.0, relative)


# Dominant resource fairness (DRF) in closed form: what each of many jobs is entitled to.
#
# Ghodsi and others, "Dominant Resource Fairness", NSDI 2011; the closed form is that of Parkes, Procaccia,
# Shah, "Beyond Dominant Resource Fairness", EC 2012. With d_k what job k demands, R the capacity, w_k
# weights:
#
#     s_k = (d_k / R) / max_r (d_k,r / R_r)           what it demands, relative to its dominant resource
#     lam = 1 / max_r sum_k w_k s_k,r                 the level at which the first resource is used up
#     A_k = w_k lam s_k R
#
# One level for all is not Pareto efficient where some demand nothing of the resource that is used up. So
# jobs that demand it stop at that level, and the others go on to the level at which the next resource is used
# up.
#
# Departure: a job gets of each resource at most what is useful to it, and goes on with the others: the
# direction is that of all its remaining work, and its current stages may need another mix. What it leaves is
# divided among the others.
#
# More nodes may shrink a share. So may another job that ends, if some demand nothing of a resource.


def dominant_shares(demands: Floats, weights: Floats, capacity: Floats, most: Floats | None = None) -> Floats:
    """What each job is entitled to, in the unit of the capacity, shape [jobs, resources].

    `demands` [jobs, resources]: only their direction counts; a job without demands gets nothing. `weights`
    [jobs], above 0. `capacity` [resources]; of a resource without capacity no job gets anything. `most`
    [jobs, resources]: what is useful to a job; None: no bound. Sums are exact to about 1e-12 of the capacity.
    ValueError for a number that is negative or not finite (`most` may be inf).
    """
    check_shares_input(demands, weights, capacity, most)
    rates = relative_demands(demands, capacity) * weights * capacity[:, None]
    bounds = np.full(rates.shape, np.inf) if most is None else np.ascontiguousarray(most.T)
    return np.ascontiguousarray(_filled(rates, capacity, bounds).T)


def _filled(rates: Floats, capacity: Floats, bounds: Floats) -> Floats:
    """Raise the level of all from 0; `rates` [resources, jobs], of a unit of the level, is changed.

    Each pass takes the level that would use up a resource if no job reached a bound. A job that is beyond a
    bound there gets the bound; if none is, the jobs that demand that resource stop. As bounds only leave more
    to the others, the level never exceeds the right one, and each pass ends something: a bound or a resource.
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
        reached = rates * max(float(levels[scarcest]), 0.0)
        bounded = (reached > bounds) & (rates > 0.0)
        if bounded.any():
            stopping, amounts = bounded, bounds
        else:
            stopping, amounts = (rates > 0.0) & (rates[scarcest] > 0.0), reached
        np.copyto(shares, amounts, where=stopping)
        free -= np.where(stopping, amounts, 0.0).sum(axis=1)
        rates[stopping] = 0.0


# Dominant resource fairness in a tree of pools: what each job is entitled to, if siblings share alike.
#
# Bhattacharya, Culler, Friedman, Ghodsi, Shenker, Stoica, "Hierarchical Scheduling for Diverse Datacenter
# Workloads" (H-DRF), SoCC 2013, in closed form. A pool grows in the direction of what its children get
# together, and the dominant shares of siblings grow in proportion to their weights. Two rules keep the tree
# from starving a job:
#
# - the children of a pool count as they grow together, so a pool of one job that needs CPUs and one that
#   needs GPUs has the dominant share of either, not of both;
# - a job that demands a resource that is used up stops, and counts no more in the direction of its pool: the
#   others of the pool go on as if they were alone in it.
#
# Departures: all grow from nothing at the same time, so none is chosen by what it holds; and a pool whose
# dominant resource is used up is not brought up to the share that its siblings have of the next one. As in
# `dominant_shares`, a job gets at most what is useful to it; what it leaves goes to its own pool first.

Path = tuple[str, ...]

# In which the levels of jobs rise where many reach what is useful to them. Compared with 5,000 steps, nine
# tenths of the shares are then within 2 %, and those of pools mostly within 4 %.
STEPS = 16
KEPT = 0.75  # arrays are made smaller when less than this part of their jobs still grows


class PoolTree(Struct, frozen=True, gc=False):
    """Pools by index, each after its parent; pool 0 is the root."""

    parents: list[int]
    weights: list[float]
    pool_of: NDArray[np.intp]  # of each job, shape [jobs]


def pool_tree(paths: Sequence[Path], weights: Mapping[Path, float]) -> PoolTree:
    """The tree of these jobs' pools, each job's given from the root down; () is the root itself.

    `weights`: of pools, by path; 1 for a pool that is not listed. ValueError for one that is not above 0.
    """
    index: dict[Path, int] = {(): 0}
    parents, found = [0], [1.0]
    for path in paths:
        for depth in range(1, len(path) + 1):
            pool = path[:depth]
            if pool not in index:
                index[pool] = len(parents)
                parents.append(index[pool[:-1]])
                found.append(weights.get(pool, 1.0))
                if not 0.0 < found[-1] < np.inf:
                    raise ValueError(f"the weight of pool {'/'.join(pool)} must be above 0, not {found[-1]}")
    return PoolTree(parents, found, np.array([index[path] for path in paths], dtype=np.intp))


def hierarchical_shares(
    demands: Floats, weights: Floats, capacity: Floats, tree: PoolTree, most: Floats | None = None
) -> Floats:
    """What each job is entitled to, shape [jobs, resources].

    The arguments are those of `dominant_shares`, and the tree; `weights` count among the jobs of one pool.
    """
    if len(tree.parents) == 1:
        return dominant_shares(demands, weights, capacity, most)
    check_shares_input(demands, weights, capacity, most)
    growing = relative_demands(demands, capacity) * weights  # for each unit of the level of a job's pool
    filling = _Filling(growing, capacity, np.full(growing.shape, np.inf) if most is None else most.T, tree)
    while filling.grow():
        pass
    return np.ascontiguousarray(filling.shares.T)


class _Filling:
    """Shares that grow; arrays have a column for each job of `jobs`, those that still grow."""

    def __init__(self, growing: Floats, capacity: Floats, bounds: Floats, tree: PoolTree) -> None:
        self.shares = np.zeros_like(growing)  # of all jobs; of `jobs` those in `_current` count
        self._jobs = np.arange(growing.shape[1])
        self._growing = growing
        self._bounds = bounds
        self._pool_of = tree.pool_of
        self._current = np.zeros_like(growing)
        self._capacity = capacity
        self._free = capacity.astype(float)
        self._tree = tree
        self._step = 0.0

    def grow(self) -> bool:
        """Raise the level of all until a resource is used up or bounds are reached; False if none grows."""
        scales = _scales(self._growing, self._pool_of, self._tree)
        rates = self._growing * scales[self._pool_of] * self._capacity[:, None]
        totals = rates.sum(axis=1)
        wanted = totals > 0.0
        if not wanted.any():
            self.shares[:, self._jobs] = self._current
            return False
        levels = np.divide(self._free, totals, out=np.full_like(totals, np.inf), where=wanted)
        scarcest = int(levels.argmin())
        level = max(float(levels[scarcest]), 0.0)
        room = self._bounds - self._current
        room = np.divide(room, rates, out=np.full_like(rates, np.inf), where=rates > 0.0)
        self._step = self._step or level / STEPS
        to_bound = float(room.min())
        if to_bound < level:  # what these jobs leave is shared in the next step
            level = min(max(to_bound, self._step), level)
            stopping = room <= level
        else:
            self._step, stopping = 0.0, self._growing[scarcest] > 0.0
        grown = np.minimum(self._current + rates * level, self._bounds)
        self._free -= (grown - self._current).sum(axis=1)
        self._current = grown
        self._growing = np.where(stopping, 0.0, self._growing)
        self._leave_out()
        return True

    def _leave_out(self) -> None:
        """Keep the columns of jobs that still grow, where they are much fewer."""
        grows = self._growing.any(axis=0)
        if np.count_nonzero(grows) < KEPT * len(self._jobs):
            self.shares[:, self._jobs] = self._current
            self._jobs, self._pool_of = self._jobs[grows], self._pool_of[grows]
            self._growing, self._current = self._growing[:, grows], self._current[:, grows]
            self._bounds = self._bounds[:, grows]


def _scales(growing: Floats, pool_of: NDArray[np.intp], tree: PoolTree) -> Floats:
    """How fast the level of each pool's children rises, shape [pools]: siblings in proportion to weights."""
    pools = len(tree.parents)
    sums = np.array([np.bincount(pool_of, each, pools) for each in growing]).T
    dominant = [0.0] * pools
    for pool in range(pools - 1, 0, -1):
        dominant[pool] = float(sums[pool].max())
        if dominant[pool]:
            sums[tree.parents[pool]] += sums[pool] * (tree.weights[pool] / dominant[pool])
    scales = np.ones(pools)
    for pool in range(1, pools):
        if dominant[pool]:
            scales[pool] = scales[tree.parents[pool]] * tree.weights[pool] / dominant[pool]
    return scales
