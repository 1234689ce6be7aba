"""What is wrong with a NodeProbe that passed its schema, as messages for its author.

The chart's ValidatingAdmissionPolicy rejects most of it at admission. It is checked again here, because a
cluster may run without the policy, and some of it only the operator knows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from eclectus.api.node_probe import NodeProbeSpec, ProbeClass
from eclectus.kube.requests import FieldError
from eclectus_operator.objects.convert import ShapeError
from eclectus_operator.objects.images import ImageError, parsed
from eclectus_operator.objects.pods import template_of
from eclectus_operator.objects.template_schema import shape_problem
from eclectus_operator.objects.zero_requests import shareable_requests
from eclectus_operator.settings import Settings

# Fields that the operator sets in every probe pod.
SET_BY_OPERATOR = (
    "activeDeadlineSeconds",
    "affinity",
    "automountServiceAccountToken",
    "ephemeralContainers",
    "nodeName",
    "nodeSelector",
    "preemptionPolicy",
    "priority",
    "priorityClassName",
    "restartPolicy",
    "schedulerName",
    "serviceAccount",
    "serviceAccountName",
    "terminationGracePeriodSeconds",
)
HOST_FIELDS = ("hostIPC", "hostNetwork", "hostPID", "hostUsers")
Object = dict[str, Any]


def problems(spec: NodeProbeSpec, settings: Settings) -> list[str]:
    """What is wrong, each with its path; empty if the spec is valid."""
    return [f"classes[{work.name}]: {wrong}" for work in spec.classes for wrong in _of_work(work, settings)]


def _of_work(work: ProbeClass, settings: Settings) -> Iterator[str]:
    if sum(each is not None for each in (work.unit, work.run, work.template)) != 1:
        yield "give exactly one of unit, run and template"
        return
    if work.unit is not None and not settings.unit_image:
        yield "this operator was given no image of the built-in benchmark (--unit-image); use run or template"
    if work.run is not None:
        if work.run.shell and (len(work.run.command or ()) != 1 or work.run.args is not None):
            yield "run: shell takes one command, the line for /bin/sh -c, and no args"
        yield from _of_image("run.image", work.run.image)
        yield from _of_requests("run", work, settings)
    if work.template is not None:
        wrong = shape_problem(work.template)
        yield from [f"template: {wrong}"] if wrong else _of_template(work.template["spec"])
        yield from () if wrong else _of_requests("template.spec", work, settings)


def _of_requests(path: str, work: ProbeClass, settings: Settings) -> Iterator[str]:
    try:
        shareable_requests(template_of(work, settings)["spec"])
    except (FieldError, ShapeError) as error:
        yield f"{path}: {error}"


def _of_template(spec: Object) -> Iterator[str]:
    for field in (*SET_BY_OPERATOR, *HOST_FIELDS):
        if field in spec:
            why = (
                "is set by the operator" if field in SET_BY_OPERATOR else "breaks the isolation from the node"
            )
            yield f"template.spec.{field}: {why}; leave it out"
    for volume in spec.get("volumes", []):
        if "emptyDir" not in volume:
            yield f"template.spec.volumes[{volume.get('name')}]: a probe may mount nothing but emptyDir"
    if not spec.get("containers"):
        yield "template.spec.containers: give at least one"
    for field in ("containers", "initContainers"):
        for one in spec.get(field, []):
            yield from _of_container(f"template.spec.{field}[{one.get('name')}]", one)


def _of_container(path: str, one: Object) -> Iterator[str]:
    yield from _of_image(f"{path}.image", one.get("image", ""))
    if any("hostPort" in port for port in one.get("ports", [])):
        yield f"{path}.ports: a probe may use no port of its node"
    sources = [each.get("valueFrom", {}) for each in one.get("env", [])]
    if "envFrom" in one or any("secretKeyRef" in each or "configMapKeyRef" in each for each in sources):
        yield f"{path}.env: give values; a probe may read no Secret and no ConfigMap"
    security = one.get("securityContext", {})
    wrong = [name for name in ("privileged", "allowPrivilegeEscalation") if security.get(name)]
    wrong += ["capabilities.add"] if security.get("capabilities", {}).get("add") else []
    for name in wrong:
        yield f"{path}.securityContext.{name}: a probe may have no privileges"


def _of_image(path: str, reference: str) -> Iterator[str]:
    try:
        parsed(reference)
    except ImageError as error:
        yield f"{path}: {error}"
