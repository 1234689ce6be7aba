"""An API server in memory for the operator, with crashes at any request.

It implements what the operator relies on: versions and uids as preconditions, 409 for a name that is taken,
the status subresource, selectors, dry runs, a grace period for running pods. `Crash` is raised before or
after the effect of a chosen request; nothing catches it.
"""

from __future__ import annotations

import copy
import itertools
from collections import Counter
from collections.abc import Callable
from typing import Any

from eclectus.api.common import time_text
from eclectus.api.names import API_VERSION, DAG_JOBS, NODE_PROBES_PATH, NODE_PROFILES_PATH, POOLS
from eclectus.kubeclient.api_errors import ConflictError, MissingError

Object = dict[str, Any]
PODS = "/api/v1/namespaces/probes/pods"
NODES = "/api/v1/nodes"
PROBES = NODE_PROBES_PATH
PROFILES = NODE_PROFILES_PATH
ALL_DAG_JOBS = f"/apis/{API_VERSION}/{DAG_JOBS}"


LISTED = ("nodes", "pods", "nodeprobes", "events", DAG_JOBS, POOLS)


class Crash(BaseException):
    """The operator process is killed."""


class FakeApi:
    """Objects by path. `now` is the cluster's clock, which the test advances."""

    def __init__(self, now: float = 1_000_000.0) -> None:
        self.now = now
        self.objects: dict[str, Object] = {}
        self.calls: list[tuple[str, str]] = []
        self.created: Counter[str] = Counter()  # by path, of all time
        self.watchers: list[
            Callable[[str, str, Object], None]
        ] = []  # called with every write, before its effect
        self.before: Callable[[str, str], None] = lambda method, path: (
            None
        )  # called with every request; may raise
        self.crash_at: tuple[int, bool] | None = None  # number of the call; after its effect or before
        self._numbers = itertools.count(1)

    # -- what the operator calls -----------------------------------------------------------------

    async def send(
        self,
        method: str,
        path: str,
        body: Object | None = None,
        query: dict[str, str] | None = None,
        *,
        metadata_only: bool = False,
        seconds: float | None = None,
        most_bytes: int | None = None,
    ) -> Object:
        """One request."""
        number = len(self.calls)
        self.calls.append((method, path))
        if self.crash_at == (number, False):
            raise Crash
        self.before(method, path)
        answer = self._handled(method, path, copy.deepcopy(body), query or {})
        if metadata_only:
            answer = {"items": [{"metadata": each["metadata"]} for each in answer["items"]]}
        if self.crash_at == (number, True):
            raise Crash
        return copy.deepcopy(answer)

    def _handled(self, method: str, path: str, body: Object | None, query: dict[str, str]) -> Object:
        match method:
            case "GET" if path in self.objects:
                return self.objects[path]
            case "GET" if path.rpartition("/")[2] in LISTED:
                return _page(self._listed(path, query), query)
            case "POST":
                return (body or {}) if "dryRun" in query else self._post(path, body or {})
            case "PUT":
                return self._put(path, body or {})
            case "PATCH":
                return self._patched(path, body or {})
            case "DELETE":
                return self._deleted(path, body or {})
        raise MissingError(f"{method} {path}", 404)

    # -- what tests call -------------------------------------------------------------------------

    def put(self, path: str, body: Object) -> Object:
        """Somebody else creates an object."""
        return self._post(path, copy.deepcopy(body))

    def pods(self) -> dict[str, Object]:
        """The probe namespace's pods by name."""
        return {
            path.rpartition("/")[2]: each
            for path, each in self.objects.items()
            if path.startswith(PODS + "/")
        }

    def probe(self, name: str) -> Object:
        """A NodeProbe as stored."""
        return self.objects[f"{PROBES}/{name}"]

    def touch(self, path: str) -> Object:
        """A stored object with a new version, for somebody else to change in place."""
        found = self.objects[path]
        found["metadata"]["resourceVersion"] = str(next(self._numbers))
        return found

    def remove(self, path: str) -> None:
        """Remove an object at once."""
        del self.objects[path]

    # -- how objects are stored ---------------------------------------------------------------------

    def _post(self, path: str, body: Object) -> Object:
        number = next(self._numbers)
        meta = body["metadata"]
        name = meta.setdefault("name", f"{meta.get('generateName', '')}{number}")
        where = f"{path}/{name}"
        if where in self.objects:
            raise ConflictError(f"POST {where}", 409, "AlreadyExists")
        meta |= {"resourceVersion": str(number), "generation": 1}
        meta.setdefault("uid", f"uid-{number}")
        meta.setdefault("creationTimestamp", time_text(self.now))
        self._notify("POST", where, body)
        self.objects[where] = body
        self.created[where] += 1
        return body

    def _put(self, path: str, body: Object) -> Object:
        if body["metadata"]["resourceVersion"] != self.objects[path]["metadata"]["resourceVersion"]:
            raise ConflictError(f"PUT {path}", 409, "Conflict")
        self.objects[path] = body
        return self.touch(path)

    def _patched(self, path: str, body: Object) -> Object:
        where = path.removesuffix("/status")
        found = self.objects.get(where)
        if found is None:
            raise MissingError(f"PATCH {path}", 404)
        given = body.get("metadata", {})
        if given.get("uid", found["metadata"]["uid"]) != found["metadata"]["uid"]:
            raise ConflictError(f"PATCH {path}", 409, "Conflict")
        version = given.pop("resourceVersion", None)
        assert version or not path.endswith("/status"), "a status is written with the version that was read"
        if version not in (None, found["metadata"]["resourceVersion"]):
            raise ConflictError(f"PATCH {path}", 409, "Conflict")
        self._notify("PATCH", path, body)
        part = {"status": body.get("status", {})} if path.endswith("/status") else body
        _merge(self.touch(where), part)
        return found

    def _deleted(self, path: str, body: Object) -> Object:
        found = self.objects.get(path)
        if found is None:
            raise MissingError(f"DELETE {path}", 404)
        wanted = body["preconditions"]
        assert wanted["uid"], "nothing is deleted by its name alone"
        if any(value != found["metadata"][key] for key, value in wanted.items()):
            raise ConflictError(f"DELETE {path}", 409, "Conflict")
        self._notify("DELETE", path, found)
        grace = body.get("gracePeriodSeconds", 30)
        runs = found.get("status", {}).get("phase") not in ("Succeeded", "Failed")
        if runs and found.get("spec", {}).get("nodeName") and grace > 0:
            meta = self.touch(path)["metadata"]
            meta.setdefault("deletionTimestamp", time_text(self.now + grace))
            meta.setdefault("deletionGracePeriodSeconds", grace)
        else:
            del self.objects[path]
        return found

    def _listed(self, path: str, query: dict[str, str]) -> list[Object]:
        found = [each for where, each in self.objects.items() if _in(where, path)]
        found = [each for each in found if _labels_match(each, query.get("labelSelector", ""))]
        return [each for each in found if _fields_match(each, query.get("fieldSelector", ""))]

    def _notify(self, method: str, path: str, body: Object) -> None:
        for each in self.watchers:
            each(method, path, body)


def fails_once(method: str, part: str, error: Exception) -> Callable[[str, str], None]:
    """A `before` that fails the first request of a method whose path has this part."""
    left = [error]

    def before(asked: str, path: str) -> None:
        if left and asked == method and part in path:
            raise left.pop()

    return before


def _page(found: list[Object], query: dict[str, str]) -> Object:
    """A page of a list; the token of the next one is where it begins."""
    start, limit = int(query.get("continue", 0)), int(query.get("limit", len(found) + 1))
    end = start + limit
    more = {"metadata": {"continue": str(end)}} if end < len(found) else {}
    return {"items": found[start:end], **more}


def _in(where: str, path: str) -> bool:
    if path in ("/api/v1/pods", ALL_DAG_JOBS):  # of all namespaces
        group, _, kind = path.rpartition("/")
        return where.startswith(f"{group}/namespaces/") and f"/{kind}/" in where
    return where.rpartition("/")[0] == path


def _merge(target: Object, patch: Object) -> None:
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
        elif isinstance(value, dict) and isinstance(target.get(key), dict):
            _merge(target[key], value)
        else:
            target[key] = value
            if isinstance(value, dict):
                target[key] = {}
                _merge(target[key], value)


def _labels_match(found: Object, selector: str) -> bool:
    labels = found["metadata"].get("labels", {})
    for term in filter(None, selector.split(",")):
        key, equals, value = term.partition("=")
        if (equals and labels.get(key) != value) or (term.startswith("!") and term[1:] in labels):
            return False
    return True


def _fields_match(found: Object, selector: str) -> bool:
    for term in filter(None, selector.split(",")):
        path, _, value = term.partition("=")
        part: Any = found
        for key in path.split("."):
            part = part.get(key, {}) if isinstance(part, dict) else {}
        if isinstance(part, bool):
            part = str(part).lower()
        if (part or "") != value:
            return False
    return True
