"""Pods that belong to no DAG job: those of a namespace share as one job that lends nothing.

Services and probes do not share; what they hold is not there to be shared.
"""

from __future__ import annotations

from collections.abc import Iterator

from eclectus.accounts.group_shares import GroupShares
from eclectus.framework import Task
from eclectus.policies.carbyne.offered import Offered
from eclectus.policies.shared.portions import Vector, added, magnitude

SERVICES = "-"  # the path of pods that take part in no sharing; no namespace has this name


def path_of(task: Task) -> str:
    """The path by which a task is counted: `namespace/job`, without a job for pods that belong to none."""
    if task.spec.long_running or task.spec.probe:
        return SERVICES
    return f"{task.namespace}/{task.job if task.stage else ''}"


class PodsOfNamespace:
    """What they wait for and hold, and their share."""

    def __init__(self, waiting: Vector, usage: Vector, share: Vector) -> None:
        self.waiting, self.usage, self.share = waiting, usage, share


class PlainPods:
    """By path, `namespace/`."""

    def __init__(self) -> None:
        self.by_path: dict[str, PodsOfNamespace] = {}
        self._magnitudes: object = None  # of what they wait for and hold, and of what services hold

    def count(self, shares: GroupShares, offered: Offered) -> tuple[list[str], bool]:
        """Count them anew. The paths whose amounts have changed, and whether by enough to share again."""
        none, before, changed = (0.0,) * len(offered.resources), self.by_path, list[str]()
        self.by_path = {}
        for path in sorted(each for each in shares.paths() if each.endswith("/") and each != SERVICES):
            waiting = offered.vector(shares.waiting(path).items())
            usage = offered.vector(shares.held(path).items())
            old = before.get(path)
            share = old.share if old is not None and len(old.share) == len(none) else none
            self.by_path[path] = PodsOfNamespace(waiting, usage, share)
            if old is None or (old.waiting, old.usage) != (waiting, usage):
                changed.append(path)
        magnitudes = (tuple(self._each_magnitude()), _of_services(shares, offered))
        differs, self._magnitudes = magnitudes != self._magnitudes, magnitudes
        return changed, differs

    def _each_magnitude(self) -> Iterator[tuple[object, ...]]:
        for path, each in self.by_path.items():
            yield (path, *map(magnitude, added(each.waiting, each.usage)))


def _of_services(shares: GroupShares, offered: Offered) -> tuple[int, ...]:
    held = shares.held(SERVICES)
    return tuple(magnitude(held.get(name, 0)) for name in offered.resources)
