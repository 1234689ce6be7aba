"""Whether a role grants what its user asks for, and nothing else.

Two sides: `granted` flattens the rules of rendered RBAC objects, `requests` reads what the API
server's audit log says a user asked for. A request that no permission covers was forbidden; a
permission that no request needed is superfluous.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Object = dict[str, Any]


@dataclass(frozen=True, order=True)
class Permission:
    """One verb on one resource; an empty `name` or `namespace` means all of them."""

    group: str
    resource: str
    verb: str
    name: str = ""
    namespace: str = ""

    def covers(self, request: "Permission") -> bool:
        """Whether this permits a request (whose name is empty for lists, watches and creates)."""
        same = (self.group, self.resource, self.verb) == (request.group, request.resource, request.verb)
        return same and self.name in ("", request.name) and self.namespace in ("", request.namespace)


def granted(objects: Iterable[Object]) -> set[Permission]:
    """Every permission in the Roles and ClusterRoles among some objects."""
    found = set()
    for role in objects:
        if role["kind"] in ("Role", "ClusterRole"):
            for rule in role["rules"]:
                found |= _flattened(rule, role["metadata"].get("namespace", ""))
    return found


def requests(log: Path, user: str) -> set[Permission]:
    """What a user asked for, from an audit log, whether it was allowed or not."""
    whole, _, _ = log.read_text().rpartition("\n")  # the server may be in the middle of a line
    events = (json.loads(line) for line in whole.splitlines())
    return {
        _requested(event["objectRef"], event["verb"])
        for event in events
        if event["user"]["username"] == user and "objectRef" in event
    }


def forbidden(permissions: set[Permission], asked: set[Permission]) -> set[Permission]:
    """The requests that no permission covers."""
    return {each for each in asked if not any(one.covers(each) for one in permissions)}


def superfluous(permissions: set[Permission], asked: set[Permission]) -> set[Permission]:
    """The permissions that cover no request."""
    return {one for one in permissions if not any(one.covers(each) for each in asked)}


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
