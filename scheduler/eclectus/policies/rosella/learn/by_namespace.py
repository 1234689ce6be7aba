"""The namespaces of the learner, and what each takes from the others.

Each learns from its own tasks alone. From the others it takes a prior of the nodes' speeds, robust and
bounded (maths/estimators/of_nodes.py), and that a task has ended on a node. That a node is silent or dead
holds for all only as far as two namespaces agree: the share that holds for all is the second lowest one.

Shared classes and workloads of simulations belong to EVERYBODY, which is learned like a namespace, but has
no vote: any tenant would have a second vote by a shared class.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

import numpy as np

from eclectus.framework import Speeds
from eclectus.maths.estimators.of_nodes import Votes, prior, vote
from eclectus.maths.estimators.ratio import NEGLIGIBLE
from eclectus.maths.numbers import Floats
from eclectus.model.learned import NodeState
from eclectus.model.workload_names import EVERYBODY, namespace_of
from eclectus.policies.rosella.learn.knowledge import Knowledge
from eclectus.policies.rosella.learn.rates import Rates

# Which workloads are learned: a fair share of the places for each namespace, in it the most frequent ones.
#
# The worth of a workload is the weight of its samples, which fades as they age. A workload without a place is
# counted too, and its samples are dropped. It gets a free place at once. If there is none, it takes the place
# of the least worth
#
# - of the namespace that holds the most, if its own namespace holds at least two less: so a namespace loses
#   places to others only beyond its fair share;
# - or else of its own namespace (if that holds none: of those that hold the most), once it is worth REPLACES
#   times as much. Without that factor, more workloads than places that come in turn would replace each other,
#   and none would ever be learned.

REPLACES = 2.0  # times the worth: above 1 by what a sample loses between two that come in turn


class Kinds:
    """The workloads with a place, and as many candidates."""

    def __init__(self, places: int) -> None:
        self._places = places
        self._worth: dict[str, float] = {}
        self._candidates: dict[str, float] = {}  # their worth; shared out in the same way
        self._held = Counter[str]()  # places by namespace

    def __contains__(self, workload: str) -> bool:
        return workload in self._worth

    def add(self, workload: str, weight: float) -> str | None:
        """Count samples of this weight; returns the workload that has lost its place to this one, if any."""
        if workload in self._worth:
            self._worth[workload] += weight
            return None
        worth = self._candidates.pop(workload, 0.0) + weight
        loser = self._loser(workload, worth)
        if loser == workload:
            self._keep_candidate(workload, worth)
            return None
        if loser is not None:
            del self._worth[loser]
            self._held -= Counter((namespace_of(loser),))  # drops what is 0
        self._worth[workload] = worth
        self._held[namespace_of(workload)] += 1
        return loser

    def fade(self, share: float) -> None:
        """Multiply all worths by this."""
        for worth in (self._worth, self._candidates):
            for workload in worth:
                worth[workload] *= share

    def _loser(self, workload: str, worth: float) -> str | None:
        """Who gets no place if this workload comes; None while one is free."""
        if len(self._worth) < self._places:
            return None
        own = namespace_of(workload)
        most = max(self._held.values())
        if not self._held[own] or most > self._held[own] + 1:
            found = self._least(space for space, held in self._held.items() if held == most)
        else:
            found = self._least([own])
        is_unfair = most > self._held[own] + 1
        return found if is_unfair or worth > REPLACES * self._worth[found] else workload

    def _least(self, namespaces: Iterable[str]) -> str:
        """The workload of least worth in these namespaces, of equal ones the first by name."""
        among = frozenset(namespaces)
        return min(
            (each for each in self._worth if namespace_of(each) in among),
            key=lambda each: (self._worth[each], each),
        )

    def _keep_candidate(self, workload: str, worth: float) -> None:
        """Remember it; beyond the bound the namespace with the most candidates loses its least one."""
        self._candidates[workload] = worth
        if len(self._candidates) > self._places:
            held = Counter(map(namespace_of, self._candidates))
            most = max(held.values())
            crowded = [each for each in self._candidates if held[namespace_of(each)] == most]
            del self._candidates[min(crowded, key=lambda each: (self._candidates[each], each))]


KNOWING_SAMPLES = 2.0  # weight of the samples from which on a namespace knows a node


class KnowledgeByNamespace:
    """By name; EVERYBODY is always there. `most` is the number of workloads of all of them together."""

    def __init__(self, make_rates: Callable[[], Rates], untried_share: float, most: int) -> None:
        self._make_rates, self._untried_share = make_rates, untried_share
        self._kinds = Kinds(most)
        self._rows: set[int] = set()  # of all nodes
        self._capacity = 0
        self._agreed: Floats | None = None  # shares of nodes that hold for all, with two namespaces or more
        self._lowered: set[int] = set()  # rows with a share below 1, or a death
        self._weighed_at, self._epoch = 0.0, 0
        self._by_name = {EVERYBODY: self._new()}
        self._newcomer = self._new()  # what a namespace without samples believes

    @property
    def cells(self) -> int:
        """Number of rows times that of namespaces."""
        return self._capacity * len(self._by_name)

    def items(self) -> list[tuple[str, Knowledge]]:
        """(name, namespace), in the order of names."""
        return sorted(self._by_name.items())

    def _find(self, workload: str) -> Knowledge:
        """The namespace that learns this workload, or what stands for one without samples."""
        return self._by_name.get(namespace_of(workload), self._newcomer)

    def admit(self, workload: str, at: float, samples: int = 1) -> Knowledge | None:
        """Count samples taken at this time; what learns from them, None if they are dropped."""
        weight = self._newcomer.rates.matrix.weight(at)  # all fade together
        loser, name = self._kinds.add(workload, weight * samples), namespace_of(workload)
        if loser is not None:
            self._forget(loser, keep=name)
        if workload not in self._kinds:
            return None
        if name not in self._by_name:
            self._by_name[name] = self._new()
        return self._by_name[name]

    def _forget(self, workload: str, keep: str) -> None:
        """Forget a workload, and its namespace with the last one, unless that is the one to `keep`."""
        name = namespace_of(workload)
        rates = self._by_name[name].rates
        if workload in rates.index:
            rates.forget(workload)
        if not rates.index and name not in (EVERYBODY, keep):
            del self._by_name[name]

    def _new(self) -> Knowledge:
        space = Knowledge(self._make_rates(), self._untried_share)
        for row in self._rows:
            space.add_node(row, self._capacity)
        space.rates.fade(self._weighed_at)
        return space

    def _all(self) -> list[Knowledge]:
        return [*self._by_name.values(), self._newcomer]

    # -- nodes ---------------------------------------------------------------------------------

    def add_node(self, row: int, capacity: int) -> None:
        """A new row, without samples; computes all rates again where arrays grow."""
        self._rows.add(row)
        for space in self._all():
            space.add_node(row, capacity)
        if capacity > self._capacity:
            self._capacity = capacity
            self.exchange()

    def remove_node(self, row: int) -> None:
        """Forget the row."""
        self._rows.remove(row)
        for space in self._all():
            space.remove_node(row)
        self._agree_on(row)

    def clear(self, row: int) -> None:
        """Drop all samples of the row."""
        for _, space in self.items():
            space.rates.clear(row)

    # -- tasks ---------------------------------------------------------------------------------

    def is_lowered(self, row: int) -> bool:
        """Whether the row counts with less than its learned speed for any namespace."""
        return row in self._lowered

    def ended(self, workload: str, row: int, began: float, now: float) -> bool:
        """A task has run to its end; returns whether its time is a sample for its namespace."""
        if row not in self._lowered:
            return True
        own, is_sample = self._find(workload), True
        for space in self._by_name.values():
            is_own_sample = space.liveness.ended(row, began, now)
            is_sample = is_own_sample if space is own else is_sample
        self._agree_on(row)
        if all(space.share(row) == 1.0 for space in self._by_name.values()):
            self._lowered.discard(row)
        return is_sample

    def left(self, row: int, now: float) -> None:
        """A task no longer runs on the row."""
        if row in self._lowered:
            for space in self._by_name.values():
                space.liveness.left(row, now)

    def check_revived(self, row: int) -> bool:
        """Whether a dead node is live again for any namespace, which then drops older samples of it."""
        revived = [space.check_revived(row) for space in self._by_name.values()]  # each is asked
        return any(revived)

    # -- time ----------------------------------------------------------------------------------

    def fade(self, now: float) -> None:
        """Age all samples to `now`."""
        for space in self._all():
            share = space.rates.fade(now)
        self._kinds.fade(share)
        self._weighed_at = now

    def refresh(self, now: float, error: float) -> None:
        """Fit the rates of each namespace to its samples; `error` is the relative error aimed at."""
        for _, space in self.items():
            space.rates.drop_aged(now)
            space.rates.refresh(len(self._rows), error)

    def exchange(self) -> None:
        """Exchange what holds for all, and what others know of the nodes; after a check for failures."""
        self._agreed = _second_lowest(self._voters())
        self._set_priors(self._voters())
        self._lowered = set()
        for space in self._all():
            space.agreed = self._agreed
            self._lowered |= space.liveness.lowered_rows()
        self.rebuild()

    def _voters(self) -> list[Knowledge]:
        return [space for name, space in self.items() if name != EVERYBODY]

    def _set_priors(self, voters: list[Knowledge]) -> None:
        votes = Votes([vote(each.rates.matrix.factor, each.rates.matrix.samples) for each in voters])
        for space in self._all():
            if not voters or voters == [space]:
                space.prior = None
                continue
            median = votes.median(without=voters.index(space) if space in voters else None)
            space.prior = prior(median, space.rates.matrix.samples > NEGLIGIBLE)

    def _agree_on(self, row: int) -> None:
        if self._agreed is not None:
            shares = sorted(space.liveness.share.item(row) for space in self._voters())
            self._agreed[row] = shares[1] if len(shares) > 1 else 1.0

    # -- effective rates -------------------------------------------------------------------------

    def rebuild(self) -> None:
        """Compute the effective rates of all namespaces again, and start a new epoch."""
        self._epoch += 1
        for space in self._all():
            space.rebuild(self._epoch)

    def update_row(self, row: int) -> None:
        """Compute those of one row again."""
        for space in self._all():
            space.update_row(row)

    def update_cell(self, workload: str, row: int) -> None:
        """Compute that of one workload on one row again; the row is not lowered."""
        space = self._find(workload)
        if workload in space.rates.index:
            space.effective_rates.update_cell(space.rates.index[workload], row)

    def speeds(self, workload: str) -> Speeds:
        """Of this workload; those of all workloads of its namespace if it is unknown."""
        space = self._find(workload)
        return space.effective_rates.speeds(space.rates.index.get(workload))

    # -- reading -------------------------------------------------------------------------------

    def state(self, row: int) -> NodeState:
        """The state of a node: dead if two namespaces say so, or all that know it (KNOWING_SAMPLES).

        Samples of probes contradict no namespace: they are as old as the silence, and none has ended since.
        """
        spaces = self._by_name.values()
        if row in self._lowered:
            dead = [space for space in spaces if space.liveness.is_dead(row)]
            knowing = [
                space
                for space in spaces
                if space.runs_work and space.rates.matrix.samples.item(row) >= KNOWING_SAMPLES
            ]
            if dead and (len(dead) > 1 or all(space in dead for space in knowing)):
                return "dead"
            if any(space.share(row) < 1.0 for space in spaces):
                return "suspect"
        return "live" if any(space.rates.has_samples(row) for space in spaces) else "unknown"

    def median_knowledge(self, row: int) -> Knowledge:
        """The namespace whose speed of the node is the lower median of those that have samples of it."""
        knowing = [space for _, space in self.items() if space.rates.has_samples(row)]
        ranked = sorted(knowing, key=lambda space: space.rates.matrix.factor.item(row))
        return ranked[(len(ranked) - 1) // 2]


def _second_lowest(voters: list[Knowledge]) -> Floats | None:
    """Of the shares of each row; None with fewer than two namespaces."""
    if len(voters) < 2:
        return None
    shares = np.array([space.liveness.share for space in voters])
    found: Floats = np.partition(shares, 1, axis=0)[1]
    return found
