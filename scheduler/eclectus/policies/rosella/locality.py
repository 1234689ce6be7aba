"""What it costs a task to run away from its data, as part of its service time.

The project's own; the paper knows of no data. A task that says where its data are (`Task.inputs`) takes
longer on other nodes:

    service elsewhere = times * service + seconds

of which each second beyond `service` weighs as one of waiting does where all nodes are used: for so long the
task keeps others off its slot.

- `times`: how many times as long tasks of its kind take away from their data, as those show that have ended
  (maths/data_gain.py), where that is 1.05 or more; in steps, so that rankings can be kept. It needs no
  setting, and takes what is learned of tasks for true of each.
- `seconds`: the bytes that the node lacks over a stated bandwidth. Then nothing is multiplied: who states a
  bandwidth has tasks that differ in what they read, which no ratio of a kind of work shows.
- Where neither is known, nodes with the data come first among equals. So it is learned what they save.

All of this is on the task, and a class keeps its rankings of all nodes: they are right for those without the
data but for two numbers, and the few nodes with data of a task are compared one by one. With

    theta * wait + times * service + seconds = times * (theta / times * wait + service) + seconds

the best of the other nodes to wait for is that of the class with another weight of waiting.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import exp, inf, log
from typing import TypeVar

import numpy as np
from msgspec import Struct

from eclectus.cluster.locality import names_of
from eclectus.framework import Floats, Rows, Task, View
from eclectus.maths.data_gain import DataGain
from eclectus.policies.rosella.costs import DEAD_RATE, SPREAD, ClassCosts

LEAST_TIMES = 1.05  # less is not worth a slower node, or a wait
STEPS = 10  # of `times` for each factor of e: 10 %, as learned ratios are not more precise
TIE = 1.0 + SPREAD  # by so much nodes of equal speed differ at most
BYTES = 1e6  # a MB
NAMES_MOST = 5  # of nodes, in a message
Seconds = TypeVar("Seconds", float, Floats)


class Choice(Struct, frozen=True):
    """A node that a task may get, or may wait for."""

    row: int
    cost: float  # weighed seconds
    run_seconds: float  # that it is expected to run there
    has_data: bool


class DataPrice(Struct, frozen=True, eq=False):
    """Of one task. `rows`: the nodes with data of it, and `seconds_at` what it takes to read the rest there.

    On all other nodes it takes `times` times as long, and `seconds` more. `weight`: of a second of these, as
    it delays others too.
    """

    times: float
    seconds: float
    rows: Rows
    seconds_at: Floats
    weight: float = 1.0

    @property
    def weighed_times(self) -> float:
        """`times` with its weight."""
        return 1.0 + self.weight * (self.times - 1.0)

    def elsewhere(self, service: Seconds) -> Seconds:
        """The cost of the service away from the data, given that at the data."""
        return service * self.weighed_times + self.weight * self.seconds

    def best(self, costs: ClassCosts, elsewhere: tuple[int, float] | None, near: Floats) -> Choice | None:
        """The best of all nodes, the others' best as if it were at the data, and the costs of `rows`."""
        near = near + self.weight * self.seconds_at
        at = int(near.argmin())
        row, cost = (-1, inf) if elsewhere is None else (elsewhere[0], self.elsewhere(elsewhere[1]))
        if near[at] < inf and near[at] <= cost:
            row = int(self.rows[at])
            seconds = _seconds(costs, row) + float(self.seconds_at[at])
            return Choice(row, float(near[at]), seconds, has_data=True)
        if elsewhere is None:
            return None
        return Choice(row, cost, _seconds(costs, row) * self.times + self.seconds, has_data=False)


def _seconds(costs: ClassCosts, row: int) -> float:
    return 1.0 / max(costs.speeds.rate.item(row), DEAD_RATE)


def data_price(view: View, task: Task, bandwidth: float | None) -> DataPrice | None:
    """What data cost a task; None where it has none on a node that exists, or never ends.

    `bandwidth`: MB/s; None where it is not stated.
    """
    known = view.cluster.rows
    if task.spec.long_running:
        return None
    if bandwidth is not None:
        missing, total = _missing(task, known), sum(each.size for each in task.inputs)
        seconds = np.array(list(missing.values())) / (BYTES * bandwidth)
        return DataPrice(1.0, total / (BYTES * bandwidth), _rows(missing), seconds) if missing else None
    rows = _rows(known[name] for name in names_of(task.inputs) if name in known)
    if not len(rows):
        return None
    times = learned_times(view.data_gains.of(task.namespace, task.workload))
    return DataPrice(max(times, TIE), 0.0, rows, np.zeros(len(rows)))


def no_price(view: View, task: Task) -> DataPrice | None:
    """Wherever a task runs, its data cost nothing."""
    return None


def in_words(price: DataPrice, names: Sequence[str]) -> str:
    """By how much longer the task counts elsewhere. `names`: of nodes, by row."""
    near = [names[row] for row in price.rows[:NAMES_MOST].tolist()]
    near += ["..."] * (len(price.rows) > NAMES_MOST)
    more = f"{price.times:.3g} times as long"
    if price.seconds:
        more = f"{price.seconds:.3g} s longer"
    elif price.times <= TIE:
        more = "no longer, as far as is known"
    return f"its data are on {', '.join(near)}, and elsewhere it takes {more}"


def learned_times(gain: DataGain | None) -> float:
    """How many times as long tasks take elsewhere, cautiously and in steps; 1 where no longer, or unknown."""
    ratio = None if gain is None else gain.ratio
    return exp(round(STEPS * log(ratio)) / STEPS) if ratio is not None and ratio >= LEAST_TIMES else 1.0


def _missing(task: Task, known: Mapping[str, int]) -> dict[int, int]:
    """By the row of each node that has data of the task: the bytes that it lacks."""
    total, there = sum(each.size for each in task.inputs), Counter[int]()
    for each in task.inputs:
        for row in dict.fromkeys(known[name] for name in each.nodes if name in known):
            there[row] += each.size
    return {row: total - size for row, size in there.items()}


def _rows(rows: Iterable[int]) -> Rows:
    return np.fromiter(rows, dtype=np.intp)
