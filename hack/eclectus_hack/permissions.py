"""Compares the permissions that RBAC objects grant with the requests in an audit log.

`granted` lists the permissions that rendered RBAC objects give to an account, `requests` the requests of a
user in the API server's audit log. A request that no permission covers was forbidden; a permission that
covers no request is superfluous.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Object = dict[str, Any]


@dataclass(frozen=True, order=True)
class Permission:
    """One verb on one resource; an empty `name` or `namespace` means all."""

    group: str
    resource: str
    verb: str
    name: str = ""
    namespace: str = ""

    def covers(self, request: "Permission") -> bool:
        """Whether this permits a request; its name is empty for list, watch and create."""
        same = (self.group, self.resource, self.verb) == (request.group, request.resource, request.verb)
        return same and self.name in ("", request.name) and self.namespace in ("", request.namespace)


def granted(objects: Iterable[Object]) -> set[Permission]:
    """The permissions on resources of all Roles and ClusterRoles to which a binding in `objects` binds."""
    objects = list(objects)
    bindings = [each for each in objects if each["kind"] in ("RoleBinding", "ClusterRoleBinding")]
    bound = {(each["roleRef"]["kind"], each["roleRef"]["name"], _namespace(each)) for each in bindings}
    found = set()
    for role in objects:
        if (role["kind"], role["metadata"]["name"], _namespace(role)) in bound:
            for rule in (each for each in role["rules"] if "resources" in each):
                found |= _flattened(rule, _namespace(role))
    return found


def requests(log: Path, user: str) -> set[Permission]:
    """The requests of a user in an audit log, allowed or not."""
    complete, _, _ = log.read_text().rpartition("\n")  # the last line may be incomplete
    events = (json.loads(line) for line in complete.splitlines())
    return {
        _requested(event["objectRef"], event["verb"])
        for event in events
        if event["user"]["username"] == user and "objectRef" in event
    }


def forbidden(permissions: set[Permission], requested: set[Permission]) -> set[Permission]:
    """The requests that no permission covers."""
    return {each for each in requested if not any(one.covers(each) for one in permissions)}


def superfluous(permissions: set[Permission], requested: set[Permission]) -> set[Permission]:
    """The permissions that cover no request."""
    return {one for one in permissions if not any(one.covers(each) for each in requested)}


def _namespace(each: Object) -> str:
    return str(each["metadata"].get("namespace", ""))


def _flattened(rule: Object, namespace: str) -> set[Permission]:
    return {
        Permission(group, resource, verb, name, namespace)
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        for name in rule.get("resourceNames", [""])
    }


def _requested(reference: Object, verb: str) -> Permission:
    resource = "/".join(filter(None, [reference["resource"], reference.get("subresource", "")]))
    return Permission(
        group=reference.get("apiGroup", ""),
        resource=resource,
        verb=verb,
        name=reference.get("name", ""),
        namespace=reference.get("namespace", ""),
    )
