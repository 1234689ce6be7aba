"""DagJobs as a watched kind, and what a write of their plans needs to know of them."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet

from msgspec import Raw, Struct

from eclectus.api.dag_job import DagJob, PlanStatus
from eclectus.api.names import DAG_JOB
from eclectus.kube.dag_jobs import Shape, decode_dag_job, job_from, shape_from
from eclectus.kube.objects import decode_head
from eclectus.live.watch.reflector import ObservedObject
from eclectus.model.errors import MalformedError
from eclectus.model.events import Event, JobGone, JobSeen


class PlanState(Struct, frozen=True, gc=False):
    """What a patch of `status.plan` needs to know of the job."""

    resource_version: str
    plan: PlanStatus | None  # as written before


class WatchedDagJobs:
    """DagJobs, keyed by uid.

    One that is deleted, has finished, cannot be read or asks for none of our schedulers counts as gone:
    nothing of it will be placed any more, or not by this process. What cannot be read is reported once for
    each generation.
    """

    def __init__(self, is_ours: Callable[[str], bool], shared: AbstractSet[str] = frozenset()) -> None:
        self._is_ours = is_ours  # whether a schedulerName is one of ours
        self._shared = shared  # classes of work that belong to no namespace
        self.plan_states: dict[str, PlanState] = {}  # uid -> of each job that counts
        self._shapes: dict[str, tuple[int, Shape | None]] = {}  # uid -> (generation, None: cannot be read)

    def key(self, raw: Raw) -> tuple[str, str]:
        """The uid: another job of the same name is another job."""
        metadata = decode_head(raw).metadata
        if not metadata.uid:
            raise MalformedError(DAG_JOB, metadata.name or "?", "metadata.uid", "missing")
        return metadata.uid, metadata.resource_version

    def observe(self, raw: Raw, _now: float) -> ObservedObject:
        """JobSeen, or JobGone for one that does not count."""
        job = decode_dag_job(raw)
        meta = job.metadata
        shape, problem = self._shape(job)
        if shape is None or self._is_over(job) or not any(map(self._is_ours, shape.profiles)):
            self.plan_states.pop(meta.uid, None)
            return ObservedObject(meta.uid, meta.resource_version, JobGone(meta.uid), problem=problem)
        self.plan_states[meta.uid] = PlanState(meta.resource_version, job.status.plan)
        return ObservedObject(meta.uid, meta.resource_version, JobSeen(job_from(job, shape)))

    def gone(self, key: str) -> Event:
        """The job is deleted."""
        self.plan_states.pop(key, None)
        self._shapes.pop(key, None)
        return JobGone(key)

    def _shape(self, job: DagJob) -> tuple[Shape | None, MalformedError | None]:
        """Its shape, and what is wrong with it if that has not been reported.

        Most updates change the status alone.
        """
        uid, generation = job.metadata.uid, job.metadata.generation
        known = self._shapes.get(uid)
        if known is not None and known[0] == generation:
            return known[1], None
        shape: Shape | None = None
        problem: MalformedError | None = None
        try:
            shape = shape_from(job, self._shared)
        except MalformedError as error:
            problem = error
        self._shapes[uid] = generation, shape
        return shape, problem

    @staticmethod
    def _is_over(job: DagJob) -> bool:
        return job.status.has_finished or job.metadata.deletion_timestamp is not None
