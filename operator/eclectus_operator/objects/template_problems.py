"""What is wrong with the pod template of a NodeProbe, by the lists of template_rules.py."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from eclectus_operator.objects import template_rules as rules
from eclectus_operator.objects.images import ImageError, parsed

Object = dict[str, Any]
_RESERVED = re.compile(rules.RESERVED_KEY)


def template_problems(template: Object) -> Iterator[str]:
    """What a template of a pod's shape must not have, each with its path."""
    for kind in ("labels", "annotations"):
        for key in filter(_RESERVED.match, template.get("metadata", {}).get(kind, {})):
            yield f"template.metadata.{kind}[{key}]: a probe may have no keys of Kubernetes and of Eclectus"
    spec = template["spec"]
    for field in _beyond(spec, rules.POD_FIELDS):
        is_set = field in rules.SET_BY_OPERATOR
        why = "is set by the operator; leave it out" if is_set else "is not among the fields a probe may have"
        yield f"template.spec.{field}: {why}"
    for volume in spec.get("volumes", []):
        if "emptyDir" not in volume or _beyond(volume, rules.VOLUME_FIELDS):
            yield f"template.spec.volumes[{volume.get('name')}]: a probe may mount nothing but emptyDir"
    yield from _of_security("template.spec", spec, rules.POD_SECURITY_FIELDS)
    if not spec.get("containers"):
        yield "template.spec.containers: give at least one"
    for kind in ("containers", "initContainers"):
        for one in spec.get(kind, []):
            yield from _of_container(f"template.spec.{kind}[{one.get('name')}]", one)


def image_problems(path: str, reference: str) -> Iterator[str]:
    """What is wrong with an image reference, with this path."""
    try:
        parsed(reference)
    except ImageError as error:
        yield f"{path}: {error}"


def _of_container(path: str, one: Object) -> Iterator[str]:
    yield from image_problems(f"{path}.image", one.get("image", ""))
    for field in _beyond(one, rules.CONTAINER_FIELDS):
        yield f"{path}.{field}: is not among the fields a container of a probe may have"
    if any(port.keys() & {"hostPort", "hostIP"} for port in one.get("ports", [])):
        yield f"{path}.ports: a probe may use no port of its node"
    if any(_beyond(each.get("valueFrom", {}), rules.ENV_SOURCES) for each in one.get("env", [])):
        yield f"{path}.env: give values; a probe may read no Secret and no ConfigMap"
    yield from _of_security(path, one, rules.CONTAINER_SECURITY_FIELDS)


def _of_security(path: str, of: Object, allowed: Iterable[str]) -> Iterator[str]:
    """What in a securityContext the `restricted` standard forbids."""
    security = of.get("securityContext", {})
    wrong = {
        **dict.fromkeys(_beyond(security, allowed), "is not among the fields a probe may have"),
        "privileged": "must not be true" if security.get("privileged") else "",
        "allowPrivilegeEscalation": "must not be true" if security.get("allowPrivilegeEscalation") else "",
        "capabilities.add": "must be empty" if security.get("capabilities", {}).get("add") else "",
        "runAsUser": "must not be 0" if security.get("runAsUser") == 0 else "",
        "runAsNonRoot": "must not be false" if security.get("runAsNonRoot") is False else "",
        "seccompProfile": "must be {type: RuntimeDefault}" if _other_profile(security) else "",
    }
    yield from (f"{path}.securityContext.{field}: {why}" for field, why in wrong.items() if why)


def _other_profile(security: Object) -> bool:
    profile = security.get("seccompProfile")
    return profile is not None and profile != {"type": "RuntimeDefault"}


def _beyond(given: Mapping[str, Any], allowed: Iterable[str]) -> list[str]:
    """The fields that are not allowed, sorted."""
    return sorted(given.keys() - set(allowed))
