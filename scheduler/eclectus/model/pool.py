"""A pool: whose pods share what of the cluster. Pools form a tree; pods belong to pools without children."""

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from eclectus.model.objects import Amounts, Selector, selects

LeafPolicy = Literal["fifo", "fair", "sjf", "srtf"]

DEFAULT, RECOVERY = "default", "recovery"  # pools that exist without an object
AT_THE_TOP = frozenset({DEFAULT, RECOVERY})  # whatever parent they name


class NodeAmounts(Struct, frozen=True, gc=False):
    """Amounts of resources on the nodes that have this value of a label."""

    key: str
    value: str
    amounts: Amounts

    def __str__(self) -> str:
        return f"{self.key}={self.value}"


class PoolAmounts(Struct, frozen=True, gc=False):
    """Amounts of resources, and a part of what the parent has of every other resource, percent.

    The parent of a pool without one has what all nodes offer. Neither: no amount is stated. `by_node`: of
    what is held on some nodes alone, each label and value once.
    """

    amounts: Amounts = ()
    percent: float | None = None
    by_node: tuple[NodeAmounts, ...] = ()

    def __bool__(self) -> bool:
        """Whether it says anything of all nodes together."""
        return bool(self.amounts) or self.percent is not None


NO_AMOUNTS = PoolAmounts()


class PoolPreemption(Struct, frozen=True, gc=False):
    """When a pool takes room back, and what may be taken from it; times in seconds."""

    min_share_seconds: float | None = None  # below its minimum for so long, it takes up to that; None: never
    fair_share_seconds: float | None = None  # below a part of its share for so long, up to its share
    fair_share_threshold: float = 0.5  # that part, above 0 and at most 1
    min_runtime_seconds: float = 0.0  # a pod of this pool is no victim before it has run for so long
    allow_from: bool = True  # whether its pods may be victims at all
    dry_run: bool = False  # whether it evicts nobody, and only says whom it would


NO_PREEMPTION = PoolPreemption()


class Pool(Struct, frozen=True, gc=False):
    """A Pool, as last seen.

    `namespaces`, `selector`: the namespaces that may use it, by name and by labels; None: no selector. A
    namespace may also name its pool itself, by a label, which is the cluster admin's to set.
    """

    name: str
    parent: str = ""  # empty: it is below the root
    weight: float = 1.0  # 0: it gets what its siblings leave; its minimum is its own all the same
    min_share: PoolAmounts = NO_AMOUNTS
    max_share: PoolAmounts = NO_AMOUNTS
    policy: LeafPolicy = "fair"  # in which order its jobs start, if it has no children
    running_jobs_most: int | None = None  # None: no bound
    altruism: float = 1.0  # how willing its jobs are to lend what they do not need yet, 0..1, times their own
    namespaces: tuple[str, ...] = ()
    selector: Selector | None = None
    preemption: PoolPreemption = NO_PREEMPTION
    suspended: bool = False  # nothing of it starts; what runs goes on
    below_share_since: float | None = None  # as written before, seconds since the epoch; None: it is not
    below_min_since: float | None = None  # as written before, seconds since the epoch; None: it is not

    def admits(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Whether pods of a namespace with these labels may ask for it."""
        is_selected = self.selector is not None and selects(self.selector, labels)
        return namespace in self.namespaces or is_selected


Refusal = Literal["notAdmitted", "notValid", "inner"]
"""Why pods are not in the pool that their label names: it does not admit them, or there is none; it does not
count; or it has others below it."""
REFUSALS: Mapping[Refusal, str] = {
    "notAdmitted": "no Pool {pool} admits pods of namespace {namespace}",
    "notValid": "Pool {pool} is not valid, as its condition Ready says",
    "inner": "Pool {pool} has pools below it, and pods are in those alone",
}


def admits_pods(pool: Pool | None, namespace: str, labels: Mapping[str, str], own: str) -> bool:
    """Whether pods of a namespace with these labels may be in a Pool that their own label names.

    `own`: the Pool that the namespace's label names; empty for none.
    """
    if pool is None or pool.name == DEFAULT:
        return False
    return own == pool.name or pool.admits(namespace, labels)


def refusal_of(*, is_admitted: bool, is_valid: bool, is_inner: bool) -> Refusal | None:
    """Why pods are not in a Pool; None if they are. Of one that does not admit them nothing else is said."""
    if not is_admitted:
        return "notAdmitted"
    if not is_valid:
        return "notValid"
    return "inner" if is_inner else None


class PoolRecord(Struct, frozen=True, gc=False):
    """What the scheduler measures of a pool: written to its status, so that it survives a restart."""

    held: Amounts = ()
    held_by_node: tuple[NodeAmounts, ...] = ()  # of what its minimum or maximum states by node
    demand: Amounts = ()  # held, and requested by pods that wait and may start
    share: Amounts = ()  # what it is entitled to now
    waiting_pods: int = 0
    running_jobs: int = 0
    below_min_since: float | None = None  # seconds since the epoch; None: it has its minimum, or needs less
    below_share_since: float | None = None  # likewise: below the part of its share at which it may claim it
