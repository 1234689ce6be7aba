"""Benchmarks that are copies of recent pods: which pod of a class is copied, and what of it.

Rosella's benchmarks are tasks of the recent workload. Here each run does the work of one pod of the class
once more: of one drawn uniformly from those that have succeeded not long ago in the namespace of the probes
and ask for it, by a label and by the annotation that nothing is wrong if their work is done twice.

A copy has the containers, amounts, constraints on nodes, ServiceAccount, Secrets and ConfigMaps of its
original. Who creates pods in a namespace may give all of that to any pod there, so nobody gets a right by a
copy; across namespaces nothing is copied. It has none of the original's labels and annotations: by these
Services, controllers, budgets and pod groups would take it for one of theirs. A pod that needs more, or of
which a copy would do other work, is refused.
"""

import logging
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from math import inf

from eclectus.api.common import time_seconds, without_nulls
from eclectus.api.names import BENCHMARK_LABEL, CLASS_LABEL, COPY_OF_LABEL, IDEMPOTENT, RUN_ID_LABEL
from eclectus.api.node_probe import NodeProbe, Recent, Run
from eclectus.kube.requests import FieldError
from eclectus.kubeclient.client import Object, list_objects, list_pages
from eclectus_operator import convert, copied_pods
from eclectus_operator.convert import ShapeError, shape_problem
from eclectus_operator.node_probes.dispatch import Blocked, Target
from eclectus_operator.node_probes.probe_pods import Original
from eclectus_operator.node_probes.probe_templates import (
    CONTAINER_FIELDS,
    ENV_SOURCES,
    POD_FIELDS,
    RUNTIME_DEFAULT,
    VOLUME_FIELDS,
    Allowed,
    spec_problems,
)
from eclectus_operator.observed import Ended, Pod, run_seconds
from eclectus_operator.operator_context import OperatorContext
from eclectus_operator.pod_requests import CONTAINERS, shareable_requests

PODS_MOST = 500  # of a class, among which one is drawn
COPIED_VOLUMES = ("configMap", "downwardAPI", "projected", "secret")
COPIED = Allowed(
    pod=(
        *POD_FIELDS,
        "affinity",  # of nodes alone
        "automountServiceAccountToken",
        "enableServiceLinks",
        "hostAliases",
        "hostUsers",
        "imagePullSecrets",
        "nodeSelector",
        "os",
        "serviceAccountName",
        "shareProcessNamespace",
    ),
    container=(*CONTAINER_FIELDS, "envFrom"),
    volume=(*VOLUME_FIELDS, *COPIED_VOLUMES),
    env=(*ENV_SOURCES, "configMapKeyRef", "secretKeyRef"),
)
# What the operator sets, what admission derives from the rest, and what is about the places of other pods.
LEFT_OUT = (
    *copied_pods.NOT_COPIED,
    "activeDeadlineSeconds",
    "overhead",
    "preemptionPolicy",
    "priorityClassName",
    "readinessGates",
    "restartPolicy",
    "schedulerName",
    "serviceAccount",
    "terminationGracePeriodSeconds",
    "topologySpreadConstraints",
)
_OWN_METADATA = ("metadata.labels", "metadata.annotations")
_log = logging.getLogger(__name__)


class OriginalError(ValueError):
    """The pod of which a run was to be a copy can be copied no more: the message says why."""


async def with_original(
    context: OperatorContext, probe: NodeProbe, target: Target, recent: Recent
) -> Target | Blocked:
    """The target with the pod to copy; or why there is none. Raises ApiError."""
    name, since = target.work.name, context.now() - recent.within_seconds
    found = [each for each in await _listed(context, name) if _ended(each) >= since]
    context.rng.shuffle(found)
    refused: dict[str, str] = {}
    for each in found:
        problem, pod = why_not(each, probe), each["metadata"]["name"]
        if not problem:
            return replace(target, original=original_of(each))
        _log.info("pod %s is not copied as a benchmark: %s", pod, problem)
        refused[pod] = problem
    if refused:
        pod, problem = min(refused.items())
        message = f"no recent pod of class {name} may be copied, of {len(refused)}; {pod}: {problem}"
        return Blocked("RecentRefused", message)
    message = (
        f"no pod of class {name} with the label {BENCHMARK_LABEL}=true has succeeded in namespace "
        f"{context.settings.namespace} in the last {recent.within_seconds:.0f} s"
    )
    return Blocked("NothingRecent", message)


async def read_original(context: OperatorContext, probe: NodeProbe, run: Run) -> Original:
    """The pod of which a recorded run is to be a copy. Raises OriginalError, ApiError."""
    query = _query(run.class_name)
    query["fieldSelector"] += f",metadata.name={run.original or ''}"
    # Listed, not read: so the operator needs no further right to pods of the namespace.
    for found in await list_objects(context.api, context.pods_path, query):
        if problem := why_not(found, probe):
            raise OriginalError(f"pod {run.original} may not be copied any more: {problem}")
        return original_of(found)
    raise OriginalError(f"pod {run.original}, of which it was to be a copy, is gone or asks for it no more")


async def _listed(context: OperatorContext, class_name: str) -> list[Object]:
    """The pods of a class that have succeeded and ask for it. Raises ApiError."""
    found: list[Object] = []
    async for page in list_pages(context.api, context.pods_path, _query(class_name)):
        found += page
        if len(found) >= PODS_MOST:
            break
    return found[:PODS_MOST]


def _query(class_name: str) -> dict[str, str]:
    """Neither probes nor copies of stragglers: a copy of one could be pinned to where it must not be."""
    wanted = f"{BENCHMARK_LABEL}=true,{CLASS_LABEL}={class_name},!{RUN_ID_LABEL},!{COPY_OF_LABEL}"
    return {"labelSelector": wanted, "fieldSelector": "status.phase=Succeeded"}


def original_of(found: Object) -> Original:
    """What is copied of a pod that may be copied."""
    return Original(found["metadata"]["name"], _copied(without_nulls(found["spec"])))


def why_not(found: Object, probe: NodeProbe) -> str:
    """Why a pod may not be copied as a benchmark; empty if it may."""
    try:
        return next(_problems(without_nulls(found), convert.read_authored(found, Pod), probe), "")
    except (FieldError, ShapeError) as error:
        return f"it cannot be read: {error}"


def _problems(found: Object, pod: Pod, probe: NodeProbe) -> Iterator[str]:
    spec, most = found["spec"], probe.spec.deadlines.running_seconds
    if pod.metadata.annotations.get(IDEMPOTENT) != "true":
        yield copied_pods.NOT_IDEMPOTENT
    if problem := copied_pods.why_not(spec, pod.metadata.labels):
        yield problem
    for claim in copied_pods.claims(spec):
        yield f"it mounts the claim {claim}, and a benchmark mounts no volume that others use"
    seconds = run_seconds(_ends(pod))
    if seconds is not None and seconds > most:
        yield f"it has run for {seconds:.0f} s, longer than deadlines.runningSeconds allows ({most:.0f})"
    copied = _copied(spec)
    if problem := shape_problem({"spec": copied}):
        raise ShapeError(problem)
    yield from spec_problems("spec", copied, COPIED)
    yield from _unrestricted(copied)
    if any(path.startswith(_OWN_METADATA) for path in _field_paths(copied)):
        yield "it reads its labels or annotations (fieldRef), which a copy does not have"
    shareable_requests(copied)  # whether they can be read


def _copied(spec: Object) -> Object:
    return {field: value for field, value in spec.items() if field not in LEFT_OUT}


def _ends(pod: Pod) -> list[Ended]:
    return [each.state.terminated for each in pod.container_statuses if each.state.terminated]


def _ended(found: Object) -> float:
    """When its last container has ended; of a pod of which that is not known, as if it were now."""
    try:
        ends = _ends(convert.read_authored(found, Pod))
    except ShapeError:
        return inf
    return max((time_seconds(each.finished_at) for each in ends if each.finished_at), default=inf)


def _unrestricted(spec: Object) -> Iterator[str]:
    """What the `restricted` standard wants to be said and the spec does not say.

    Were it added to the copy, the copy would have less rights than its original, and might fail for that.
    """
    for one in chain.from_iterable(spec.get(kind, []) for kind in CONTAINERS):
        own = one.get("securityContext", {})
        both = {**spec.get("securityContext", {}), **own}
        is_said = {
            "runAsNonRoot: true": both.get("runAsNonRoot") is True,
            "seccompProfile: {type: RuntimeDefault}": both.get("seccompProfile") == RUNTIME_DEFAULT,
            "allowPrivilegeEscalation: false": own.get("allowPrivilegeEscalation") is False,
            "capabilities: {drop: [ALL]}": "ALL" in own.get("capabilities", {}).get("drop", []),
        }
        missing = [field for field, holds in is_said.items() if not holds]
        if missing:
            yield (
                f"its container {one['name']} does not meet the restricted Pod Security standard, which a "
                f"benchmark must: its securityContext lacks {', '.join(missing)}"
            )


def _field_paths(spec: Object) -> Iterator[str]:
    """The fields of the pod that its containers read, as variables or files."""
    for one in chain.from_iterable(spec.get(kind, []) for kind in CONTAINERS):
        for variable in one.get("env", []):
            yield variable.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath", "")
    for volume in spec.get("volumes", []):
        for source in (volume, *volume.get("projected", {}).get("sources", [])):
            for item in source.get("downwardAPI", {}).get("items", []):
                yield item.get("fieldRef", {}).get("fieldPath", "")
