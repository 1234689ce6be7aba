"""A kube-apiserver in memory, as far as schedulers and operators rely on it.

Revisions as in etcd, one for all objects; optimistic locking and uids as preconditions; lists by page at one
revision; watches with bookmarks from any revision that is not compacted, 410 otherwise; bindings that a pod
accepts once; graceful deletion; merge patches; of our own resources the generation and the status as a
subresource. Requests are answered at once: delays are the network's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from http import HTTPStatus
from typing import Any

import msgspec

from eclectus.api.names import GROUP

Object = dict[str, Any]
GRACE_SECONDS = 30  # of a pod that is deleted while it runs
FOREGROUND = "foregroundDeletion"  # the finalizer of an owner whose dependents go first
_PATH = re.compile(
    r"/(?:api/(?P<core>v1)|apis/(?P<group>[^/]+)/(?P<version>[^/]+))"
    r"(?:/namespaces/(?P<namespace>[^/]+)(?=/))?/(?P<resource>[^/]+)(?:/(?P<name>[^/]+)(?:/(?P<sub>[^/]+))?)?$"
)


class RefusedError(Exception):
    """The answer is a Status with this code."""

    def __init__(self, code: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True)
class Change:
    """One write. `old` and `new` are the object before and after it; None where there is none."""

    revision: int
    resource: str
    key: str
    old: Object | None
    new: Object | None
    by: str  # the process that has requested it

    @cached_property
    def line(self) -> bytes:
        """The change as watches send it; computed once for all of them."""
        kind = "ADDED" if self.old is None else "DELETED" if self.new is None else "MODIFIED"
        found = self.new
        if found is None:
            gone = self.old or {}
            found = {**gone, "metadata": {**gone["metadata"], "resourceVersion": str(self.revision)}}
        return msgspec.json.encode({"type": kind, "object": found}) + b"\n"


@dataclass(frozen=True)
class Backup:
    """The store as it was at a time. Objects that are stored never change."""

    made_at: float
    revision: int
    objects: dict[str, dict[str, Object]]


@dataclass(frozen=True)
class Path:
    """What a request is about."""

    resource: str  # with its group: `coordination.k8s.io/leases`
    namespace: str
    name: str
    sub: str

    @property
    def key(self) -> str:
        """The object's name in the store of its resource."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def is_custom(self) -> bool:
        """Whether the resource is one of ours."""
        return self.resource.startswith(f"{GROUP}/")


@dataclass
class ApiServer:
    """`now` returns seconds of the server's clock. `watchers` are called with every change, in order."""

    now: Callable[[], float]
    revision: int = 1
    compacted: int = 0  # changes up to this revision are gone
    objects: dict[str, dict[str, Object]] = field(default_factory=dict)  # by resource and key
    changes: list[Change] = field(default_factory=list)
    watchers: list[Callable[[Change], None]] = field(default_factory=list)
    admission: Callable[[str, Path, Object, str], None] = lambda *_: None  # raises RefusedError
    backups: list[Backup] = field(default_factory=list)  # in the order in which they were made
    # By resource the revision that its watch cache has reached: of a change of it, or of a consistent read.
    reached: dict[str, int] = field(default_factory=dict)

    # -- requests ----------------------------------------------------------------------------------

    def answer(
        self, method: str, path: str, query: Mapping[str, str], body: Object | None, by: str
    ) -> Object:
        """The answer to one request of a process, not to be changed: nor is the body, which may be stored.

        Raises RefusedError.
        """
        what = parsed(path)
        if method == "GET":
            return self._existing(what) if what.name else self._list(what, query)
        if query.get("dryRun"):
            self.admission(method, what, body or {}, by)
            return body or {}
        writes = {"POST": self._create, "PUT": self._replace, "PATCH": self._patch, "DELETE": self._delete}
        write = self._bind if what.sub == "binding" else writes[method]
        return write(what, body or {}, by)

    def since(self, resource: str, revision: int) -> Iterator[Change]:
        """The changes of a resource behind a revision. Raises RefusedError where they are compacted."""
        if revision < self.compacted:
            raise RefusedError(HTTPStatus.GONE, f"too old resource version: {revision} ({self.compacted})")
        return (each for each in self.changes if each.resource == resource and each.revision > revision)

    def compact(self) -> None:
        """Forget all changes up to now, as etcd does every five minutes."""
        self.compacted = self.revision
        self.changes.clear()

    def back_up(self) -> None:
        """Keep the store as it is, as `etcdctl snapshot save`."""
        kept = {resource: dict(store) for resource, store in self.objects.items()}
        self.backups.append(Backup(self.now(), self.revision, kept))

    def restore(self, before: float, bump: int) -> None:
        """Go back to the last backup made before a time, or to the first, as `etcdutl snapshot restore`.

        Later writes are forgotten, and uids return.

        Objects have their revisions of then. The next write has the next revision, which may be one that was
        given before; or it is `bump` more and the history is compacted, as with `--bump-revision` and
        `--mark-compacted`.
        """
        self.backups = [each for each in self.backups if each.made_at <= before] or self.backups[:1]
        backup = self.backups[-1]
        self.objects = {resource: dict(store) for resource, store in backup.objects.items()}
        self.revision = backup.revision + bump
        self.reached.clear()
        self.compact()

    def stored(self, resource: str) -> dict[str, Object]:
        """The objects of a resource by key."""
        return self.objects.setdefault(resource, {})

    def write(self, resource: str, key: str, new: Object | None, by: str) -> Object | None:
        """Store an object in a new revision, or remove it. What it is made of does not change any more."""
        store = self.stored(resource)
        old = store.get(key)
        self.revision += 1
        self.reached[resource] = self.revision
        if new is None:
            del store[key]
        else:
            new = {**new, "metadata": {**new["metadata"], "resourceVersion": str(self.revision)}}
            store[key] = new
        change = Change(self.revision, resource, key, old, new, by)
        self.changes.append(change)
        for watcher in self.watchers:
            watcher(change)
        return new

    # -- reads -------------------------------------------------------------------------------------

    def _existing(self, what: Path) -> Object:
        found = self.stored(what.resource).get(what.key)
        if found is None:
            raise RefusedError(HTTPStatus.NOT_FOUND, f'{what.resource} "{what.name}" not found')
        return found

    def _list(self, what: Path, query: Mapping[str, str]) -> Object:
        """A page. Later pages are of the revision of the first one, or 410 if that is compacted."""
        revision, _, after = query.get("continue", "").partition(":")
        at = int(revision) if revision else self.revision
        if not revision:
            self.reached[what.resource] = at
        if at < self.compacted:
            raise RefusedError(HTTPStatus.GONE, "the provided continue parameter is too old")
        store = self._at(what.resource, at)
        prefix = f"{what.namespace}/" if what.namespace else ""
        selector = query.get("labelSelector", "")
        keys = sorted(
            key
            for key, found in store.items()
            if key.startswith(prefix) and (not after or key > after) and selects(selector, found)
        )
        limit = int(query.get("limit", 0)) or len(keys)
        metadata = {"resourceVersion": str(at)}
        if len(keys) > limit:
            metadata["continue"] = f"{at}:{keys[limit - 1]}"
        return {"metadata": metadata, "items": [store[key] for key in keys[:limit]]}

    def _at(self, resource: str, revision: int) -> dict[str, Object]:
        """The objects as they were at a revision."""
        store = dict(self.stored(resource))
        for change in reversed(self.changes):
            if change.revision <= revision:
                break
            if change.resource == resource:
                if change.old is None:
                    store.pop(change.key, None)
                else:
                    store[change.key] = change.old
        return store

    # -- writes ------------------------------------------------------------------------------------

    def _create(self, what: Path, body: Object, by: str) -> Object:
        metadata = body.setdefault("metadata", {})
        name = metadata.setdefault("name", f"{metadata.get('generateName', '')}{self.revision + 1}")
        named = Path(what.resource, what.namespace, name, "")
        if named.key in self.stored(what.resource):
            raise RefusedError(HTTPStatus.CONFLICT, f'{what.resource} "{name}" already exists')
        self.admission("POST", named, body, by)
        if what.namespace:
            metadata["namespace"] = what.namespace
        metadata.setdefault("uid", f"uid-{self.revision + 1}")
        metadata.setdefault("creationTimestamp", stamp(self.now()))
        if what.is_custom:
            body = {**body, "status": {}, "metadata": {**metadata, "generation": 1}}
        return self.write(what.resource, named.key, body, by) or {}

    def _replace(self, what: Path, body: Object, by: str) -> Object:
        found = self._existing(what)
        _check_version(found, body)
        self.admission("PUT", what, body, by)
        kept = {
            key: found["metadata"][key] for key in ("uid", "creationTimestamp") if key in found["metadata"]
        }
        new = {**body, "metadata": {**body["metadata"], **kept}}
        return self.write(what.resource, what.key, new, by) or {}

    def _patch(self, what: Path, body: Object, by: str) -> Object:
        found = self._existing(what)
        _check_version(found, body)
        self.admission("PATCH", what, body, by)
        patch = _patched_custom if what.is_custom else _patched
        return self.write(what.resource, what.key, patch(what, found, body), by) or {}

    def _delete(self, what: Path, body: Object, by: str) -> Object:
        found = self._existing(what)
        _check_version(found, {"metadata": body.get("preconditions") or {}})
        self.admission("DELETE", what, body, by)
        is_running = what.resource == "pods" and found["spec"].get("nodeName") and not has_ended(found)
        is_owner = body.get("propagationPolicy") == "Foreground"
        if (is_running and body.get("gracePeriodSeconds") != 0) or is_owner:
            if "deletionTimestamp" in found["metadata"]:
                return found
            grace = GRACE_SECONDS if is_running else 0
            metadata = found["metadata"] | {
                "deletionTimestamp": stamp(self.now() + grace),
                "deletionGracePeriodSeconds": grace,
                **({"finalizers": [FOREGROUND]} if is_owner else {}),
            }
            return self.write(what.resource, what.key, {**found, "metadata": metadata}, by) or {}
        self.write(what.resource, what.key, None, by)
        return found

    def _bind(self, what: Path, body: Object, by: str) -> Object:
        found = self._existing(what)
        uid = body["metadata"].get("uid")
        if uid and uid != found["metadata"]["uid"]:
            raise RefusedError(HTTPStatus.CONFLICT, "the uid in the precondition is not that of the pod")
        if found["metadata"].get("deletionTimestamp"):
            raise RefusedError(
                HTTPStatus.CONFLICT, f"pod {what.name} is being deleted, cannot be assigned to a host"
            )
        if found["spec"].get("nodeName"):
            raise RefusedError(HTTPStatus.CONFLICT, f"pod {what.name} is already assigned to a node")
        self.admission("POST", what, body, by)
        condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": stamp(self.now())}
        bound = {
            "metadata": {"annotations": body["metadata"].get("annotations") or {}},
            "spec": {"nodeName": body["target"]["name"]},
            "status": {"conditions": [condition]},
        }
        self.write("pods", what.key, merged(found, bound), by)
        return {"kind": "Status", "status": "Success"}


@lru_cache(maxsize=4096)
def parsed(path: str) -> Path:
    """What a path is about. Raises RefusedError."""
    found = _PATH.fullmatch(path)
    if found is None:
        raise RefusedError(HTTPStatus.NOT_FOUND, f"nothing is served at {path}")
    group = f"{found['group']}/" if found["group"] else ""
    return Path(group + found["resource"], found["namespace"] or "", found["name"] or "", found["sub"] or "")


def has_ended(pod: Object) -> bool:
    """Whether the pod runs no more."""
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


def selects(selector: str, found: Object) -> bool:
    """Whether an object has the labels of a selector: `key=value`, `key` or `!key`, separated by commas."""
    labels = found["metadata"].get("labels") or {}
    for term in filter(None, selector.split(",")):
        key, sign, value = term.partition("=")
        has = labels.get(key) == value if sign else key.removeprefix("!") in labels
        if has == term.startswith("!"):
            return False
    return True


def _patched(_: Path, found: Object, body: Object) -> Object:
    """An object after a strategic merge patch."""
    new: Object = merged(found, body)
    return new


def _patched_custom(what: Path, found: Object, body: Object) -> Object:
    """An object of ours after a merge patch, of its status or of all else."""
    if what.sub == "status":
        status = merged(found.get("status", {}), body.get("status", {}), is_strategic=False)
        return {**found, "status": status}
    new: Object = merged(found, {**body, "status": {}}, is_strategic=False)
    generation = found["metadata"]["generation"] + (new["spec"] != found["spec"])
    return {**new, "metadata": {**new["metadata"], "generation": generation}}


def merged(old: Any, patch: Any, *, is_strategic: bool = True) -> Any:
    """A merge patch; a strategic one merges lists of conditions by their type."""
    if not isinstance(patch, dict) or not isinstance(old, dict):
        return patch
    new = dict(old)
    for key, value in patch.items():
        if value is None:
            new.pop(key, None)
        elif is_strategic and key == "conditions" and isinstance(value, list):
            by_type = {each["type"]: each for each in new.get(key) or []}
            by_type.update({each["type"]: {**by_type.get(each["type"], {}), **each} for each in value})
            new[key] = list(by_type.values())
        else:
            new[key] = merged(new.get(key), value, is_strategic=is_strategic)
    return new


def stamp(seconds: float) -> str:
    """A time as the API writes it, in whole seconds."""
    return _stamp(int(seconds))


@lru_cache
def _stamp(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _check_version(found: Object, body: Object) -> None:
    given = body.get("metadata", {})
    for field_name in ("resourceVersion", "uid"):
        wanted = given.get(field_name)
        if wanted and wanted != found["metadata"].get(field_name):
            message = f"the object has been modified: its {field_name} is not {wanted}"
            raise RefusedError(HTTPStatus.CONFLICT, message)
