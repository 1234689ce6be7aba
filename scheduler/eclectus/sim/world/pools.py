"""`pools:` of a scenario: Pools as cluster admins write them, how they change, and what each got.

A Pool of a scenario has the fields of the custom resource's spec. One without `namespaces` admits all pods,
because nobody has rights in a simulation. What the scheduler records of a Pool is kept beside it and seen
again with it, as on a cluster.

What pools got is sampled: what each holds, and what it is entitled to at that time by the formula of
docs/pools.md, with what it demands in this very run. Jain's index (Jain, Chiu, Hawe, 1984) is that of held
over entitled in windows of a minute, over the pools without children that have waiting pods at every sample
of a window: for others, holding little is no loss.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import partial
from typing import Any, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from eclectus.accounts.pool_tree import PoolTree
from eclectus.api.pool import MAX_KINDS
from eclectus.cluster.resources import PODS
from eclectus.engine.engine import Engine
from eclectus.kube.pools import LEAST_WEIGHT, minimum_problem
from eclectus.model.commands import RecordPool
from eclectus.model.errors import SettingsError
from eclectus.model.events import PoolGone, PoolSeen
from eclectus.model.objects import Selector, Task
from eclectus.model.pool import (
    DEFAULT,
    RECOVERY,
    LeafPolicy,
    NodeAmounts,
    Pool,
    PoolAmounts,
    PoolPreemption,
    PoolRecord,
)
from eclectus.model.printed import nearest
from eclectus.model.settings import REQUIRED, setting
from eclectus.sim.base.machine import TaskRun
from eclectus.sim.base.results import PoolResult, PoolsResult
from eclectus.sim.base.work import WINDOW_SECONDS
from eclectus.sim.world.cluster import check_distinct, read_amounts
from eclectus.sim.world.dag_record import jain_index
from eclectus.sim.world.run_record import Histogram, RunRecord, times_of

ALL_NAMESPACES: Selector = ()


LABEL_CHARACTERS, VALUE_CHARACTERS = 317, 63  # of a label of nodes, as Kubernetes allows


@dataclass(frozen=True, kw_only=True)
class NodeShareField:
    """Amounts of what is held on the nodes with a value of a label."""

    key: str = setting(REQUIRED, "the label, such as nvidia.com/gpu.product")
    value: str = setting(REQUIRED, "its value")
    amounts: dict[str, object] = setting(REQUIRED, "amounts by resource, as those of all nodes")

    def __post_init__(self) -> None:
        if not self.key:
            raise SettingsError("key", "is empty; write a label of nodes")
        for name, text, most in (
            ("key", self.key, LABEL_CHARACTERS),
            ("value", self.value, VALUE_CHARACTERS),
        ):
            if len(text) > most:
                raise SettingsError(name, f"has {len(text)} characters, more than {most}")
        self.node_amounts()

    def node_amounts(self) -> NodeAmounts:
        """The same in the model. Raises SettingsError."""
        return NodeAmounts(self.key, self.value, read_amounts(dict(self.amounts), "amounts"))


@dataclass(frozen=True)
class ShareField:
    """A minimum or a maximum."""

    amounts: dict[str, object] = setting({}, "amounts by resource, such as {cpu: 40}")
    percent: float | None = setting(
        None, "part of what the parent may hold, of every other resource", unit="%", least=0, most=100
    )
    by_node: tuple[NodeShareField, ...] = setting((), "amounts of what is held on some nodes alone")

    def __post_init__(self) -> None:
        self.pool_amounts()
        places: dict[tuple[str, str], int] = {}
        for at, each in enumerate(self.by_node):
            if (first := places.setdefault((each.key, each.value), at)) != at:
                problem = f"{each.key}={each.value} is stated already by byNode[{first}]"
                raise SettingsError(f"byNode[{at}]", problem)
        if len(places) > MAX_KINDS:
            raise SettingsError("byNode", f"states {len(places)} kinds of nodes, more than {MAX_KINDS}")

    def pool_amounts(self) -> PoolAmounts:
        """The same in the model. Raises SettingsError."""
        kinds = sorted(
            (each.node_amounts() for each in self.by_node), key=lambda each: (each.key, each.value)
        )
        return PoolAmounts(read_amounts(dict(self.amounts), "amounts"), self.percent, tuple(kinds))


@dataclass(frozen=True)
class NamespacesField:
    """The namespaces whose pods may be in the pool."""

    names: tuple[str, ...] = setting((), "names of namespaces")


@dataclass(frozen=True)
class PreemptionField:
    """When the pool takes room back, and what may be taken from it, under `relieve: [reclaim]`."""

    min_share_seconds: float | None = setting(
        None, "below its minimum for so long it takes up to that; by default never", unit="s", least=0
    )
    fair_share_seconds: float | None = setting(
        None, "below a part of its share for so long it takes up to its share", unit="s", least=0
    )
    fair_share_threshold: float = setting(0.5, "that part", least=1e-6, most=1)
    min_runtime_seconds: float = setting(0.0, "no pod of it is a victim before", unit="s", least=0)
    allow_from: bool = setting(True, "whether its pods may be victims")
    dry_run: bool = setting(False, "whether it evicts nobody, and only says whom it would")


@dataclass(frozen=True)
class PoolField:
    """A Pool."""

    name: str = setting(REQUIRED, "name of the Pool, which pods ask for")
    parent: str = setting("", "name of the pool above; none: the root")
    weight: float = setting(1.0, "what it may hold beside its siblings", least=0, most=1e6)
    min_share: ShareField = setting(ShareField(), "what it gets first while its pods need it")
    max_share: ShareField = setting(ShareField(), "what it holds at most")
    policy: LeafPolicy = setting("fair", "in which order its jobs start, if it has no children")
    max_running_jobs: int | None = setting(None, "jobs with a pod on a node, in it and below", least=1)
    altruism: float = setting(
        1.0, "how willing its jobs with stages are to lend, under order: carbyne", least=0, most=1
    )
    namespaces: NamespacesField | None = setting(None, "whose pods may be in it; by default all pods")
    preemption: PreemptionField = setting(PreemptionField(), "taking room back")
    suspend: bool = setting(False, "nothing of it starts; what runs goes on")

    def __post_init__(self) -> None:
        if not self.name or "/" in self.name:
            raise SettingsError("name", f"{self.name!r} is no name of a pool; write one such as research")
        if problem := minimum_problem(self.pool()):
            raise SettingsError("minShare", problem)

    def pool(self) -> Pool:
        """The same in the model."""
        return Pool(
            name=self.name,
            parent=self.parent,
            weight=max(self.weight, LEAST_WEIGHT) if self.weight else 0.0,
            min_share=self.min_share.pool_amounts(),
            max_share=self.max_share.pool_amounts(),
            policy=self.policy,
            running_jobs_most=self.max_running_jobs,
            altruism=self.altruism,
            namespaces=() if self.namespaces is None else self.namespaces.names,
            selector=ALL_NAMESPACES if self.namespaces is None else None,
            preemption=PoolPreemption(*astuple(self.preemption)),
            suspended=self.suspend,
        )


@dataclass(frozen=True)
class PoolChange:
    """An entry of `events:`: from a time on a Pool is as given, or gone."""

    at: float = setting(REQUIRED, "when", unit="s", least=0)
    pool: PoolField | None = setting(None, "the whole Pool as it is from then on, new or changed")
    remove_pool: str = setting("", "name of the Pool that is gone from then on")

    def __post_init__(self) -> None:
        if (self.pool is None) != bool(self.remove_pool):
            raise SettingsError("pool", "give either pool or removePool")


def check_tree(pools: Sequence[PoolField], changes: Sequence[tuple[str, PoolChange]]) -> None:
    """Raise SettingsError for a name used twice, a pool that does not lead to the root, or an unknown one.

    `changes` with their paths. What they make of the tree is not checked: the scheduler has to bear it.
    """
    check_distinct((each.name for each in pools), "pools")
    tree, known = PoolTree(), {each.name: None for each in pools}
    for each in pools:
        tree.set(each.pool())
    for at, each in enumerate(pools):
        if each.parent and each.parent not in known:
            problem = f"{each.parent!r} is not a pool; {nearest(each.parent, list(known))}"
            raise SettingsError(f"pools[{at}].parent", problem)
        if tree.path_of(each.name) is None:
            raise SettingsError(
                f"pools[{at}].parent", "does not lead to the root: a cycle, or too many levels"
            )
    known |= {change.pool.name: None for _, change in changes if change.pool is not None}
    for path, change in changes:
        if change.remove_pool and change.remove_pool not in known:
            problem = f"{change.remove_pool!r} is not a pool; {nearest(change.remove_pool, list(known))}"
            raise SettingsError(f"{path}.removePool", problem)


def check_asked(asked: Iterator[tuple[str, str]], names: Sequence[str]) -> None:
    """Raise SettingsError where a class of work asks for a pool that there never is; `asked`: path, name."""
    for path, name in asked:
        if name not in names:
            raise SettingsError(path, f"{name!r} is not a pool; {nearest(name, list(names))}")
        if name in (DEFAULT, RECOVERY):
            raise SettingsError(path, f"{name!r} is for pods that ask for no pool, or for one that is gone")


class ScenarioPools:
    """The Pools of a run, as an API server would have them."""

    def __init__(self, pools: Sequence[Pool]) -> None:
        self._pools = {pool.name: pool for pool in pools}

    def seen(self) -> Iterator[PoolSeen]:
        """All that there are."""
        return map(PoolSeen, self._pools.values())

    def change(self, change: PoolChange) -> PoolSeen | PoolGone:
        """A Pool is written or deleted. What was recorded of it stays: the scheduler has written that."""
        if change.pool is None:
            self._pools.pop(change.remove_pool, None)
            return PoolGone(change.remove_pool)
        pool, before = change.pool.pool(), self._pools.get(change.pool.name)
        if before is not None:
            pool = _with_status(pool, before)
        self._pools[pool.name] = pool
        return PoolSeen(pool)

    def record(self, command: RecordPool) -> PoolSeen | None:
        """The scheduler writes what it has measured; None where the Pool is gone."""
        before = self._pools.get(command.name)
        if before is None:
            return None
        pool = self._pools[command.name] = _with_status(before, command.record)
        return PoolSeen(pool)


def _with_status(pool: Pool, status: Pool | PoolRecord) -> Pool:
    """The pool with what was recorded of it, as far as the scheduler reads it again."""
    return replace(pool, below_min_since=status.below_min_since, below_share_since=status.below_share_since)


SAMPLE_SECONDS = 1.0  # least time between two samples
SAMPLES_MOST = 1_000  # in a run of the expected length


class _Now(NamedTuple):
    """What one pool has now, as parts of the cluster by resource."""

    share: Mapping[str, float]
    held: Mapping[str, float]
    waits: bool
    has_children: bool


class _Sums(Struct):
    """Sums over samples, by resource."""

    share: dict[str, float] = field(default_factory=partial(defaultdict, float))
    held: dict[str, float] = field(default_factory=partial(defaultdict, float))
    off: dict[str, float] = field(default_factory=partial(defaultdict, float))  # how far the two are apart
    waited: int = 0  # samples in which pods of the pool waited
    has_children: bool = False

    def add(self, now: _Now) -> None:
        """One sample more."""
        for name in sorted(now.share.keys() | now.held.keys()):
            share, held = now.share.get(name, 0.0), now.held.get(name, 0.0)
            self.share[name] += share
            self.held[name] += held
            self.off[name] += abs(share - held)
        self.waited += now.waits
        self.has_children = now.has_children

    @property
    def resource(self) -> str:
        """That of which the pool is entitled to the largest part; pods where it is entitled to no other."""
        return max(self.share, key=lambda name: (name != PODS, self.share[name]), default=PODS)


class _Starts(Struct):
    """When pods of one pool came and started, seconds."""

    arrived: float | None = None  # the first
    started: float | None = None  # the first
    waits: Histogram = field(default_factory=Histogram)


class PoolShares:
    """The record of one run; `World` calls it before time passes, and as pods are submitted and start."""

    def __init__(self, engine: Engine, record: RunRecord) -> None:
        self._engine = engine
        self._record = record
        self._every = max(SAMPLE_SECONDS, record.window.expected_end / SAMPLES_MOST)
        self._due = 0.0
        self._samples = self._in_window = 0
        self._sums: dict[str, _Sums] = defaultdict(_Sums)
        self._window: dict[str, _Sums] = defaultdict(_Sums)
        self._indices: list[float] = []  # Jain's, of each window that counts
        self._starts: dict[str, _Starts] = defaultdict(_Starts)

    def submit(self, run: TaskRun, now: float) -> None:
        """A pod waits from now on."""
        of_pool = self._of_pool(run.task)
        if of_pool.arrived is None:
            of_pool.arrived = now

    def start(self, run: TaskRun, now: float) -> None:
        """A pod starts; it is measured if its job is, and it has not been lost before."""
        of_pool = self._of_pool(run.task)
        if of_pool.started is None:
            of_pool.started = now
        if not run.restarts and self._record.measures(run.job):
            of_pool.waits.add(now - run.arrived)

    def _of_pool(self, task: Task) -> _Starts:
        return self._starts[self._engine.read(_path_of, task)]

    def aggregate(self) -> None:
        """Bound memory; call from time to time."""
        for each in self._starts.values():
            each.waits.aggregate()

    def advance(self, until: float) -> None:
        """Time passes, and nothing has changed since the last call."""
        is_measured = self._record.window_start is not None and self._record.window_end is None
        now = self._engine.read(_pools_now) if is_measured and self._due <= until else {}
        while self._due <= until:
            if is_measured:
                self._add(now)
            self._due += self._every

    def _add(self, now: Mapping[str, _Now]) -> None:
        self._samples += 1
        self._in_window += 1
        for path, each in now.items():
            self._sums[path].add(each)
            self._window[path].add(each)
        if self._in_window * self._every >= WINDOW_SECONDS:
            self._close_window()

    def _close_window(self) -> None:
        ratios = []
        for each in self._window.values():
            share = each.share[each.resource]
            if share and not each.has_children and each.waited == self._in_window:
                ratios.append(each.held[each.resource] / share)
        if len(ratios) > 1 and any(ratios):
            self._indices.append(jain_index(ratios))
        self._window.clear()
        self._in_window = 0

    def result(self) -> PoolsResult:
        """What has been recorded; a window that has not ended does not count."""
        self.aggregate()
        paths = sorted(self._sums.keys() | self._starts.keys() - {""})
        indices = self._indices
        return PoolsResult(
            pools={path: self._pool_result(path) for path in paths},
            fairness=sum(indices) / len(indices) if indices else None,
            fairness_least=min(indices, default=None),
            windows=len(indices),
        )

    def _pool_result(self, path: str) -> PoolResult:
        sums, starts, samples = self._sums[path], self._starts[path], max(self._samples, 1)
        resource = sums.resource
        return PoolResult(
            resource=resource,
            share=sums.share[resource] / samples,
            held=sums.held[resource] / samples,
            off=sums.off[resource] / samples,
            wait=times_of(starts.waits),
            first_arrival=starts.arrived,
            first_start=starts.started,
        )


def _path_of(state: Any, task: Task) -> str:
    path: str = state.pools.tree.pool_of(task)
    return path


def _pools_now(state: Any) -> dict[str, _Now]:
    """The pools with demand: what each is entitled to and holds, as parts of the cluster."""
    pools = state.pools
    totals, (shares, _) = pools.usage.totals, pools.shares()
    parents = {path.rpartition("/")[0] for path in shares}

    def parts(amounts: Mapping[str, float]) -> dict[str, float]:
        return {name: amount / totals[name] for name, amount in amounts.items() if totals.get(name)}

    return {
        path: _Now(
            parts(share),
            parts(pools.usage.held(path)),
            bool(pools.usage.waiting(path)),
            path in parents,
        )
        for path, share in shares.items()
    }
