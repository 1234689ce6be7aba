"""What is measured of Pools, written to their status when it has changed.

People read it, and since when a pool lacks its minimum must survive a restart. All else is derived from pods
and Pools. Every write costs a request, so a pool is written at most every `WRITE_SECONDS`, that it has begun
to lack its minimum at once, and all together no more than `WRITES_A_MINUTE`.
"""

from collections.abc import Iterator, Mapping
from math import inf

from eclectus.accounts.pools import Pools
from eclectus.cluster.due_times import DueTimes
from eclectus.cluster.resources import PODS
from eclectus.model.commands import RecordPool
from eclectus.model.objects import Amounts
from eclectus.model.pool import Pool, PoolRecord

WRITE_SECONDS = 15.0  # at least, between two writes for one pool
WRITES_A_MINUTE = 100.0
LOOK_SECONDS = 1.0  # at least, between two looks at all pools
POOLS_A_SECOND = 200.0  # that are looked at: some milliseconds of each second


class PoolRecords:
    """The records of Pools, and when each was last written."""

    def __init__(self, pools: Pools) -> None:
        self._pools = pools
        self._cursor = -1  # in the changes of pools: what has been looked at
        self._look_at = -inf  # when all pools may be looked at again, seconds
        self._below_min_since: dict[str, float | None] = {}  # by name, of pools that were looked at
        self._records: dict[str, PoolRecord] = {}  # of now, by name
        self._written: dict[str, tuple[float, PoolRecord]] = {}  # by name: when, seconds, and what
        self._due = DueTimes[str]()
        self._left, self._as_of = WRITES_A_MINUTE, 0.0
        self.next_due = inf  # when there is something to do, seconds; written here only

    def due(self, now: float) -> Iterator[RecordPool]:
        """Look at the pools if anything has changed, and take the records that are to be written now."""
        has_changed = self._pools.changes.head != self._cursor
        if has_changed and now >= self._look_at:
            self._cursor, has_changed = self._pools.changes.head, False
            self._look_at = now + max(LOOK_SECONDS, len(self._records) / POOLS_A_SECOND)
            self._look(now)
        yield from self._take(now)
        writes = self._due.next_due() if self._left >= 1.0 else now + 60.0 / WRITES_A_MINUTE
        self.next_due = min(self._look_at if has_changed else inf, writes if self._due.keys else inf)

    def _take(self, now: float) -> Iterator[RecordPool]:
        self._left = min(self._left + (now - self._as_of) * WRITES_A_MINUTE / 60.0, WRITES_A_MINUTE)
        self._as_of = now
        while self._left >= 1.0 and self._due.next_due() <= now:
            _, name = self._due.take()
            self._left -= 1.0
            self._written[name] = now, self._records[name]
            yield RecordPool(name, self._records[name])

    def _look(self, now: float) -> None:
        shares = self._pools.shares()
        for pool in self._pools.tree:
            path = self._pools.tree.path_of(pool.name)
            if path is not None:
                self._note(pool.name, self._record(pool, path, shares.get(path, {}), now), now)
        for name in [name for name in self._records if self._pools.tree.of_name(name) is None]:
            del self._records[name], self._below_min_since[name]
            self._written.pop(name, None)
            self._due.discard(name)

    def _record(self, pool: Pool, path: str, share: Mapping[str, float], now: float) -> PoolRecord:
        usage = self._pools.usage
        return PoolRecord(
            held=_amounts(usage.held(path)),
            demand=_amounts(self._pools.demand_of(path)),
            share=_amounts(share),
            waiting_pods=usage.waiting(path).get(PODS, 0),
            running_jobs=self._pools.running_jobs(path),
            below_min_since=self._since(pool, path, now),
        )

    def _since(self, pool: Pool, path: str, now: float) -> float | None:
        """Since when the pool lacks its minimum, seconds; at first as it was written before."""
        if not self._pools.lacks_minimum(path):
            since = None
        elif pool.name in self._below_min_since:
            before = self._below_min_since[pool.name]
            since = now if before is None else before
        else:
            since = now if pool.below_min_since is None else min(pool.below_min_since, now)
        self._below_min_since[pool.name] = since
        return since

    def _note(self, name: str, record: PoolRecord, now: float) -> None:
        self._records[name] = record
        when, written = self._written.get(name, (-inf, None))
        if record == written:
            self._due.discard(name)
        elif written is None or (written.below_min_since is None) != (record.below_min_since is None):
            self._due.set(name, now)
        else:
            self._due.set(name, when + WRITE_SECONDS)


def _amounts(amounts: Mapping[str, float]) -> Amounts:
    """In whole numbers, without those that are 0."""
    return tuple(sorted((name, int(amount)) for name, amount in amounts.items() if int(amount)))
