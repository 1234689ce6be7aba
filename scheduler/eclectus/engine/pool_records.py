"""What is measured of Pools, written to their status when it has changed.

People read it, and since when a pool lacks its minimum must survive a restart. All else is derived from pods
and Pools. Every write costs a request, so a pool is written at most every `WRITE_SECONDS`, that it has begun
to lack something after `LACKS_SECONDS`, and all together no more than a `MinuteAllowance`.
"""

from collections.abc import Iterator, Mapping
from math import inf

from eclectus.accounts.pools import Pools
from eclectus.accounts.reclaim import Starvation
from eclectus.cluster.due_times import DueTimes
from eclectus.cluster.resources import PODS
from eclectus.engine.minute_allowance import MinuteAllowance
from eclectus.model.commands import RecordPool
from eclectus.model.objects import Amounts
from eclectus.model.pool import PoolRecord

WRITE_SECONDS = 15.0  # at least, between two writes for one pool
LACKS_SECONDS = 1.0  # for which it has lacked something, or has not: most is made up for by the next bind


class PoolRecords:
    """The records of Pools, and when each was last written."""

    def __init__(self, pools: Pools, starvation: Starvation) -> None:
        self._pools = pools
        self._starvation = starvation
        self._looks = 0  # of all looks at pools: which have been noted
        self._written: dict[str, tuple[float, PoolRecord]] = {}  # by name: when, seconds, and what
        self._due = DueTimes[str]()
        self._allowance = MinuteAllowance()
        self.next_due = inf  # when there is something to write, seconds; written here only

    def due(self, now: float) -> Iterator[RecordPool]:
        """Note which pools the last look has shown to differ, and take the records that are to be written."""
        if self._looks != self._starvation.looks:
            self._looks = self._starvation.looks
            self._note_all(now)
        yield from self._take(now)
        self.next_due = max(self._due.next_due(), self._allowance.next_at()) if self._due.keys else inf

    def _take(self, now: float) -> Iterator[RecordPool]:
        while self._due.next_due() <= now and self._allowance.has_one(now):
            _, name = self._due.take()
            path = self._pools.tree.path_of(name)
            if path is None:  # gone since the last look
                continue
            record = self._record(path)
            if record != self._last_of(name)[1]:
                self._allowance.spend()
                self._written[name] = now, record
                yield RecordPool(name, record)

    def _note_all(self, now: float) -> None:
        tree = self._pools.tree
        for pool in tree:
            path = tree.path_of(pool.name)
            if path is not None:
                self._note(pool.name, path, now)
        for name in [name for name in self._written if tree.path_of(name) is None]:
            del self._written[name]
            self._due.discard(name)

    def _last_of(self, name: str) -> tuple[float, PoolRecord | None]:
        """When a pool was last written, seconds, and what."""
        return self._written.get(name, (-inf, None))

    def _record(self, path: str) -> PoolRecord:
        usage, starvation = self._pools.usage, self._starvation
        return PoolRecord(
            held=_amounts(usage.held(path)),
            held_by_node=self._pools.node_quotas.held_of(path),
            demand=_amounts(self._pools.demand_of(path)),
            share=_amounts(starvation.shares.get(path, {})),
            waiting_pods=usage.waiting(path).get(PODS, 0),
            running_jobs=self._pools.running_jobs(path),
            below_min_since=starvation.below_min_since(path),
            below_share_since=starvation.below_share_since(path),
        )

    def _note(self, name: str, path: str, now: float) -> None:
        """A pool whose time has come is looked at when it is written: most of them differ all the time."""
        (when, written), known = self._last_of(name), self._due.at(name)
        if written is None:
            self._due.set(name, now if known is None else known)
        elif self._is_starved(path) != (
            written.below_min_since is not None,
            written.below_share_since is not None,
        ):
            self._due.set(name, now + LACKS_SECONDS if known is None else min(known, now + LACKS_SECONDS))
        elif known != when + WRITE_SECONDS:
            if self._record(path) != written:
                self._due.set(name, when + WRITE_SECONDS)
            else:
                self._due.discard(name)

    def _is_starved(self, path: str) -> tuple[bool, bool]:
        starvation = self._starvation
        return starvation.below_min_since(path) is not None, starvation.below_share_since(path) is not None


def _amounts(amounts: Mapping[str, float]) -> Amounts:
    """In whole numbers, without those that are 0."""
    return tuple(sorted((name, int(amount)) for name, amount in amounts.items() if int(amount)))
