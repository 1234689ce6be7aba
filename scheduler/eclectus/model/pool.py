"""A pool: whose pods share what of the cluster. Pools form a tree; pods belong to pools without children."""

from typing import Literal

from msgspec import Struct

from eclectus.model.objects import Amounts, Selector

LeafPolicy = Literal["fifo", "fair", "sjf", "srtf"]


class PoolAmounts(Struct, frozen=True, gc=False):
    """Amounts of resources, and a part of what the parent has of every other resource, percent.

    The parent of a pool without one has what all nodes offer. Neither: no amount is stated.
    """

    amounts: Amounts = ()
    percent: float | None = None

    def __bool__(self) -> bool:
        return bool(self.amounts) or self.percent is not None


NO_AMOUNTS = PoolAmounts()


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
    namespaces: tuple[str, ...] = ()
    selector: Selector | None = None
    suspended: bool = False  # nothing of it starts; what runs goes on
    below_min_since: float | None = None  # as written before, seconds since the epoch; None: it is not


class PoolRecord(Struct, frozen=True, gc=False):
    """What the scheduler measures of a pool: written to its status, so that it survives a restart."""

    held: Amounts = ()
    demand: Amounts = ()  # held, and requested by pods that wait
    share: Amounts = ()  # what it is entitled to now
    waiting_pods: int = 0
    running_jobs: int = 0
    below_min_since: float | None = None  # seconds since the epoch; None: it has its minimum, or needs less
