"""The controller of DagJobs: syncs each job when an event is about it, or when it has something to do.

Every sync of a job starts from what the API server says. All jobs are listed now and then, which finds what
no watch has reported and what earlier runs of a job have taken; between two lists only the jobs are read that
are due. A job that fails to sync delays no other, and the next job is always of the namespace whose jobs have
taken the least time: one tenant's jobs wait for one sync of another's, however many and large those are.
"""

import logging

from eclectus.api.dag_job import DagJob
from eclectus.api.names import API_VERSION, DAG_JOB, DAG_JOBS
from eclectus.kubeclient.api_errors import ApiError, ConflictError, MissingError
from eclectus.kubeclient.client import Object, list_pages
from eclectus_operator import convert
from eclectus_operator.convert import ShapeError
from eclectus_operator.dag_jobs import job_status
from eclectus_operator.dag_jobs.estimates import History
from eclectus_operator.dag_jobs.job_pools import JobPools
from eclectus_operator.dag_jobs.job_sync import RETRY_SECONDS, JobKey, KnownJob, key_of, sync_job
from eclectus_operator.dag_jobs.quotas import Quotas
from eclectus_operator.operator_context import NotLeadingError, OperatorContext

ALL_JOBS_PATH = f"/apis/{API_VERSION}/{DAG_JOBS}"
PODS_PER_SECOND = 500  # listed: a job with more pods is synced less often
# A job rests nine times as long as its sync has taken, within these bounds: its pods change together.
MIN_SECONDS, MOST_SECONDS, REST = 0.2, 1.0, 9.0
MOST_RETRY_SECONDS = 60.0  # after failed syncs of a job
SYNC_SECONDS = 2.0  # one sync begins no further job after that: events of other jobs have arrived meanwhile
HALF_SECONDS = 60.0  # after which half of the time that a namespace has taken no longer counts
_log = logging.getLogger(__name__)


class DagController:
    """The work of one operator on DagJobs, sync by sync."""

    def __init__(self, context: OperatorContext) -> None:
        self._context = context
        self._jobs: dict[JobKey, KnownJob] = {}
        self._taken: dict[str, tuple[float, float]] = {}  # by namespace: seconds of syncs, and as of when
        self._history = History()
        self._quotas = Quotas()
        self._pools = JobPools(context)
        self._listed_at = float("-inf")

    def notice(self, key: JobKey) -> None:
        """Something has happened to a job or to one of its pods: sync it as soon as it may be."""
        known = self._jobs.setdefault(key, KnownJob())
        known.due = min(known.due, known.least)

    async def sync(self) -> float:
        """Sync the jobs that are due. Seconds until the next one is.

        Raises ApiError when jobs cannot be listed: MissingError where DagJob is not defined.
        """
        if self._context.now() - self._listed_at >= self._context.settings.look_seconds:
            await self._list_jobs()
        now = begin = self._context.now()
        waiting = self._due_by_namespace(now)
        while waiting and now - begin < SYNC_SECONDS:
            namespace = min(waiting, key=lambda each: self._taken_by(each, now))
            key = waiting[namespace].pop()
            if not waiting[namespace]:
                del waiting[namespace]
            await self._attempt(key, self._jobs[key])
            before, now = now, self._context.now()
            self._taken[namespace] = self._taken_by(namespace, before) + now - before, now
        self._context.metrics.count_jobs(each.phase for each in self._jobs.values() if each.phase)
        next_list = self._listed_at + self._context.settings.look_seconds
        wake_at = min((next_list, *(each.due for each in self._jobs.values())))
        return max(0.0, wake_at - self._context.now())

    def _due_by_namespace(self, now: float) -> dict[str, list[JobKey]]:
        """The jobs that are due, of each namespace the first one last.

        Jobs that are known come first: a user who may create pods may name jobs on them that do not exist.
        """
        due = [key for key, each in self._jobs.items() if each.due <= now]
        due.sort(key=lambda key: (self._jobs[key].phase is None, self._jobs[key].due), reverse=True)
        found: dict[str, list[JobKey]] = {}
        for key in due:
            found.setdefault(key[0], []).append(key)
        return found

    def _taken_by(self, namespace: str, now: float) -> float:
        """The seconds that the syncs of a namespace have taken, of which older ones count less."""
        seconds, at = self._taken.get(namespace, (0.0, now))
        return float(seconds * 0.5 ** ((now - at) / HALF_SECONDS))

    async def _list_jobs(self) -> None:
        """Make all jobs due that have something to do, forget those that are gone, and renew the history."""
        history, found = History(), set[JobKey]()
        try:
            async for page in list_pages(self._context.api, ALL_JOBS_PATH):
                for each in page:
                    key = each["metadata"]["namespace"], each["metadata"]["name"]
                    found.add(key)
                    if self._is_active(each, history):
                        self.notice(key)
        except MissingError as error:
            raise MissingError(f"{DAG_JOB} is not defined here: install the chart's definitions") from error
        self._history = history
        for gone in self._jobs.keys() - found:
            self._quotas.forget(gone)
        await self._pools.look()  # a Pool that comes before the next look is known by what it holds back
        self._quotas.has_pools = bool(self._pools)
        self._jobs = {key: each for key, each in self._jobs.items() if key in found}
        namespaces = {namespace for namespace, _ in found}
        self._taken = {name: each for name, each in self._taken.items() if name in namespaces}
        self._listed_at = self._context.now()

    def _is_active(self, listed: Object, history: History) -> bool:
        """Whether a listed job has something to do; its run times become part of the history."""
        try:
            job = convert.read(listed, DagJob)
        except ShapeError:
            return True  # its sync reports it
        history.note(job)
        self._jobs.setdefault(key_of(job), KnownJob()).phase = job.phase
        if not job.status.has_finished or job.is_retried or self._listed_at < 0.0:
            return True  # an operator before this one may have ended without deleting its pods
        expiry = job_status.expiry(job)
        return expiry is not None and expiry <= self._context.now()

    async def _attempt(self, key: JobKey, known: KnownJob) -> None:
        """Sync a job. A failure is logged and stops no other job; it is tried again later."""
        try:
            await self._sync(key, known)
        except NotLeadingError:
            raise
        except ConflictError as error:  # such as when the scheduler has just written the plan
            _log.info("%s/%s: to be repeated: %s", *key, error)
            known.due = known.least = self._context.now() + MIN_SECONDS
        except (ApiError, ShapeError, ValueError) as error:
            _log.warning("%s/%s: %s", *key, error)
            known.due = known.least = self._context.now() + known.retry_seconds
            known.retry_seconds = min(known.retry_seconds * 2.0, MOST_RETRY_SECONDS)

    async def _sync(self, key: JobKey, known: KnownJob) -> None:
        began = self._context.now()
        done = await sync_job(self._context, key, known, self._history, self._quotas, pools=self._pools)
        if done is None:
            self._quotas.forget(key)
            del self._jobs[key]
            return
        known.phase = done.job.phase
        now = self._context.now()
        rest = min(max(MIN_SECONDS, REST * (now - began)), MOST_SECONDS)
        known.least = now + rest + len(done.pods) / PODS_PER_SECOND
        known.due, known.retry_seconds = max(done.wake_at, known.least), RETRY_SECONDS
