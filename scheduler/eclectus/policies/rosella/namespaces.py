"""The namespaces of the learner, and what each takes from the others.

Each learns from its own tasks alone. From the others it takes a prior of the nodes' speeds, robust and
bounded (maths/service_rates.py), and that a task has ended on a node. That a node is silent or dead
holds for all only as far as two namespaces agree: the share that holds for all is the second lowest one.

Shared classes and workloads of simulations belong to EVERYBODY, which is learned like a namespace, but has
no vote: any tenant would have a second vote by a shared class.
"""

from collections import Counter
from collections.abc import Callable, Container, Iterable

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from eclectus.cluster.scalars import read_only
from eclectus.framework import Speeds
from eclectus.maths.numbers import Floats, upper_median
from eclectus.maths.service_rates import NEGLIGIBLE, Totals, Votes, prior, vote
from eclectus.maths.shrinkage import Unfinished, between_variance, differ, prior_weight, untried_share
from eclectus.maths.turnaround import Turnarounds, with_turnaround
from eclectus.model.learned import NodeState
from eclectus.model.objects import EVERYBODY, namespace_of
from eclectus.policies.rosella.rates import Occupancy, Rates

# Liveness of nodes as one namespace sees it: which nodes count as slower, which are dead or back.
#
# States: `unknown`, no samples; `live`; `suspect`, its tasks are overdue, so it counts as slower
# (maths/load.py); `dead`, the last choice for real work. Departures from the paper (Q. Wu, Z. Liu,
# "Rosella", 2020), whose benchmarks arrive all the time: only time in which something ran on a node is
# evidence against it, so an idle node never counts as dead. A dead node on which a task ends is suspect until
# it has enough new samples. A dead node on which nothing runs is reset after a half-life, since without
# probes nothing else would bring it back.
#
# Silence and slowness are evidence for the namespace whose tasks they are. An end is a sign of life for all.

REVIVAL_SAMPLES = 8  # of tasks that started after the node died, that make it live again
TRIAL_SHARE = 0.125  # share of its learned speed that a dead node counts with after a sign of life


class Death(Struct):
    """Since when a node counts as dead, its samples since then, and since when it is quiet."""

    since: float
    quiet_since: float  # no task has ended or left
    new_samples: int = 0
    has_sign_of_life: bool = False


class Liveness:
    """Shares and deaths; arrays by row, shape [capacity]."""

    def __init__(self, rows: int = 0) -> None:
        self.share: Floats = np.ones(rows)  # of its learned speed with which a node counts; 0: dead
        self.deaths: dict[int, Death] = {}

    def open_rows(self, rows: int) -> None:
        """Extend the array to `rows` rows."""
        missing = rows - len(self.share)
        if missing > 0:
            self.share = np.pad(self.share, (0, missing), constant_values=1.0)

    def reset(self, row: int) -> None:
        """The row is not dead and counts with its full learned speed."""
        self.share[row] = 1.0
        self.deaths.pop(row, None)

    def left(self, row: int, now: float) -> None:
        """A task no longer runs on the row."""
        if row in self.deaths:
            self.deaths[row].quiet_since = now

    def ended(self, row: int, began: float, now: float) -> bool:
        """A task has run to its end; returns whether its time is a sample of the node.

        On a dead node, only tasks that started after its death are samples, since others stood still with it.
        But any end is a sign of life, after which the node gets a little real work.
        """
        death = self.deaths.get(row)
        if death is None:
            self.share[row] = 1.0
            return True
        death.has_sign_of_life, death.quiet_since = True, now
        self.share[row] = TRIAL_SHARE
        is_sample = began >= death.since
        death.new_samples += is_sample
        return is_sample

    def is_dead(self, row: int) -> bool:
        """Whether the node counts as dead: it died and has shown no sign of life since."""
        return row in self.deaths and not self.deaths[row].has_sign_of_life

    def dead_rows(self) -> list[int]:
        """The rows of dead nodes."""
        return [row for row in self.deaths if self.is_dead(row)]

    def marked(self, rows: Iterable[int]) -> NDArray[np.bool_]:
        """True for these rows; shape [capacity]."""
        marks = np.zeros(len(self.share), dtype=bool)
        marks[list(rows)] = True
        return marks

    def mark_dead(self, rows: NDArray[np.intp], now: float) -> list[int]:
        """These rows count as dead from now on; returns those that did not before."""
        died = [row for row in rows.tolist() if not self.is_dead(row)]
        for row in died:
            self.deaths[row] = Death(now, now)
        return died

    def apply_shares(self, share: Floats, nodes: int) -> None:
        """Take over the shares. Dead rows get 0, unless all nodes are dead, which must be an error."""
        dead = self.dead_rows()
        self.share = share
        for row, death in self.deaths.items():
            if death.has_sign_of_life:
                share[row] = min(share[row], TRIAL_SHARE)
        if len(dead) < nodes:
            share[dead] = 0.0

    def silent_since(self, last_end: Floats) -> Floats:
        """Since when each row is silent: since a task ended there; after a death also since one left."""
        found = last_end.copy()
        for row, death in self.deaths.items():
            found[row] = max(found[row], death.quiet_since)
        return found

    def idle_dead_rows(self, busy: Container[int], now: float, after: float) -> list[int]:
        """Dead rows, none of them `busy`, where no task has ended or left for `after` seconds."""
        quiet = (row for row, death in self.deaths.items() if now - death.quiet_since >= after)
        return [row for row in quiet if row not in busy]


# Effective rates: what placement uses of one namespace's learned rates.
#
# They are multiplied by a share for silence. A node also counts as slower for a workload that
# it has never run than its speed for other workloads suggests: workloads may rank nodes differently, a task
# that finds this out runs long, and other nodes are known to be good at it. Two cases are exempt: a node
# without any samples counts as typical, and so does a cell whose samples were dropped, since it was tried and
# its present speed must be found out. What other namespaces have learned of the nodes is a prior
# (maths/service_rates.py): it enters here alone, so that it changes nothing of what is learned. So does the
# turnaround (maths/turnaround.py), where the size of the workload is known: all that reckons a service or a
# wait by these rates reckons with it.


WORKLOADS_WEIGHED = 16  # with each fit: all 64 of 5,000 nodes would take as long as the fit itself


class EffectiveRates:
    """Rates by node, for all workloads together and for each; between two fits single rows are updated."""

    def __init__(self, rates: Rates, untried_share: float, is_shrunk: bool) -> None:
        self._rates = rates
        self._matrix = rates.matrix
        self._least_share, self._is_shrunk = untried_share, is_shrunk
        self._weight: Floats = np.zeros(0)  # of the common speed, in samples, by row
        self._pair_weight: Floats = np.zeros((0, 1))  # of a node's speed, by workload
        self._untried_share: Floats = np.zeros((0, 1))  # by workload
        # Whether nodes differ for sure; the workloads for which they do, each in its own way.
        self._nodes_differ, self._pairs_differ = True, set[int]()
        self._share: Floats = np.ones(0)  # of its learned speed with which a row counts
        self._rate: Floats = np.ones((1, 0))  # row 0: all workloads together; then one row for each workload
        self._prior: Floats | None = None  # of the nodes' speeds, from other namespaces
        self._turn = 0  # the workload that is weighed next
        self._turnaround: Floats = np.zeros((0, 1))  # of each workload, seconds
        self._speeds: dict[int | None, Speeds] = {}
        self._epoch = 0
        self._most = 1.0

    @property
    def rows(self) -> int:
        """Length of the arrays."""
        return len(self._rate[0])

    def speeds(self, index: int | None) -> Speeds:
        """Rates of the workload with this index in the matrix; for None, of all workloads together.

        So they are of one that has come since the rates were computed.
        """
        found = self._speeds.get(index)
        if found is None:
            rate = self._rate[0 if index is None or index + 1 >= len(self._rate) else index + 1]
            is_sure = self._nodes_differ or index in self._pairs_differ
            rates, share = read_only(rate), read_only(self._share)
            found = self._speeds[index] = Speeds(rates, self._most, self._epoch, is_sure, share)
        return found

    def rebuild(self, share: Floats, prior: Floats | None, turnaround: Floats, epoch: int) -> None:
        """Compute all rates again.

        `share` and `prior` have shape [rows]; without others it is None. `turnaround` [workloads].
        """
        self._prior, self._turnaround, self._epoch = prior, turnaround[:, None], epoch
        self._share = share.copy()
        self._weigh()
        speed = self._speed_believed(slice(None))
        if self._rate.shape != (shape := (len(self._matrix.rate) + 1, len(speed))):
            self._rate = np.empty(shape)
        self._rate[0] = speed  # in place, as what follows: fresh memory would take most of the time
        rates = self._matrix.rate_given(speed, self._pair_weight, slice(None), out=self._rate[1:])
        rates *= self._discounts(slice(None))
        self._rate *= share
        for index in np.flatnonzero(turnaround).tolist():
            self._rate[index + 1] = with_turnaround(self._rate[index + 1], turnaround.item(index))
        self._most = float(self._rate.max(initial=0.0)) or 1.0
        self._speeds.clear()

    def update_row(self, row: int, share: float) -> None:
        """Compute the rates of one node again."""
        rows = slice(row, row + 1)
        self._share[row] = share
        speed = self._speed_believed(rows)
        rate = self._matrix.rate_given(speed, self._pair_weight, rows) * self._discounts(rows)
        self._rate[0, row] = speed[0] * share
        self._rate[1:, rows] = with_turnaround(rate * share, self._turnaround)
        self._raise_bound(float(self._rate[:, row].max()))

    def update_cell(self, workload: int, row: int) -> None:
        """Compute the rate of one cell again, of a node whose share is 1."""
        prior = 1.0 if self._prior is None else self._prior.item(row)
        factor, rate = self._matrix.cell_given(
            workload, row, prior, self._weight.item(row), self._pair_weight.item(workload)
        )
        rate = with_turnaround(rate, self._turnaround.item(workload))
        self._rate[0, row], self._rate[workload + 1, row] = factor, rate
        self._raise_bound(max(factor, rate))

    def _speed_believed(self, rows: slice) -> Floats:
        """Speeds of these rows, with what others know of them."""
        prior = 1.0 if self._prior is None else self._prior[rows]
        return self._matrix.speed_given(prior, self._weight[rows], rows)

    def _weigh(self) -> None:
        """How far nodes differ, and how differently workloads rank them: of many workloads some in turn."""
        matrix, least = self._matrix, self._matrix.prior_samples
        workloads, before = len(matrix.rate), len(self._pair_weight)
        self._weight = np.full(len(matrix.factor), least)
        self._pair_weight = _lengthened(self._pair_weight, workloads, least)
        self._untried_share = _lengthened(self._untried_share, workloads, self._least_share)
        if not self._is_shrunk:
            return
        variation, unfinished = self._rates.usual_variations(), self._rates.unfinished
        totals = matrix.totals(variation, unfinished)
        self._weight, self._nodes_differ = matrix.node_weights(totals, variation)
        common = upper_median(self._weight) if len(self._weight) else least
        in_turn = {(self._turn + at) % workloads for at in range(min(WORKLOADS_WEIGHED, workloads))}
        self._turn += WORKLOADS_WEIGHED
        for index in sorted(in_turn.union(range(before, workloads))):
            self._weigh_pairs(index, totals, variation, unfinished, common)

    def _weigh_pairs(
        self, index: int, totals: Totals, variation: Floats, unfinished: Unfinished, common: float
    ) -> None:
        """How differently a workload ranks the nodes; `common`: what counts where that is not known."""
        self._pairs_differ.discard(index)
        pairs = self._matrix.pair_estimates(index, totals, variation, unfinished)
        if pairs is None:  # it is not known apart from the nodes' speeds
            self._pair_weight[index], self._untried_share[index] = common, self._least_share
            return
        between = between_variance(pairs)
        weight = prior_weight(variation.item(index), between, self._matrix.prior_samples)
        self._pair_weight[index] = weight
        self._untried_share[index] = untried_share(between, self._least_share)
        if differ(pairs, variation.item(index)):
            self._pairs_differ.add(index)

    def _discounts(self, rows: slice) -> Floats:
        """What the rates of all workloads on these rows are multiplied by: less than 1 where untried."""
        matrix = self._matrix
        # A workload that no node has run gives no node an advantage.
        is_known = np.array(matrix.is_sized, dtype=bool)[:, None]
        is_untried = ~matrix.tried[:, rows] & is_known & (matrix.samples[rows] > NEGLIGIBLE)
        return np.where(is_untried, self._untried_share, 1.0)

    def _raise_bound(self, rate: float) -> None:
        """Keep `most` an upper bound of all rates after an update."""
        if rate > self._most:
            self._most = rate
            self._speeds.clear()


def _lengthened(column: Floats, length: int, value: float) -> Floats:
    """The column with as many rows; new ones have this value."""
    return np.vstack([column, np.full((length - len(column), 1), value)])


class Knowledge:
    """`rates` and `liveness` are its own; `agreed` and `prior` are what others know, None without others."""

    def __init__(self, rates: Rates, untried_share: float, is_shrunk: bool) -> None:
        self.rates = rates
        self.liveness = Liveness()
        self.runs_work = False  # whether a task of it has ended that is no probe
        self.effective_rates = EffectiveRates(rates, untried_share, is_shrunk)
        self.agreed: Floats | None = None  # shares of the nodes that hold for all namespaces
        self.prior: Floats | None = None  # of the nodes' speeds

    def add_node(self, row: int, rows: int) -> None:
        """A new row, without samples."""
        self.liveness.open_rows(rows)
        self.rates.add_node(row, rows)

    def remove_node(self, row: int) -> None:
        """Forget the row."""
        self.rates.remove_node(row)
        self.liveness.reset(row)

    def share(self, row: int) -> float:
        """Of the learned speed of the row: the least of its own and of what holds for all."""
        own = self.liveness.share.item(row)
        return own if self.agreed is None else min(own, self.agreed.item(row))

    def shares(self) -> Floats:
        """The same of all rows."""
        return self.liveness.share if self.agreed is None else np.minimum(self.liveness.share, self.agreed)

    def check_revived(self, row: int) -> bool:
        """Whether a dead node is live again; drops its samples from before its death."""
        death = self.liveness.deaths.get(row)
        if death is None or death.new_samples < REVIVAL_SAMPLES:
            return False
        self.liveness.reset(row)
        for workload, _ in self.rates.scalars(row):
            self.rates.drop_before(workload, row, death.since)
        return True


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
        """The workload that loses its place if this one comes; None while one is free."""
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

    def __init__(
        self, make_rates: Callable[[], Rates], untried_share: float, is_shrunk: bool, most: int
    ) -> None:
        self.turnarounds = Turnarounds()
        self._make_rates = make_rates
        self._untried_share, self._is_shrunk = untried_share, is_shrunk
        self._kinds = Kinds(most)
        self._rows: set[int] = set()  # of all nodes
        self._capacity = 0
        self._agreed: Floats | None = None  # shares of nodes that hold for all, with two namespaces or more
        self.lowered: set[int] = set()  # rows with a share below 1 for any namespace, or a death
        self._weighed_at = 0.0
        self._epoch = 0
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

    def rates_of(self, workload: str) -> Rates | None:
        """What has samples of this workload; None if nothing has."""
        rates = self._find(workload).rates
        return rates if workload in rates.index else None

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
        space = Knowledge(self._make_rates(), self._untried_share, self._is_shrunk)
        for row in self._rows:
            space.add_node(row, self._capacity)
        space.rates.fade(self._weighed_at)
        return space

    def _all(self) -> list[Knowledge]:
        return [*self._by_name.values(), self._newcomer]

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

    def ended(self, workload: str, row: int, began: float, now: float) -> bool:
        """A task has run to its end; returns whether its time is a sample for its namespace."""
        if row not in self.lowered:
            return True
        own, is_sample = self._find(workload), True
        for space in self._by_name.values():
            is_own_sample = space.liveness.ended(row, began, now)
            is_sample = is_own_sample if space is own else is_sample
        self._agree_on(row)
        if all(space.share(row) == 1.0 for space in self._by_name.values()):
            self.lowered.discard(row)
        return is_sample

    def is_dead_for(self, workload: str, row: int) -> bool:
        """Whether the node has died for the namespace of this workload, and is not live again."""
        return row in self._find(workload).liveness.deaths

    def left(self, row: int, now: float) -> None:
        """A task no longer runs on the row."""
        if row in self.lowered:
            for space in self._by_name.values():
                space.liveness.left(row, now)

    def check_revived(self, row: int) -> bool:
        """Whether a dead node is live again for any namespace, which then drops older samples of it."""
        revived = [space.check_revived(row) for space in self._by_name.values()]  # each is asked
        return any(revived)

    def fade(self, now: float) -> None:
        """Age all samples to `now`."""
        for space in self._all():
            share = space.rates.fade(now)
        self._kinds.fade(share)
        self._weighed_at = now

    def refresh(self, occupancy: Occupancy, now: float, error: float) -> None:
        """Fit the rates of each namespace to its samples; `error` is the relative error aimed at."""
        for name, space in self.items():
            space.rates.drop_aged(now)
            space.rates.refresh(len(self._rows), error)
            space.rates.note_unfinished(occupancy.tasks(name), now)

    def exchange(self) -> None:
        """Exchange what holds for all, and what others know of the nodes; after a check for failures."""
        voters, self._agreed = self._voters(), None
        if len(voters) > 1:
            self._agreed = np.partition([space.liveness.share for space in voters], 1, axis=0)[1]
        votes = Votes([vote(each.rates.matrix.factor, each.rates.matrix.samples) for each in voters])
        self.lowered = set()
        self._epoch += 1
        for space in self._all():
            space.agreed, space.prior = self._agreed, None
            if voters and voters != [space]:
                median = votes.median(without=voters.index(space) if space in voters else None)
                space.prior = prior(median, space.rates.matrix.samples > NEGLIGIBLE)
            self.lowered.update(np.flatnonzero(space.liveness.share != 1.0).tolist(), space.liveness.deaths)
            turnaround = np.zeros(len(space.rates.matrix.rate))
            for workload, index in space.rates.index.items():
                turnaround[index] = self.turnarounds.of(namespace_of(workload), workload)
            space.effective_rates.rebuild(space.shares(), space.prior, turnaround, self._epoch)

    def _voters(self) -> list[Knowledge]:
        return [space for name, space in self.items() if name != EVERYBODY]

    def _agree_on(self, row: int) -> None:
        if self._agreed is not None:
            shares = sorted(space.liveness.share.item(row) for space in self._voters())
            self._agreed[row] = shares[1] if len(shares) > 1 else 1.0

    def update_row(self, row: int) -> None:
        """Compute the effective rates of one node again."""
        for space in self._all():
            space.effective_rates.update_row(row, space.share(row))

    def update_cell(self, workload: str, row: int) -> None:
        """Compute that of one workload on one row again; the row is not lowered."""
        space = self._find(workload)
        if workload in space.rates.index:
            space.effective_rates.update_cell(space.rates.index[workload], row)

    def speeds(self, workload: str) -> Speeds:
        """Of this workload; those of all workloads of its namespace if it is unknown."""
        space = self._find(workload)
        return space.effective_rates.speeds(space.rates.index.get(workload))

    def state(self, row: int) -> NodeState:
        """The state of a node: dead if two namespaces say so, or all that know it (KNOWING_SAMPLES).

        Samples of probes contradict no namespace: they are as old as the silence, and none has ended since.
        """
        spaces = self._by_name.values()
        if row in self.lowered:
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
