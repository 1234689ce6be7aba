"""What jobs may still take of their shares, and when: kept where starts above shares are bounded."""

from __future__ import annotations

from math import inf

from eclectus.policies.shared.portions import Vector


class Entitlements:
    """By job, and added up."""

    def __init__(self) -> None:
        self._by_job: dict[str, Vector] = {}  # by uid
        self._all: list[float] = []
        self._next_due: dict[str, float] = {}  # by uid, seconds

    def clear(self, resources: int) -> None:
        """Forget all jobs; from now on there are so many resources. Also because sums of floats drift."""
        self._by_job, self._next_due, self._all = {}, {}, [0.0] * resources

    def set(self, uid: str, entitled: Vector, next_due: float) -> None:
        """What a job may still take of its share, and when it needs room that it lends, seconds."""
        self._next_due[uid] = next_due
        self._add(entitled, 1)
        self._add(self._by_job.get(uid, ()), -1)
        self._by_job[uid] = entitled

    def drop(self, uid: str) -> None:
        """The job is done, or gone; no error if it was not known."""
        self._add(self._by_job.pop(uid, ()), -1)
        self._next_due.pop(uid, None)

    def leave_room(self, uid: str, demand: Vector, held: Vector, capacity: Vector) -> bool:
        """Whether beside a job's demand and what all hold there is room for what all others may take."""
        own = self._by_job.get(uid, (0.0,) * len(self._all))
        return all(
            not amount or used + amount + everybody - mine <= most
            for amount, used, everybody, mine, most in zip(
                demand, held, self._all, own, capacity, strict=True
            )
        )

    def next_due(self, uid: str) -> float:
        """When the first job other than this one needs room that it lends, seconds; inf for never."""
        return min((at for each, at in self._next_due.items() if each != uid), default=inf)

    def _add(self, entitled: Vector, sign: int) -> None:
        for at, amount in enumerate(entitled):
            self._all[at] += sign * amount
