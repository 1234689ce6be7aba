"""What is wrong with a NodeProbe that passed its schema, as messages for its author.

Its pod template may have what a benchmark needs, and nothing by which its pod leaves the `restricted` Pod
Security standard, reads a Secret, or is taken for a pod of others. The lists say what is allowed, so
that a field that Kubernetes adds is refused until it is listed here.

The chart's ValidatingAdmissionPolicy is made of the same lists and rejects most of it at admission. It is
checked again here, because a cluster may run without the policy, and some of it only the operator knows.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from eclectus.api.names import GROUP
from eclectus.api.node_probe import NodeProbeSpec, ProbeClass
from eclectus.kube.requests import FieldError
from eclectus_operator.convert import ShapeError, shape_problem
from eclectus_operator.node_probes.probe_pods import template_of
from eclectus_operator.pod_requests import CONTAINERS, shareable_requests
from eclectus_operator.settings import Settings

Object = dict[str, Any]

POD_FIELDS = (
    "containers",
    "dnsConfig",
    "dnsPolicy",
    "initContainers",
    "resources",
    "runtimeClassName",
    "securityContext",
    "tolerations",
    "volumes",
)
CONTAINER_FIELDS = (
    "args",
    "command",
    "env",
    "image",
    "imagePullPolicy",
    "name",
    "ports",
    "resources",
    "restartPolicy",
    "securityContext",
    "terminationMessagePath",
    "terminationMessagePolicy",
    "volumeMounts",
    "workingDir",
)
SHARED_SECURITY_FIELDS = ("runAsGroup", "runAsNonRoot", "runAsUser", "seccompProfile")
POD_SECURITY_FIELDS = ("fsGroup", "fsGroupChangePolicy", *SHARED_SECURITY_FIELDS)
CONTAINER_SECURITY_FIELDS = (
    "allowPrivilegeEscalation",
    "capabilities",
    "privileged",
    "readOnlyRootFilesystem",
    *SHARED_SECURITY_FIELDS,
)
VOLUME_FIELDS = ("emptyDir", "name")
RUNTIME_DEFAULT = {"type": "RuntimeDefault"}
ENV_SOURCES = ("fieldRef", "resourceFieldRef")  # a probe reads no Secret and no ConfigMap


@dataclass(frozen=True)
class Allowed:
    """The fields that the spec of a probe's pod may have."""

    pod: tuple[str, ...]
    container: tuple[str, ...]
    volume: tuple[str, ...]
    env: tuple[str, ...]


TEMPLATE = Allowed(POD_FIELDS, CONTAINER_FIELDS, VOLUME_FIELDS, ENV_SOURCES)

# Labels and annotations that mean something to Kubernetes, its tools or Eclectus: selectors of Deployments
# and Services choose pods by them, and annotations of a container runtime change what a container may do.
RESERVED_KEY = (
    r"^(([^/]*[.])?(kubernetes|k8s)[.]io/.*|" + GROUP.replace(".", "[.]") + r"/.*|io[.]kubernetes[.].*)$"
)

# Fields of a pod that are refused for a reason of their own.
SET_BY_OPERATOR = (
    "activeDeadlineSeconds",
    "affinity",
    "automountServiceAccountToken",
    "enableServiceLinks",
    "imagePullSecrets",
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
_RESERVED = re.compile(RESERVED_KEY)

NAME_CHARACTERS = 255  # of an image without its digest
HEX_DIGITS = {"sha256": 64, "sha512": 128}
_LABEL = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_REGISTRY = re.compile(rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[0-9a-fA-F:]+\])(?::[0-9]{{1,5}})?")
_COMPONENT = re.compile(r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_DIGEST = re.compile(r"([a-z0-9]+(?:[.+_-][a-z0-9]+)*):([a-f0-9]{32,})")


def problems(spec: NodeProbeSpec, settings: Settings) -> list[str]:
    """What is wrong, each with its path; empty if the spec is valid."""
    return [f"classes[{work.name}]: {wrong}" for work in spec.classes for wrong in _of_work(work, settings)]


def _of_work(work: ProbeClass, settings: Settings) -> Iterator[str]:
    if sum(each is not None for each in (work.unit, work.run, work.template, work.recent)) != 1:
        yield "give exactly one of unit, run, template and recent"
        return
    if work.unit is not None and not settings.unit_image:
        yield "this operator was given no image of the built-in benchmark (--unit-image); use run or template"
    if work.run is not None:
        if work.run.shell and (len(work.run.command or ()) != 1 or work.run.args is not None):
            yield "run: shell takes one command, the line for /bin/sh -c, and no args"
        if wrong := image_problem(work.run.image):
            yield f"run.image: {wrong}"
        yield from _of_requests("run", work, settings)
    if work.template is not None:
        wrong = shape_problem(work.template)
        yield from [f"template: {wrong}"] if wrong else template_problems(work.template)
        yield from () if wrong else _of_requests("template.spec", work, settings)


def _of_requests(path: str, work: ProbeClass, settings: Settings) -> Iterator[str]:
    try:
        shareable_requests(template_of(work, settings)["spec"])
    except (FieldError, ShapeError) as error:
        yield f"{path}: {error}"


def template_problems(template: Object) -> Iterator[str]:
    """What a template of a pod's shape must not have, each with its path."""
    for kind in ("labels", "annotations"):
        for key in filter(_RESERVED.match, template.get("metadata", {}).get(kind, {})):
            yield f"template.metadata.{kind}[{key}]: a probe may have no keys of Kubernetes and of Eclectus"
    yield from spec_problems("template.spec", template["spec"], TEMPLATE)


def spec_problems(path: str, spec: Object, allowed: Allowed) -> Iterator[str]:
    """What a spec of a pod's shape has beyond what is allowed, each with its path."""
    for field in _beyond(spec, allowed.pod):
        is_set = field in SET_BY_OPERATOR
        why = "is set by the operator; leave it out" if is_set else "is not among the fields a probe may have"
        yield f"{path}.{field}: {why}"
    sources = [each for each in allowed.volume if each != "name"]
    for volume in spec.get("volumes", []):
        if not volume.keys() & set(sources) or _beyond(volume, allowed.volume):
            names = ", ".join(sources)
            yield f"{path}.volumes[{volume.get('name')}]: a probe may mount nothing but {names}"
    yield from _of_security(path, spec, POD_SECURITY_FIELDS)
    if not spec.get("containers"):
        yield f"{path}.containers: give at least one"
    for kind in CONTAINERS:
        for one in spec.get(kind, []):
            yield from _of_container(f"{path}.{kind}[{one.get('name')}]", one, allowed)


def image_problem(reference: str) -> str:
    """What is wrong with an image reference by the distribution specification; empty if nothing is.

    The first component is a registry if it has a dot, a colon or a capital letter, or is `localhost`;
    otherwise it belongs to the path. A colon precedes a port if a slash follows it, else a tag.
    """
    name, at, digest = reference.partition("@")
    head, slash, last = name.rpartition("/")
    last, colon, tag = last.partition(":")
    registry, path = _split_registry(f"{head}{slash}{last}")
    wrong = next((each for each in path.split("/") if not _COMPONENT.fullmatch(each)), None)
    found = ""
    if wrong is not None:
        found = (
            f"{wrong!r} in the path must be lower-case letters and digits, separated by single dots, one or "
            "two underscores, or dashes"
        )
    elif len(name) > NAME_CHARACTERS:
        found = f"the name is longer than {NAME_CHARACTERS} characters"
    elif colon and not _TAG.fullmatch(tag):
        found = f"tag {tag!r} must be 1 to 128 of A-Z a-z 0-9 _ . -"
    elif at and not _is_digest(digest):
        found = f"digest {digest!r} must be like sha256:<64 hexadecimal digits>"
    elif registry and not _REGISTRY.fullmatch(registry):
        found = f"{registry!r} is no host name with an optional port"
    return f"image {reference!r}: {found}" if found else ""


def _split_registry(name: str) -> tuple[str, str]:
    first, slash, rest = name.partition("/")
    if slash and (first == "localhost" or any(c in ".:" or c.isupper() for c in first)):
        return first, rest
    return "", name


def _is_digest(text: str) -> bool:
    match = _DIGEST.fullmatch(text)
    return match is not None and len(match[2]) == HEX_DIGITS.get(match[1], len(match[2]))


def _of_container(path: str, one: Object, allowed: Allowed) -> Iterator[str]:
    if wrong := image_problem(one.get("image", "")):
        yield f"{path}.image: {wrong}"
    for field in _beyond(one, allowed.container):
        yield f"{path}.{field}: is not among the fields a container of a probe may have"
    if any(port.keys() & {"hostPort", "hostIP"} for port in one.get("ports", [])):
        yield f"{path}.ports: a probe may use no port of its node"
    if any(_beyond(each.get("valueFrom", {}), allowed.env) for each in one.get("env", [])):
        yield f"{path}.env: beside values a probe may have nothing but {', '.join(allowed.env)}"
    yield from _of_security(path, one, CONTAINER_SECURITY_FIELDS)


def _of_security(path: str, of: Object, allowed: Iterable[str]) -> Iterator[str]:
    """What in a securityContext the `restricted` standard forbids."""
    security = of.get("securityContext", {})
    profile = security.get("seccompProfile", RUNTIME_DEFAULT)
    wrong = {
        **dict.fromkeys(_beyond(security, allowed), "is not among the fields a probe may have"),
        "privileged": "must not be true" if security.get("privileged") else "",
        "allowPrivilegeEscalation": "must not be true" if security.get("allowPrivilegeEscalation") else "",
        "capabilities.add": "must be empty" if security.get("capabilities", {}).get("add") else "",
        "runAsUser": "must not be 0" if security.get("runAsUser") == 0 else "",
        "runAsNonRoot": "must not be false" if security.get("runAsNonRoot") is False else "",
        "seccompProfile": "must be {type: RuntimeDefault}" if profile not in (None, RUNTIME_DEFAULT) else "",
    }
    yield from (f"{path}.securityContext.{field}: {why}" for field, why in wrong.items() if why)


def _beyond(given: Mapping[str, Any], allowed: Iterable[str]) -> list[str]:
    """The fields that are not allowed, sorted."""
    return sorted(given.keys() - set(allowed))
