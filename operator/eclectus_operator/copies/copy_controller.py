"""The controller of copies of pods that nothing controls and that ask for it, where the admin allows it.

Every sync lists the pods with the label `eclectus.dev/speculative: "true"`, which copies have too, joins each
with its copy, and takes the next step of the table (eclectus/maths/copies.py). Nothing is recorded: whose
copy a pod is, its label says.

A pod that its user deletes takes its copy with it. One that is gone because of its node, or for room, leaves
its work to the copy. What tells them apart is the condition DisruptionTarget; a pod that was never seen to go
counts as disrupted, so that no work is lost.

Of a pod that a Job controls there is no copy: the Job's controller would take it for one too many. If the pod
says that it is `restartable`, and the scheduler that this is worth it, it is ended instead, and the Job makes
another (restarts.py).

Pods of DagJobs are not looked at here (dag_jobs/job_copies.py).
"""

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from msgspec import Struct, structs

from eclectus.api.common import time_seconds
from eclectus.api.names import (
    COPY_OF_LABEL,
    DAG_JOB_LABEL,
    IDEMPOTENT,
    ORIGINAL,
    RESTARTABLE,
    SPECULATIVE_LABEL,
    STRAGGLING,
)
from eclectus.kubeclient.api_errors import ApiError, MissingError
from eclectus.kubeclient.client import Object, list_pages
from eclectus.maths.copies import NO_POD, Attempt, Doing, Step, next_step
from eclectus_operator import convert, copied_pods
from eclectus_operator.convert import ShapeError
from eclectus_operator.copies import restarts
from eclectus_operator.observed import DISRUPTION, Metadata, Pod, PodCondition
from eclectus_operator.operator_context import NotLeadingError, OperatorContext
from eclectus_operator.pod_stages import life
from eclectus_operator.races import OVERTAKEN, RESTARTED, Pauses, Race, RaceSync

SELECTOR = f"{SPECULATIVE_LABEL}=true,!{DAG_JOB_LABEL}"
MOST_STEPS = 50  # of one sync in one namespace
RETRY_SECONDS = 2.0
_log = logging.getLogger(__name__)


class BarePod(Struct, frozen=True, gc=False):
    """A pod that asks for a copy, or is one. Times are seconds since the epoch."""

    metadata: Metadata
    node: str
    doing: Doing
    body: Object  # as listed
    controller: str = ""  # what controls it: kind and name
    is_disrupted: bool = False
    is_straggling: bool = False
    is_worth_restarting: bool = False  # it straggles, and rather than copied it should be ended
    lags: str = ""
    began: float | None = None
    finished: float | None = None
    stage_until: float | None = None  # of a copy, and of one that the operator has ended
    late: str = ""
    stays: str = ""  # why the operator, which has ended it, does not delete it without its node

    @property
    def name(self) -> str:
        """Its name."""
        return self.metadata.name

    @property
    def uid(self) -> str:
        """Its uid."""
        return self.metadata.uid

    @property
    def version(self) -> str | None:
        """As it was read."""
        return self.metadata.resource_version

    @property
    def copy_of(self) -> str:
        """The uid of its original; empty if it is no copy."""
        return self.metadata.labels.get(COPY_OF_LABEL, "")

    @property
    def has_ended(self) -> bool:
        """Whether all its containers have ended."""
        return self.doing in (Doing.SUCCEEDED, Doing.FAILED)

    @property
    def is_unwanted(self) -> bool:
        """Whether its user is deleting it."""
        return self.doing is Doing.LEAVING and not self.is_disrupted


def read(found: Object) -> BarePod:
    """A listed pod. Raises ShapeError."""
    pod = convert.read_authored(found, Pod)
    straggling, disrupted = pod.condition(STRAGGLING), pod.condition(DISRUPTION)
    owner = next((each for each in pod.metadata.owner_references if each.controller), None)
    ended_as = "" if disrupted is None or not pod.metadata.deletion_timestamp else disrupted.reason
    is_timed = COPY_OF_LABEL in pod.metadata.labels or ended_as in (OVERTAKEN, RESTARTED)
    stage_until, late = life(pod, copied_pods.DEADLINES) if is_timed else (None, "")
    ends = [each.state.terminated for each in pod.container_statuses if each.state.terminated]
    finishes = [time_seconds(each.finished_at) for each in ends if each.finished_at]
    return BarePod(
        pod.metadata,
        pod.spec.node_name,
        _doing(pod),
        found,
        controller=f"{owner.kind} {owner.name}" if owner else "",
        is_disrupted=disrupted is not None and disrupted.status == "True",
        is_straggling=straggling is not None and straggling.status == "True",
        is_worth_restarting=_is_worth_restarting(pod.metadata, straggling),
        lags="" if straggling is None else straggling.message,
        began=pod.began,
        finished=max(finishes, default=None),
        stage_until=stage_until,
        late=late,
        stays="its Job makes another one when it is gone" if ended_as == RESTARTED else "",
    )


def _is_worth_restarting(metadata: Metadata, straggling: PodCondition | None) -> bool:
    is_worth_it = straggling is not None and straggling.reason == "WorthRestarting"
    return is_worth_it and metadata.annotations.get(RESTARTABLE) == "true"


def _doing(pod: Pod) -> Doing:
    if pod.metadata.deletion_timestamp:
        return Doing.LEAVING
    known = {"Succeeded": Doing.SUCCEEDED, "Failed": Doing.FAILED, "Running": Doing.RUNS}
    return known.get(pod.status.phase, Doing.WAITS)


def races(pods: Iterable[BarePod], unwanted: set[str], now: float) -> Iterator[Race[BarePod]]:
    """The race of each task. `unwanted`: uids of originals that their users were seen to delete."""
    listed = list(pods)
    copies = {pod.copy_of: pod for pod in sorted(listed, key=_age, reverse=True) if pod.copy_of}
    originals = {pod.uid: pod for pod in listed if not pod.copy_of}
    for uid in sorted(originals.keys() | copies.keys()):
        original, copy = originals.get(uid), copies.get(uid)
        is_overdue = copy is not None and copy.stage_until is not None and now >= copy.stage_until
        step = next_step(
            _attempt(original),
            _attempt(copy),
            is_straggling=original is not None and original.is_straggling,
            is_wanted=uid not in unwanted,
            is_overdue=is_overdue,
        )
        yield Race(original, copy, step, is_overdue)


def _age(pod: BarePod) -> tuple[str, str]:
    return pod.metadata.creation_timestamp or "", pod.name


def _attempt(pod: BarePod | None) -> Attempt:
    if pod is None:
        return NO_POD
    return Attempt(pod.doing, pod.name, float("inf") if pod.finished is None else pod.finished)


@dataclass
class _Known:
    """What is remembered of a namespace. Losing it costs a try and an event more."""

    pauses: Pauses = field(default_factory=Pauses)
    unwanted: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)  # originals of which was said why they get no copy
    gone: set[str] = field(default_factory=set)  # originals that do not exist any more, of copies that do
    forced: set[str] = field(default_factory=set)  # pods that were not gone in time


class CopyController:
    """The work of one operator on copies of pods that nothing controls, sync by sync."""

    def __init__(self, context: OperatorContext) -> None:
        self._context = context
        self._known = {namespace: _Known() for namespace in context.settings.copy_namespaces}

    async def sync(self) -> float:
        """Take the next steps in each namespace. Seconds until the next sync. Raises NotLeadingError.

        A namespace whose pods cannot be listed delays no other.
        """
        now = self._context.now()
        wake_at = now + self._context.settings.look_seconds
        for namespace, known in self._known.items():
            try:
                wake_at = min(wake_at, await self._sync(namespace, known))
            except NotLeadingError:
                raise
            except ApiError as error:
                _log.warning("copies in %s: %s", namespace, error)
                wake_at = min(wake_at, now + RETRY_SECONDS)
        return max(0.0, wake_at - self._context.now())

    async def _sync(self, namespace: str, known: _Known) -> float:
        """When the next sync of this namespace is due."""
        path, now = f"/api/v1/namespaces/{namespace}/pods", self._context.now()
        pods = await self._list(path)
        pods += await self._unlisted(path, pods, known)
        exist = {pod.copy_of or pod.uid for pod in pods}
        known.pauses.forget_but(exist)
        known.refused &= exist
        known.gone &= exist
        known.forced &= {pod.uid for pod in pods}
        known.unwanted = known.unwanted & exist | {pod.uid for pod in pods if pod.is_unwanted}
        running = RaceSync(self._context, path, known.pauses, forced=known.forced)
        steps = 0
        for race in races(pods, known.unwanted, now):
            running.is_overdue(race.copy)  # if it is not, the next sync is due when it will be
            late = race.original if running.is_overdue(race.original) else None
            if race.step in (Step.WAIT, Step.TAKE_OVER) and late is None:
                continue
            if steps == MOST_STEPS:
                running.wake_by(now)
                break
            steps += 1
            if late is not None:
                await running.force(late.metadata, late, late.stays)
            await self._take(running, known, race, namespace)
        return running.wake_at

    async def _list(self, path: str) -> list[BarePod]:
        """The pods that ask for copies, and copies. One that cannot be read is left out."""
        found = []
        async for page in list_pages(self._context.api, path, {"labelSelector": SELECTOR}):
            for each in page:
                try:
                    found.append(read(each))
                except ShapeError as error:
                    _log.warning("%s/%s: %s", path, each["metadata"]["name"], error)
        return found

    async def _unlisted(self, path: str, pods: list[BarePod], known: _Known) -> list[BarePod]:
        """The originals of copies that do not ask for copies any more: of two pods only one may be left."""
        listed, found = {pod.uid for pod in pods}, []
        for copy in pods:
            name = copy.metadata.annotations.get(ORIGINAL, "")
            if not copy.copy_of or copy.copy_of in listed | known.gone or not name:
                continue
            try:
                original = read(await self._context.api.send("GET", f"{path}/{name}"))
            except (MissingError, ShapeError):
                known.gone.add(copy.copy_of)
                continue
            if original.uid != copy.copy_of:
                known.gone.add(copy.copy_of)
            else:
                found.append(structs.replace(original, is_straggling=False))
        return found

    async def _take(self, running: RaceSync, known: _Known, race: Race[BarePod], namespace: str) -> None:
        original = race.original
        about = original or race.copy
        if about is None:
            return
        if race.step is not Step.CREATE or original is None:
            await running.take(about.metadata, race)
            return
        if known.pauses.holds(original.uid, self._context.now()):
            return
        is_restart = original.is_worth_restarting
        problem = await (self._restart_problem if is_restart else self._problem)(original, namespace)
        if not problem and is_restart:
            await running.restart(original.metadata, original)
        elif not problem:
            has_no_requests = self._context.settings.copy_requests == "none"
            body = copied_pods.copy_of(original.body, has_no_requests=has_no_requests)
            await running.start(original.metadata, race, body)
        elif original.uid not in known.refused:
            known.refused.add(original.uid)
            await running.refuse(original.metadata, original, problem, is_restart=is_restart)

    async def _restart_problem(self, pod: BarePod, namespace: str) -> str:
        """Why a pod is not ended, although its work would end sooner elsewhere; empty if it may be."""
        kind, _, name = pod.controller.partition(" ")
        if kind != "Job":
            return "no Job controls it, so nothing would make another pod"
        try:
            found = await self._context.api.send("GET", f"/apis/batch/v1/namespaces/{namespace}/jobs/{name}")
        except NotLeadingError:
            raise
        except ApiError as error:
            return f"its Job {name} could not be read: {error.message}"
        return restarts.why_not(found)

    async def _problem(self, pod: BarePod, namespace: str) -> str:
        """Why a pod gets no copy; empty if it may have one."""
        kind = pod.controller.partition(" ")[0]
        if kind == "Job":
            return (
                f"it is controlled by {pod.controller}, which would delete one of the two; use a DagJob, or "
                "an Indexed Job of two completions with successPolicy"
            )
        if pod.controller:
            return f"it is controlled by {pod.controller}, which would replace it or delete its copy"
        if pod.metadata.annotations.get(IDEMPOTENT) != "true":
            return copied_pods.NOT_IDEMPOTENT
        spec = pod.body["spec"]
        try:
            found = copied_pods.why_not(spec, pod.metadata.labels)
            return found or await copied_pods.claim_problem(self._context, namespace, spec)
        except NotLeadingError:
            raise
        except ApiError as error:
            return f"its claims could not be read: {error.message}"
