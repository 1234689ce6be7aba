"""What it costs a task to run away from its data, as part of its service time.

The project's own; the paper knows of no data. A task that says where its data are (`Task.inputs`) takes
longer on other nodes:

    service elsewhere = times * service + seconds

of which each second beyond `service` weighs 1 / (1 - load)^2, the square of what one of waiting does where
all nodes are used: for so long the task keeps others off its slot, the more of them the higher the load.

- `times`: how many times as long tasks of its kind take away from their data, as those show that have ended
  (maths/data_gain.py), where that is 1.05 or more; in steps, so that rankings can be kept. It needs no
  setting, and takes what is learned of tasks for true of each.
- `seconds`: the bytes that the node lacks over a stated bandwidth. Then nothing is multiplied: who states a
  bandwidth has tasks that differ in what they read, which no ratio of a kind of work shows.
- Where neither is known, nodes with the data come first among equals. So it is learned what they save.
- *Levels* are labels of nodes, such as a rack. Nodes that have the label's value of one with the data have
  `times` and `seconds` of their own: learned of tasks at this level, or by the bandwidth there. A level of
  which too little is known counts as all that are far, and none as nearer than the one before it.

All of this is on the task, and a class keeps its rankings of all nodes: they are right for those without the
data but for two numbers, and the few nodes near the data of a task are compared one by one. With

    theta * wait + times * service + seconds = times * (theta / times * wait + service) + seconds

the best of the other nodes to wait for is that of the class with another weight of waiting.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, inf, log
from typing import TypeVar

import numpy as np
from msgspec import Struct

from eclectus.cluster.locality import ANYWHERE, names_of, rows_by_level
from eclectus.framework import Floats, Rows, SettingsError, Task, View, setting
from eclectus.maths.data_gain import DataGain
from eclectus.policies.rosella.costs import DEAD_RATE, SPREAD, ClassCosts

LEAST_TIMES = 1.05  # less is not worth a slower node, or a wait
STEPS = 10  # of `times` for each factor of e: 10 %, as learned ratios are not more precise
TIE = 1.0 + SPREAD  # by so much nodes of equal speed differ at most
BYTES = 1e6  # a MB
NAMES_MOST = 5  # of nodes, in a message
Seconds = TypeVar("Seconds", float, Floats)


@dataclass(frozen=True)
class DataLevel:
    """Nodes with one value of a label, and how fast a pod reads there what such a node has."""

    key: str
    bandwidth: float | None = setting(
        None,
        "at how many MB in a second a pod reads what nodes with this label's value in common have",
        why="unset: how many times as long pods take there is learned, as without levels",
        unit="MB/s",
        least=1e-3,
        most=1e9,
    )

    def __post_init__(self) -> None:
        if not self.key:
            raise SettingsError("key", "must name a label of nodes, such as topology.kubernetes.io/zone")


class DataPrices(Struct, frozen=True):
    """By what data are priced: levels, the nearest first, and the bandwidth beyond them, MB/s.

    None of them has a bandwidth where it is learned how much longer tasks take.
    """

    levels: tuple[DataLevel, ...] = ()
    bandwidth: float | None = None

    def __post_init__(self) -> None:
        if len(set(self.keys)) < len(self.keys):
            raise SettingsError("dataLevels", "name a label twice; one of the two would be for nothing")
        stated = [each.bandwidth for each in self.levels]
        if self.bandwidth is None and any(stated):
            raise SettingsError("dataLevels", "state a bandwidth, so dataBandwidth must be stated too")
        if self.bandwidth is not None and None in stated:
            raise SettingsError("dataLevels", "need a bandwidth each, as dataBandwidth is stated")
        if self.bandwidths != sorted(self.bandwidths, reverse=True):
            raise SettingsError(
                "dataLevels", "must have the greatest bandwidth first, and dataBandwidth last"
            )

    @property
    def keys(self) -> tuple[str, ...]:
        """The labels of the levels."""
        return tuple(each.key for each in self.levels)

    @property
    def bandwidths(self) -> list[float]:
        """Of each level and of all other nodes; empty where they are not stated."""
        stated = (*(each.bandwidth for each in self.levels), self.bandwidth)
        return [each for each in stated if each is not None]


class Choice(Struct, frozen=True):
    """A node that a task may get, or may wait for."""

    row: int
    cost: float  # weighed seconds
    run_seconds: float  # that it is expected to run there
    is_near: bool  # to its data


class Near(Struct, frozen=True, eq=False):
    """Some nodes near the data of a task, and what it costs it to run on each of them, as in DataPrice."""

    rows: Rows
    seconds_at: Floats
    times: float = 1.0


class DataPrice(Struct, frozen=True, eq=False):
    """Of one task. `near`: the nodes with data of it, and those of each further level.

    On all other nodes it takes `times` times as long, and `seconds` more. `weight`: of a second of these, as
    it delays others too.
    """

    times: float
    seconds: float
    near: tuple[Near, ...]
    weight: float = 1.0

    def weighed(self, times: float) -> float:
        """So many times with their weight."""
        return 1.0 + self.weight * (times - 1.0)

    def elsewhere(self, service: Seconds) -> Seconds:
        """The cost of the service away from the data, given that at the data."""
        return service * self.weighed(self.times) + self.weight * self.seconds

    def best(
        self, costs: ClassCosts, elsewhere: tuple[int, float] | None, near: Sequence[Floats]
    ) -> Choice | None:
        """The best of all nodes, the others' best as if it were at the data, and so the costs of `near`."""
        best = None
        for each, cost in zip(self.near, near, strict=True):
            if len(each.rows):
                priced = cost * self.weighed(each.times) + self.weight * each.seconds_at
                at = int(priced.argmin())
                if priced[at] < (inf if best is None else best.cost):
                    row, more = int(each.rows[at]), float(each.seconds_at[at])
                    seconds = _seconds(costs, row) * each.times + more
                    best = Choice(row, float(priced[at]), seconds, is_near=True)
        if elsewhere is None:
            return best
        row, cost_there = elsewhere[0], self.elsewhere(elsewhere[1])
        if best is not None and best.cost <= cost_there:
            return best
        return Choice(row, cost_there, _seconds(costs, row) * self.times + self.seconds, is_near=False)


def _seconds(costs: ClassCosts, row: int) -> float:
    return 1.0 / max(costs.speeds.rate.item(row), DEAD_RATE)


def data_price(view: View, task: Task, prices: DataPrices) -> DataPrice | None:
    """What data cost a task; None where it has none on a node that exists, or never ends."""
    if task.spec.long_running:
        return None
    if prices.bandwidth is not None:
        return _by_bytes(view, task, prices)
    near = rows_by_level(view.cluster, names_of(task.inputs), prices.keys)
    if not len(near[0]):
        return None
    times = learned_times(view.data_gains.of(task.namespace, task.workload), prices.keys)
    at = zip(near, (1.0, *times), strict=False)
    return DataPrice(times[-1], 0.0, tuple(Near(rows, np.zeros(len(rows)), each) for rows, each in at))


def _by_bytes(view: View, task: Task, prices: DataPrices) -> DataPrice | None:
    """By the bytes that a node lacks, each at the bandwidth at which it gets them."""
    *per_byte, farthest = [1.0 / (BYTES * each) for each in prices.bandwidths]
    missing, total = _missing(task, view.cluster.rows), sum(each.size for each in task.inputs)
    if not missing:
        return None
    if not per_byte:
        seconds = np.array(list(missing.values())) / (BYTES * prices.bandwidths[-1])
        near = Near(np.fromiter(missing, dtype=np.intp), seconds)
        return DataPrice(1.0, total / (BYTES * prices.bandwidths[-1]), (near,))
    saved = np.zeros(view.cluster.capacity)
    for each in task.inputs:
        levels = rows_by_level(view.cluster, each.nodes, prices.keys)
        for rows, seconds_each in zip(levels, (0.0, *per_byte), strict=True):
            saved[rows] += each.size * (farthest - seconds_each)
    seconds = np.maximum(total * farthest - saved, 0.0)
    having = np.fromiter(missing, dtype=np.intp)
    is_other = saved > 0.0
    is_other[having] = False
    near_rows = (having, np.flatnonzero(is_other))
    return DataPrice(1.0, total * farthest, tuple(Near(rows, seconds[rows]) for rows in near_rows))


def no_price(view: View, task: Task) -> DataPrice | None:
    """Wherever a task runs, its data cost nothing."""
    return None


def in_words(price: DataPrice, names: Sequence[str], keys: Sequence[str]) -> str:
    """By how much longer the task counts elsewhere. `names`: of nodes, by row. `keys`: of the levels."""
    rows = price.near[0].rows
    near = [names[row] for row in rows[:NAMES_MOST].tolist()]
    near += ["..."] * (len(rows) > NAMES_MOST)
    more = f"{price.times:.3g} times as long"
    if price.seconds:
        more = f"{price.seconds:.3g} s longer"
    elif price.times < LEAST_TIMES:
        more = "no longer, as far as is known"
    at = zip(price.near[1:], keys, strict=False) if not price.seconds else ()
    levels = [
        f"with the {key} of one of them {each.times:.3g} times as long" for each, key in at if len(each.rows)
    ]
    return f"its data are on {', '.join(near)}, and {', '.join([*levels, f'elsewhere it takes {more}'])}"


def learned_times(gain: DataGain | None, keys: Sequence[str] = ()) -> list[float]:
    """How many times as long tasks take at each level of these keys, and elsewhere: cautiously and in steps.

    Where no longer, or unknown, just so much that nodes nearer to the data come first among equals.
    """
    found, nearer = list[float](), 1.0
    for level in (*keys, ANYWHERE):
        ratio = None if gain is None else gain.ratio_at(level)
        if ratio is None and gain is not None:
            ratio = gain.ratio
        nearer = max(_in_steps(ratio), nearer * TIE)
        found.append(nearer)
    return found


def _in_steps(ratio: float | None) -> float:
    return exp(round(STEPS * log(ratio)) / STEPS) if ratio is not None and ratio >= LEAST_TIMES else 1.0


def _missing(task: Task, known: Mapping[str, int]) -> dict[int, int]:
    """By the row of each node that has data of the task: the bytes that it lacks."""
    total, there = sum(each.size for each in task.inputs), Counter[int]()
    for each in task.inputs:
        for row in dict.fromkeys(known[name] for name in each.nodes if name in known):
            there[row] += each.size
    return {row: total - size for row, size in there.items()}
