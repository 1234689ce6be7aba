"""Copies of stragglers: which pods may have one, and how it is made of its original.

A copy differs from its original by its name, the label `eclectus.dev/copy-of` with the original's uid, and a
node affinity that excludes the original's node. Where the admin wants it so, it requests nothing that can be
used without a request, as probes do.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Literal

from eclectus.api.names import (
    COPY_OF_LABEL,
    ESTIMATED_SECONDS,
    GROUP,
    IDEMPOTENT,
    JOB_WORK_SECONDS,
    ORIGINAL,
    PATH_SECONDS,
    PHASE_WEIGHTS,
)
from eclectus.api.node_probe import Deadlines
from eclectus.kube.cluster_objects import COSCHEDULING_LABEL
from eclectus.kubeclient.api_errors import MissingError
from eclectus.kubeclient.client import Object
from eclectus.maths.copies import copy_name
from eclectus_operator.operator_context import OperatorContext
from eclectus_operator.pod_requests import CONTAINERS, with_zero_requests

# Starting has the time of Pulling too: without events, an image that is being pulled looks like a start. A
# day is for a copy that hangs as its original does; one that works ends when its original has.
DEADLINES = Deadlines(starting_seconds=180, running_seconds=86_400)
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
READ_ONLY_MANY = "ReadOnlyMany"
_KEPT = (ESTIMATED_SECONDS, PATH_SECONDS, JOB_WORK_SECONDS, PHASE_WEIGHTS, IDEMPOTENT)  # annotations
# What the API server sets on a pod, and what only its node or a debugger adds.
NOT_COPIED = ("nodeName", "priority", "ephemeralContainers")
NOT_IDEMPOTENT = f'it lacks the annotation {IDEMPOTENT}: "true", which says that its work may be done twice'


# -- which pods may have a copy ---------------------------------------------------------------------


def why_not(spec: Object, labels: Mapping[str, str]) -> str:
    """Why a pod of this spec can have no copy, whatever it says; empty if it can, but for its claims."""
    return next((reason for reason, holds in _OBSTACLES.items() if holds(spec, labels)), "")


def _takes_port(spec: Object, _labels: Mapping[str, str]) -> bool:
    containers = (each for part in CONTAINERS for each in spec.get(part) or ())
    return any(port.get("hostPort") for each in containers for port in each.get("ports") or ())


_OBSTACLES: Mapping[str, Callable[[Object, Mapping[str, str]], bool]] = {
    "its restartPolicy is Always, so it never ends": (
        lambda spec, _: spec.get("restartPolicy", "Always") == "Always"
    ),
    "it belongs to a pod group, which starts as a whole": (
        lambda spec, labels: bool(spec.get("schedulingGroup")) or COSCHEDULING_LABEL in labels
    ),
    "it has a hostname or a subdomain, which two pods cannot share": (
        lambda spec, _: bool(spec.get("hostname") or spec.get("subdomain"))
    ),
    "it takes a port of its node (hostPort)": _takes_port,
    "it has claims for devices (resourceClaims)": lambda spec, _: bool(spec.get("resourceClaims")),
    "it has a volume with a claim of its own (ephemeral)": (
        lambda spec, _: any("ephemeral" in volume for volume in spec.get("volumes") or ())
    ),
}


def claims(spec: Object) -> Iterator[str]:
    """The names of the PersistentVolumeClaims that a pod of this spec mounts."""
    for volume in spec.get("volumes") or ():
        if "persistentVolumeClaim" in volume:
            yield volume["persistentVolumeClaim"]["claimName"]


async def claim_problem(context: OperatorContext, namespace: str, spec: Object) -> str:
    """Why the claims of a pod allow it no copy; empty if they do. Raises ApiError."""
    for name in claims(spec):
        path = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}"
        try:
            found = await context.api.send("GET", path)
        except MissingError:
            return f"its claim {name} does not exist"
        modes = found.get("spec", {}).get("accessModes") or ()
        if set(modes) != {READ_ONLY_MANY}:
            text = ", ".join(modes) or "none"
            return (
                f"its claim {name} has the access modes {text}: a copy on another node needs {READ_ONLY_MANY}"
            )
    return ""


# -- how a copy is made -----------------------------------------------------------------------------


def spec_of_copy(spec: Object, node: str, *, has_no_requests: bool) -> Object:
    """The spec of a pod's copy, which may run on any node but this one."""
    found = {field: value for field, value in spec.items() if field not in NOT_COPIED}
    found["affinity"] = {**(found.get("affinity") or {}), "nodeAffinity": node_affinity(spec, "NotIn", node)}
    return with_zero_requests(found) if has_no_requests else found


def node_affinity(spec: Object, operator: Literal["In", "NotIn"], node: str) -> Object:
    """The node affinity of a spec, limited to this node or to all others."""
    given = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    terms = (given.get(REQUIRED) or {}).get("nodeSelectorTerms") or [{}]
    by_name = {"key": "metadata.name", "operator": operator, "values": [node]}
    terms = [{**term, "matchFields": [*(term.get("matchFields") or []), by_name]} for term in terms]
    return {**given, REQUIRED: {"nodeSelectorTerms": terms}}


def copy_of(original: Object, *, has_no_requests: bool) -> Object:
    """The copy of a pod that nothing controls, ready to be created."""
    meta, spec = original["metadata"], original["spec"]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": copy_name(meta["name"]),
            "namespace": meta["namespace"],
            "labels": {**meta.get("labels", {}), COPY_OF_LABEL: meta["uid"]},
            "annotations": {**_annotations(meta.get("annotations", {})), ORIGINAL: meta["name"]},
        },
        "spec": spec_of_copy(spec, spec.get("nodeName", ""), has_no_requests=has_no_requests),
    }


def _annotations(given: Mapping[str, str]) -> Object:
    """Without what is about the original alone: its progress, its bind, and the file it was applied from."""
    return {
        key: value
        for key, value in given.items()
        if key in _KEPT or not key.startswith((f"{GROUP}/", "kubectl.kubernetes.io/"))
    }
