"""A world in which controllers create victims again at once, and every eviction is held against the rules.

The rules are those of pools: who may be a victim of which claim, and what its pools keep. Shares are computed
here again, from the pods and the tree alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from builders import make_engine, make_node
from eclectus.maths.pool_shares import level_shares
from eclectus.model.commands import Bind, Command, Evict, Nominate
from eclectus.model.events import Event, PoolSeen, TaskSeen
from eclectus.model.objects import Task
from eclectus.model.pool import Pool
from eclectus.policies.order.pools import FairPools
from eclectus.policies.place.fit import BestFit
from eclectus.policies.relieve.reclaim import Reclaim
from worlds import World

EPSILON = 1e-6


def cpu(task: Task) -> int:
    """What a pod requests, in thousandths of a core."""
    return dict(task.spec.requests)["cpu"]


def on_the_way(path: str) -> list[str]:
    """The pools from the top down to this one."""
    return [path[:at] for at in range(1, len(path) + 1) if path[at : at + 1] in "/"]


class JudgedWorld(World):
    """`quorums`: by the name of a PodGroup. Every pod is in one of the pools, which state cores alone."""

    def __init__(self, pools: Sequence[Pool], cores: Iterable[float]) -> None:
        self.pools = {self._path(each, pools): each for each in pools}
        self.quorums: dict[str, int] = {}
        self._total = 0
        self._bound_at: dict[str, float] = {}  # by uid
        self._serial = 0
        engine = make_engine(BestFit(), order=FairPools(), relieve=Reclaim(), wait_limit=None)
        nodes = [make_node(f"n{at}", cpu=each) for at, each in enumerate(cores)]
        self._total = sum(dict(each.allocatable)["cpu"] for each in nodes)
        super().__init__(engine, *nodes)
        self.step(*map(PoolSeen, pools))

    @staticmethod
    def _path(pool: Pool, pools: Sequence[Pool]) -> str:
        return f"{pool.parent}/{pool.name}" if pool.parent else pool.name

    def path_of(self, task: Task) -> str:
        """The pool of a pod."""
        return next(path for path in self.pools if path.rpartition("/")[2] == task.asked_pool)

    def step(self, *events: Event, after: float = 0.0) -> list[Command]:
        """One step, whose evictions are judged."""
        before = {task.uid: task for task in self.tasks.values() if task.node or task.nominated}
        before |= {each.uid: self.tasks[each.name] for each in self.in_flight if each.name in self.tasks}
        known = dict(self.tasks)
        commands = super().step(*events, after=after)
        known |= self.tasks
        self._judge(before, {task.uid: task for task in known.values()}, commands)
        return commands

    def _evict(self, evict: Evict) -> None:
        gone = self.tasks[evict.name]
        super()._evict(evict)
        self._serial += 1
        name = f"{evict.name.partition('-')[0]}-{self._serial}"
        again = replace(
            gone, uid=f"uid-{name}", name=name, node="", nominated="", created=self.now, reported=""
        )
        self.tasks[name] = again
        self._seen.append(TaskSeen(again))

    # -- the rules -----------------------------------------------------------------------------------

    def _judge(self, holding: dict[str, Task], known: dict[str, Task], commands: Sequence[Command]) -> None:
        for gone in [uid for uid in holding if uid not in known]:
            del holding[gone]
        evictions = [each for each in commands if isinstance(each, Evict)]
        shares = self.shares(known.values(), evictions) if evictions else {}
        for each in commands:
            if isinstance(each, Bind):
                self._bound_at[each.uid] = self.now
                holding[each.uid] = known[each.uid]
            elif isinstance(each, Nominate) and not each.node:
                holding.pop(each.uid, None)
            elif isinstance(each, Nominate) and each.uid not in holding:
                self._judge_claim(holding, known, self._unit(known[each.uid]), commands, shares)
        self._judge_limits(holding)

    @staticmethod
    def _unit(task: Task) -> str:
        return task.uid if task.gang is None else task.gang.name

    def _judge_claim(
        self,
        holding: dict[str, Task],
        known: dict[str, Task],
        claimant: str,
        commands: Sequence[Command],
        shares: dict[str, float],
    ) -> None:
        """What is done for a pod, or for all of a gang, which holds room from now on."""
        nominated = (each for each in commands if isinstance(each, Nominate) and each.node)
        starting = [known[each.uid] for each in nominated if self._unit(known[each.uid]) == claimant]
        every = [each for each in commands if isinstance(each, Evict)]
        evictions = [each for each in every if self._unit(known[each.preemptor]) == claimant]
        if evictions:
            demand = self._held(self._demanding(known.values(), every))
            self._judge_evictions(holding, known, evictions, starting, shares=shares, demand=demand)
        holding |= {each.uid: each for each in starting}
        for each in evictions:
            del holding[each.uid]

    def _judge_evictions(
        self,
        holding: dict[str, Task],
        known: dict[str, Task],
        evictions: Sequence[Evict],
        starting: Sequence[Task],
        *,
        shares: dict[str, float],
        demand: Counter[str],
    ) -> None:
        claim, kind = evictions[0].pool, evictions[0].claim
        held, starts = self._held(holding.values()), self._held(starting)
        victims = [known[each.uid] for each in evictions]
        taken = self._held(victims)
        assert not self.pools[claim].preemption.dry_run, "a pool that only says what it would do evicts"
        for victim in victims:
            path = self.path_of(victim)
            rules = self.pools[path].preemption
            age = self.now - self._bound_at[victim.uid]
            assert age >= rules.min_runtime_seconds - EPSILON, "a victim is too young"
            way = [each for each in on_the_way(path) if each not in on_the_way(claim)]
            assert way, "a pool takes from itself"
            for each in way:
                self._judge_pool(each, cpu(victim), held, taken, demand)
            branch = way[0]
            own = on_the_way(self.path_of(known[evictions[0].preemptor]))[branch.count("/")]
            mine = held[own] + starts[own]
            if kind == "minimum":
                is_above = all(held[each] - taken[each] + cpu(victim) > shares[each] for each in way)
                is_above = is_above or all(held[each] > shares[each] for each in way)
                assert is_above or mine <= shares[own] + EPSILON, "a victim's pool is not above its share"
            else:
                keeps = held[branch] - taken[branch] >= shares[branch] - EPSILON
                has_less = _part(mine, shares[own]) < _part(held[branch], shares[branch])
                assert keeps or has_less, "a share is taken that is not fair"
        self._judge_gangs(holding, victims)

    def _judge_pool(
        self, path: str, amount: int, held: Counter[str], taken: Counter[str], demand: Counter[str]
    ) -> None:
        assert self.pools[path].preemption.allow_from, "a pool that allows nothing to be taken gives"
        least = dict(self.pools[path].min_share.amounts).get("cpu", 0)
        if least and amount:
            assert held[path] - taken[path] >= min(least, demand[path]), f"{path} lacks its minimum"

    def _judge_gangs(self, holding: dict[str, Task], victims: Sequence[Task]) -> None:
        gone = {each.uid for each in victims}
        for name in {each.gang.name for each in victims if each.gang is not None}:
            of_gang = [each for each in holding.values() if each.gang is not None and each.gang.name == name]
            left = [each for each in of_gang if each.uid not in gone]
            assert not left or len(left) >= self.quorums[name], f"a part of gang {name} stays"

    def _judge_limits(self, holding: dict[str, Task]) -> None:
        for path, amount in self._held(holding.values()).items():
            most = dict(self.pools[path].max_share.amounts).get("cpu")
            assert most is None or amount <= most, f"{path} holds more than it may"

    def _demanding(self, known: Iterable[Task], evictions: Sequence[Evict]) -> Iterator[Task]:
        """Those that exist; of a victim and the pod that its controller created again only one."""
        gone = {each.uid for each in evictions}
        return (each for each in known if each.uid not in gone)

    def _held(self, tasks: Iterable[Task]) -> Counter[str]:
        found = Counter[str]()
        for task in tasks:
            for path in on_the_way(self.path_of(task)):
                found[path] += cpu(task)
        return found

    def shares(self, known: Iterable[Task], evictions: Sequence[Evict] = ()) -> dict[str, float]:
        """What each pool is entitled to, by path."""
        below: dict[str, list[str]] = {}
        for path in sorted(self.pools):
            below.setdefault(path.rpartition("/")[0], []).append(path)
        alone, demand = self._held(self._demanding(known, evictions)), dict[str, int]()
        for path in sorted(self.pools, reverse=True):
            wanted = sum(demand[each] for each in below[path]) if path in below else alone[path]
            demand[path] = min(wanted, dict(self.pools[path].max_share.amounts).get("cpu", wanted))
        found = {"": float(self._total)}
        for parent in ("", *sorted(self.pools)):
            paths = [each for each in below.get(parent, ()) if demand[each]]
            of_each: Any = [self.pools[each] for each in paths]
            minima = [dict(each.min_share.amounts).get("cpu", 0) for each in of_each]
            divided = level_shares(
                found[parent], [demand[each] for each in paths], minima, [each.weight for each in of_each]
            )
            found |= dict.fromkeys(below.get(parent, ()), 0.0) | dict(zip(paths, divided, strict=True))
        return found


def _part(amount: float, share: float) -> float:
    return amount / share if share else float("inf") if amount else 0.0
