"""How many pods a DagJob may have waiting where Pools limit what starts. Pure.

Only the scheduler knows what a pool may still hold, and it says so on each pod that its pool has no room for.
So a stage with such a pod has no more pods waiting than it holds already, and at least one: it starts as soon
as there is room, and each start doubles what may wait. While the scheduler has said nothing, a few wait, or
as many as the job has held at a time, but a single one if another job of that pool is held back. Once it says
that nodes have no room, as many wait as without Pools: what a pool needs, and may take back from others, is
known by its pods.

The pods of a gang are all created all the same: it starts when all of them exist.
"""

from collections import Counter
from collections.abc import Mapping

from eclectus.api.dag_job import DagJob
from eclectus_operator.dag_jobs.tasks import Tasks

FIRST_PODS = 10  # that may wait, of a stage of which no pod is on a node
_Job = tuple[str, str]  # namespace and name
_Pool = tuple[str, str]  # namespace, and the Pool that the job asks for; empty: the namespace's


class Quotas:
    """What the pods of all jobs have shown."""

    def __init__(self) -> None:
        self.has_pools = False
        self._held: dict[_Job, int] = {}  # the most pods on nodes that a job has had since it was held back
        self._held_back: dict[_Job, _Pool] = {}  # jobs, and their pools
        self._jobs = Counter[_Pool]()  # of each pool, how many are held back

    def first_pods(self, job: DagJob, tasks: Mapping[str, Tasks]) -> int | None:
        """How many pods of a stage may wait at least, whatever it holds; None: as many as there may be.

        Notes how this job stands, for its later stages and for others.
        """
        key, pool = (job.metadata.namespace, job.metadata.name), (job.metadata.namespace, job.spec.pool)
        self._release(key)
        has_others, held = pool in self._jobs, sum(each.held for each in tasks.values())
        if any(each.is_held_back for each in tasks.values()):
            self._held_back[key] = pool
            self._jobs[pool] += 1
            self._held[key] = held
        else:
            held = self._held[key] = max(held, self._held.get(key, 0))
        if has_others:
            return 1
        return max(FIRST_PODS, held) if self.has_pools else None

    def forget(self, job: _Job) -> None:
        """The job has ended or is gone; no error if it is not known."""
        self._release(job)
        self._held.pop(job, None)

    def _release(self, job: _Job) -> None:
        pool = self._held_back.pop(job, None)
        if pool is not None:
            self._jobs[pool] -= 1
            if not self._jobs[pool]:
                del self._jobs[pool]
