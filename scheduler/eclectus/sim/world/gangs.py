"""PodGroups of a run: jobs of a class with `gang` are one each, of which so many tasks start together.

A task that was lost is a new pod of the group. Where fewer tasks are left than start together, because others
have ended, the controller of the job asks for no more than these: they would wait for ever.
"""

from collections.abc import Callable

from eclectus.model.events import Event, GangGone, GangSeen
from eclectus.model.objects import Gang, GangKey
from eclectus.sim.base.machine import TaskRun
from eclectus.sim.base.work import Arrival, WorkClass

API = "scheduling.k8s.io"


def gang_key(number: int, work_class: WorkClass) -> GangKey | None:
    """The PodGroup of a job; None if its tasks start each by itself."""
    return GangKey(API, work_class.namespace, f"job-{number}") if work_class.gang else None


class JobGangs:
    """The PodGroups that exist."""

    def __init__(self, notify: Callable[[Event], None]) -> None:
        self._notify = notify
        self._left: dict[GangKey, int] = {}  # tasks that have not ended

    def arrive(self, number: int, job: Arrival) -> None:
        """A job arrives; its pods come next."""
        key = gang_key(number, job.work_class)
        if key is not None:
            self._left[key] = len(job.sizes)
            self._notify(GangSeen(Gang(key, job.work_class.gang)))

    def end(self, run: TaskRun) -> None:
        """A task has ended for good; with the last one its group is deleted."""
        key = run.task.gang
        if key is not None:
            self._left[key] -= 1
            if not self._left[key]:
                del self._left[key]
                self._notify(GangGone(key))

    def lose(self, run: TaskRun) -> None:
        """A task was lost, and its new pod comes next."""
        key = run.task.gang
        if key is not None and self._left[key] < run.work_class.gang:
            self._notify(GangSeen(Gang(key, self._left[key])))
