"""An API server in memory that permits its user only what the chart grants the operator, and records it."""

from __future__ import annotations

from functools import cache
from typing import Any

from eclectus_e2e.testbed import chart
from eclectus_hack.permissions import Permission, forbidden, granted
from fake_api import LISTED, FakeApi, Object

VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
LABEL = ("app.kubernetes.io/component", "operator")


@cache
def operator_rights(*, dag_jobs: bool, copies: tuple[str, ...] = ()) -> frozenset[Permission]:
    """What the chart grants the operator, with DagJobs or without; `copies`: namespaces with copies."""
    parts = {"dagJobs": {"enabled": dag_jobs}, "copies": {"namespaces": list(copies)}}
    values = {"operator": {"enabled": True, **parts}}
    rendered = chart.render(values)
    return frozenset(
        granted(each for each in rendered if LABEL in each["metadata"].get("labels", {}).items())
    )


def permission(method: str, path: str) -> Permission:
    """What a request needs: `GET /api/v1/namespaces/team/pods/p` is `get` on `pods`."""
    parts = path.strip("/").split("/")
    group, parts = ("", parts[2:]) if parts[0] == "api" else (parts[1], parts[3:])
    namespace, parts = (parts[1], parts[2:]) if parts[0] == "namespaces" and len(parts) > 2 else ("", parts)
    resource, name, *rest = [*parts, ""] if len(parts) == 1 else parts
    assert resource in LISTED or name, f"{path} is no path of this test bed"
    verb = VERBS.get(method) or ("get" if name else "list")
    return Permission(group, "/".join([resource, *rest]), verb, name, namespace)


class AuditedApi:
    """Passes on what the operator may ask for; `used` has all of it."""

    def __init__(self, api: FakeApi, *, dag_jobs: bool = True, copies: tuple[str, ...] = ()) -> None:
        self._api, self._rights = api, operator_rights(dag_jobs=dag_jobs, copies=copies)
        self.used: set[Permission] = set()

    async def send(
        self, method: str, path: str, body: Object | None = None, query: Any = None, **more: Any
    ) -> Object:
        """One request. Fails for one that the chart does not permit."""
        request = permission(method, path)
        self.used.add(request)
        refused = forbidden(set(self._rights), {request})
        assert not refused, f"the chart does not permit {method} {path}"
        return await self._api.send(method, path, body, query, **more)
