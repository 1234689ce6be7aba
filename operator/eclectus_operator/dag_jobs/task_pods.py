"""The pods of a DagJob's tasks: how they are made and named, recognised, and what is read of them.

    <job>-<stage>-<number of the task>-<attempt>-<hash>[-r<replacement>]

with job and stage cut so that the name is a DNS label: it is the pod's host name too.

Names are deterministic: an operator that restarts computes the same ones, and the API server's 409
AlreadyExists says that the pod exists. The hash is made of the job's uid and the stage, so a job that is
deleted and created again does not take over pods of the old one, and no two stages have the same name for a
pod. A pod belongs to a job if its controller is the job, by uid; which task it is, its labels say.

The template is the user's, and the pod gets nothing more than it: it is created in the job's own namespace,
where Pod Security, quotas and admission apply to it as to any other pod. Set are the name, the labels and
annotations of Eclectus, the controller, `restartPolicy: Never`, the job's pool and a schedulerName where the
template names none, and in each container the variables TASK_INDEX, PARAM_NAME for each parameter of the job
and OUTPUT_STAGE for each stage whose output it reads, where it has none of that name. They come first, so
that its own variables may refer to them. The copy of a pod has the labels of its original, and is made as
copied_pods.py says.
"""

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any

from msgspec import Struct

from eclectus.api import names
from eclectus.api.common import time_seconds
from eclectus.api.dag_job import PARAMETER_PREFIX, DagJob, Stage
from eclectus.api.node_probe import Deadlines
from eclectus.kube.requests import thousandths, units
from eclectus.maths.copies import copy_name
from eclectus_operator import convert
from eclectus_operator.copied_pods import DEADLINES, spec_of_copy
from eclectus_operator.dag_jobs import outputs
from eclectus_operator.observed import (
    DISRUPTION,
    PULL_REASONS,
    ContainerStatus,
    Ended,
    Pod,
    PodCondition,
    controlled_by,
    run_seconds,
)
from eclectus_operator.pod_stages import life

Object = dict[str, Any]
OUT_OF_MEMORY = "OOMKilled"
DEADLINE = "DeadlineExceeded"  # of a pod that has run for longer than its own activeDeadlineSeconds
USUAL_GRACE_SECONDS = 30
LABEL_CHARACTERS = 63  # of a DNS label
CREATE_REASONS = ("CreateContainerConfigError", "CreateContainerError")  # such as a Secret that is missing
QUOTA_REASON = "WaitingForQuota"  # of the condition PodScheduled: its pool has no room for it
MOST_FACTOR = 64  # by which the memory of a template is raised at most
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
INDEX_VARIABLE = "TASK_INDEX"
SCHEDULER_NAME = "eclectus"
_NUMBER = re.compile(r"0|[1-9][0-9]{0,4}")


class Stuck(Struct, frozen=True, gc=False):
    """A container that its node tries to start in vain; `reason` and `message` are the kubelet's."""

    container: str
    reason: str
    message: str = ""


class TaskPod(Struct, frozen=True, gc=False):
    """A pod of a task. Times are seconds since the epoch."""

    name: str
    uid: str
    stage: str
    index: int
    attempt: int
    phase: str = "Pending"
    created: float = 0.0
    deletion: float | None = None  # when it is to be gone at the latest, if it is being deleted
    grace_seconds: float = 0.0  # of which so many are for its end
    # Kubernetes or its node ended it: its task has neither failed nor succeeded, whatever its containers did.
    is_disrupted: bool = False
    is_refused: bool = False  # its node did not accept it, so its task has never run
    node: str = ""
    killed: tuple[str, ...] = ()  # its containers that had too little memory
    memory_factors: Mapping[str, int] = {}  # by how much the memory of the template was raised for it
    ended: float | None = None
    run_seconds: float | None = None
    why: str = ""  # why it failed, for people
    stuck: Stuck | None = None  # what keeps it from starting, if its node says so
    waits_for: str = ""  # why it has no node yet, if its scheduler says so: a reason of PodScheduled
    version: str | None = None  # as it was read
    copy_of: str = ""  # the uid of its original, if it is the copy of a pod that straggles
    is_straggling: bool = False  # its scheduler says that a copy is expected to end earlier, and `lags` why
    lags: str = ""
    began: float | None = None  # when its containers began to run, and ended, by the clock of its node
    finished: float | None = None
    stage_until: float | None = None  # until when it may be in its stage of the life of a pod
    late: str = ""  # what is said if it still is then
    output: str = (
        ""  # what its first container has said at its end, if it has succeeded and others ask for it
    )
    has_claims: bool = False  # that no other node may use as long as its own may

    @property
    def raised_factors(self) -> dict[str, int]:
        """The memory factors of the attempt after this one: twice as much for what had too little."""
        found = dict(self.memory_factors)
        for container in self.killed:
            found[container] = min(found.get(container, 1) * 2, MOST_FACTOR)
        return found

    def is_late(self, now: float) -> bool:
        """Whether it has been in its stage for longer than it may."""
        return self.stage_until is not None and now >= self.stage_until

    def has_not_started(self, now: float) -> bool:
        """Whether its node has not started it in time."""
        is_starting = self.phase == "Pending" and bool(self.node) and self.deletion is None
        return is_starting and not self.copy_of and self.is_late(now)

    @property
    def has_ended(self) -> bool:
        """Whether all its containers have ended."""
        return self.phase in ("Succeeded", "Failed")

    @property
    def has_succeeded(self) -> bool:
        """Whether it has done its work."""
        return self.phase == "Succeeded" and not self.is_disrupted

    @property
    def has_failed(self) -> bool:
        """Whether it has failed by itself."""
        return self.phase == "Failed" and not (self.is_disrupted or self.is_refused)


@dataclass(frozen=True)
class NewPod:
    """A pod to create."""

    job: DagJob
    stage: Stage
    index: int = 0
    attempt: int = 0
    others: tuple[TaskPod, ...] = ()  # the task's pods that exist
    original: TaskPod | None = None  # the pod that it is the copy of
    has_no_requests: bool = False
    slow_nodes: frozenset[str] = frozenset()  # on which pods of the task have not started in time

    @cached_property
    def before(self) -> TaskPod | None:
        """The task's last pod, of those that exist."""
        return max(self.others, key=lambda pod: (pod.attempt, pod.created), default=None)

    @cached_property
    def name(self) -> str:
        """Its name; with a number at the end if pods of that attempt have the names before it."""
        if self.original is not None:
            return copy_name(self.original.name)
        digest = hashlib.sha256(f"{self.job.metadata.uid}/{self.stage.name}".encode()).hexdigest()[:8]
        head = f"{self.job.metadata.name}-{self.stage.name}".replace(".", "-")
        tail = f"-{self.index}-{self.attempt}-{digest}"
        taken, number, found = {pod.name for pod in self.others}, 0, _label(head, tail)
        while found in taken:
            number += 1
            found = _label(head, f"{tail}-r{number}")
        return found

    @cached_property
    def memory_factors(self) -> Mapping[str, int]:
        """By how much the memory of the template is raised for it."""
        return {} if self.before is None else self.before.raised_factors

    def body(self, estimates: Mapping[str, str]) -> Object:
        """The pod, ready to be created. Raises ValueError if its memory cannot be read."""
        meta, template = self.job.metadata, self.stage.template
        given = template.get("metadata", {})
        labels = {
            names.DAG_JOB_LABEL: meta.name,
            names.STAGE_LABEL: self.stage.name,
            names.TASK_INDEX_LABEL: str(self.index),
            names.ATTEMPT_LABEL: str(self.attempt),
        }
        pool = {names.POOL_LABEL: self.job.spec.pool} if self.job.spec.pool else {}
        annotations = {**given.get("annotations", {}), **estimates}
        if self.job.spec.is_speculative(self.stage):
            labels[names.SPECULATIVE_LABEL] = annotations[names.IDEMPOTENT] = "true"
        if self.original is not None:
            labels[names.COPY_OF_LABEL] = self.original.uid
            annotations[names.ORIGINAL] = self.original.name
        if self.memory_factors:
            annotations[names.MEMORY_FACTORS] = factors_text(self.memory_factors)
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": self.name,
                "namespace": meta.namespace,
                "labels": {**pool, **given.get("labels", {}), **labels},
                "annotations": annotations,
                "ownerReferences": [controlled_by(names.DAG_JOB, meta.name, meta.uid)],
                **({"finalizers": given["finalizers"]} if given.get("finalizers") else {}),
            },
            "spec": self._spec(template["spec"]),
        }

    def _spec(self, given: Object) -> Object:
        spec = _spec(self, given)
        if self.original is None:
            return spec
        return spec_of_copy(spec, self.original.node, has_no_requests=self.has_no_requests)


def read(found: Mapping[str, Any], job: DagJob, with_output: Collection[str] = frozenset()) -> TaskPod | None:
    """A task's pod; None if the job is not its controller, or its labels name no task. Raises ShapeError.

    `with_output`: the stages whose outputs others ask for.
    """
    pod = convert.read_authored(found, Pod)
    labels = pod.metadata.labels
    stage = job.spec.find_stage(labels.get(names.STAGE_LABEL, ""))
    index, attempt = labels.get(names.TASK_INDEX_LABEL, ""), labels.get(names.ATTEMPT_LABEL, "")
    if not is_owned(pod, job) or not _NUMBER.fullmatch(index) or not _NUMBER.fullmatch(attempt):
        return None
    if stage is None or int(index) >= stage.tasks:
        return None
    meta, status = pod.metadata, pod.status
    copy_of = labels.get(names.COPY_OF_LABEL, "")
    stage_until, late = life(pod, DEADLINES if copy_of else _deadlines(job))
    own, ends = _ends(status.container_statuses), _ends(pod.container_statuses)
    ended = _last_end(pod, ends.values())
    has_said = status.phase == "Succeeded" and stage.name in with_output
    is_disrupted, straggling = _is_disrupted(pod, ended), _condition(pod, names.STRAGGLING)
    return TaskPod(
        meta.name,
        meta.uid,
        stage.name,
        int(index),
        min(int(attempt), stage.retries + 1),
        status.phase,
        created=pod.created,
        deletion=time_seconds(meta.deletion_timestamp) if meta.deletion_timestamp else None,
        grace_seconds=_grace_seconds(pod),
        is_disrupted=is_disrupted,
        is_refused=not is_disrupted and _is_refused(pod),
        node=pod.spec.node_name,
        killed=tuple(container for container, end in ends.items() if end.reason == OUT_OF_MEMORY),
        memory_factors=_factors(meta.annotations.get(names.MEMORY_FACTORS, "")),
        ended=ended,
        run_seconds=run_seconds(own.values()),
        why=_why(pod, ends),
        stuck=_stuck(pod),
        waits_for=_waits_for(pod),
        version=meta.resource_version,
        copy_of=copy_of,
        is_straggling=straggling is not None and straggling.status == "True",
        lags="" if straggling is None else straggling.message,
        began=pod.began,
        finished=ended,
        stage_until=stage_until,
        late=late,
        output=_output(stage, own) if has_said else "",
        has_claims=pod.has_claims,
    )


def _output(stage: Stage, ends: Mapping[str, Ended]) -> str:
    """The termination message of the first container: a pod's status has them in another order."""
    containers = stage.template["spec"].get("containers") or [{}]
    end = ends.get(containers[0].get("name", ""))
    return "" if end is None else end.message


def _deadlines(job: DagJob) -> Deadlines:
    given = job.spec.pod_deadlines
    return Deadlines(
        inf if given.scheduling_seconds is None else given.scheduling_seconds,
        given.pulling_seconds,
        given.starting_seconds,
        inf,
        given.deleting_seconds,
    )


def _label(head: str, tail: str) -> str:
    """Both as a DNS label, of which the head is cut."""
    return head[: LABEL_CHARACTERS - len(tail)].rstrip("-") + tail


def is_owned(pod: Pod, job: DagJob) -> bool:
    """Whether the job is the pod's controller."""
    return any(each.controller and each.uid == job.metadata.uid for each in pod.metadata.owner_references)


def factors_text(factors: Mapping[str, int]) -> str:
    """Memory factors as an annotation: `container=2,container=4`."""
    return ",".join(f"{container}={factor}" for container, factor in sorted(factors.items()))


def _factors(text: str) -> dict[str, int]:
    parts = (part.partition("=") for part in text.split(","))
    return {
        container: min(int(factor), MOST_FACTOR)
        for container, _, factor in parts
        if container and _NUMBER.fullmatch(factor) and int(factor) > 0
    }


def _is_disrupted(pod: Pod, ended: float | None) -> bool:
    """Preempted, evicted or lost with its node, as a condition says, or deleted.

    One that has succeeded was so only if it was deleted before its end: many programs exit with 0 on SIGTERM.
    The condition alone stops nothing, and who has written it may find that nobody needs the room any more.
    """
    condition, deletion = pod.condition(DISRUPTION), pod.metadata.deletion_timestamp
    if pod.status.phase != "Succeeded":
        return deletion is not None or (condition is not None and condition.status == "True")
    return deletion is not None and (ended is None or time_seconds(deletion) - _grace_seconds(pod) <= ended)


def _grace_seconds(pod: Pod) -> float:
    """How long it may take to end once it is deleted."""
    grace = pod.metadata.deletion_grace_period_seconds
    return USUAL_GRACE_SECONDS if grace is None else grace


def _is_refused(pod: Pod) -> bool:
    """Whether its node did not accept it, such as for want of a device that the scheduler believed free.

    The kubelet then gives a reason of the pod as a whole, and no container has begun.
    """
    status = pod.status
    if status.phase != "Failed" or status.reason in ("", DEADLINE):
        return False
    return all(not (each.state.running or each.state.terminated) for each in pod.container_statuses)


def _waits_for(pod: Pod) -> str:
    found = _condition(pod, "PodScheduled")
    return "" if found is None or found.status != "False" else found.reason


def _condition(pod: Pod, kind: str) -> PodCondition | None:
    return next((each for each in pod.status.conditions or () if each.type == kind), None)


def _ends(statuses: Iterable[ContainerStatus] | None) -> dict[str, Ended]:
    """How the containers ended, of those that have."""
    return {each.name: each.state.terminated for each in statuses or () if each.state.terminated is not None}


def _stuck(pod: Pod) -> Stuck | None:
    """The first container that its node cannot start; None while all of them may only take their time."""
    if pod.status.phase != "Pending" or pod.metadata.deletion_timestamp is not None:
        return None
    statuses = pod.container_statuses
    waiting = ((each.name, each.state.waiting) for each in statuses if each.state.waiting is not None)
    found = (Stuck(name, state.reason, state.message) for name, state in waiting)
    return next((each for each in found if each.reason in (*PULL_REASONS, *CREATE_REASONS)), None)


def _last_end(pod: Pod, ends: Iterable[Ended]) -> float | None:
    """When it ended; where no container tells, when a condition changed last, or when it was created."""
    ended = max((time_seconds(each.finished_at) for each in ends if each.finished_at), default=None)
    if ended is not None or pod.status.phase not in ("Succeeded", "Failed"):
        return ended
    changes = (each.last_transition_time for each in pod.status.conditions or ())
    return max((time_seconds(each) for each in changes if each), default=pod.created)


def _why(pod: Pod, ends: Mapping[str, Ended]) -> str:
    """Why it failed; empty if it has not."""
    if pod.status.phase != "Failed":
        return ""
    wrong = [
        f"container {container}: {end.reason or 'Error'}, exit code {end.exit_code}"
        for container, end in ends.items()
        if end.exit_code
    ]
    return "; ".join(wrong) or pod.status.message or pod.status.reason or "it failed"


def _spec(new: NewPod, spec: Object) -> Object:
    factors, variables = new.memory_factors, _variables(new)
    changed: Object = {
        field: [_container(each, variables, factors.get(each.get("name", ""), 1)) for each in spec[field]]
        for field in ("initContainers", "containers")
        if spec.get(field)
    }
    refused_by = sorted({pod.node for pod in new.others if pod.is_refused and pod.node} | new.slow_nodes)
    if refused_by:
        # A preference: these may be all the nodes there are, and may accept it later.
        expressions = [{"key": "metadata.name", "operator": "NotIn", "values": [node]} for node in refused_by]
        term = {"weight": 100, "preference": {"matchFields": expressions}}
        affinity = spec.get("affinity") or {}
        of_nodes = affinity.get("nodeAffinity") or {}
        terms = [*(of_nodes.get(PREFERRED) or []), term]
        changed["affinity"] = {**affinity, "nodeAffinity": {**of_nodes, PREFERRED: terms}}
    return {"schedulerName": SCHEDULER_NAME, **spec, **changed, "restartPolicy": "Never"}


def _variables(new: NewPod) -> list[Object]:
    """The environment variables of each container."""
    # A kubelet takes $(NAME) in a value for a variable, and $$ for $: a parameter is to arrive as it is.
    values = {
        INDEX_VARIABLE: str(new.index),
        **{PARAMETER_PREFIX + each.name: each.value.replace("$", "$$") for each in new.job.spec.parameters},
    }
    found: list[Object] = [{"name": name, "value": value} for name, value in values.items()]
    return [*found, *outputs.variables(new.stage)] if new.stage.reads_outputs_of else found


def _container(one: Object, variables: Iterable[Object], factor: int) -> Object:
    env = one.get("env") or []
    own = {each.get("name") for each in env}
    env = [*(each for each in variables if each["name"] not in own), *env]
    changed: Object = {**one, "env": env}
    for part in ("requests", "limits") if factor > 1 else ():
        amounts = (one.get("resources") or {}).get(part) or {}
        if "memory" in amounts:
            memory = str(units(thousandths(str(amounts["memory"])) * factor))
            changed["resources"] = {**changed["resources"], part: {**amounts, "memory": memory}}
    return changed
