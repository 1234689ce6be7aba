"""An API server that answers reviews alone: whose a token is, and what its user may read."""

import asyncio
from collections import Counter

from eclectus.kubeclient.serving.access import ACCESS_REVIEWS
from eclectus.kubeclient.serving.callers import TOKEN_REVIEWS


class ReviewingApi:
    """`tokens`: token -> user; `rights`: user -> paths and objects. `error` is raised instead of an answer.

    Objects are `pods` for all, `pods a` for those of the namespace a, `pods a/x` for one, `nodes /n` for a
    node, `list pods` those that may be listed, `/p` a page that may be read, `put /p` one that may be put.
    `gate` holds answers back.
    """

    def __init__(self, tokens=None, rights=None):
        self.tokens, self.rights = tokens or {}, rights or {}
        self.asked = Counter()
        self.specs = []
        self.error = None
        self.gate = asyncio.Event()
        self.gate.set()

    async def send(self, method, path, body=None, query=None, *, metadata_only=False, seconds=None):
        assert (method, query, metadata_only) == ("POST", None, False)
        assert seconds, "a review has a time limit of its own"
        self.asked[path] += 1
        self.specs.append(body["spec"])
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        return {"status": {TOKEN_REVIEWS: self._whose, ACCESS_REVIEWS: self._whether}[path](body["spec"])}

    def _whose(self, spec):
        name = self.tokens.get(spec["token"])
        user = {"username": name, "uid": "u1", "groups": ["readers"], "extra": {"scopes": ["a"]}}
        return {"authenticated": True, "user": user} if name else {"error": "invalid bearer token"}

    def _whether(self, spec):
        asked = _asked(spec.get("nonResourceAttributes"), spec.get("resourceAttributes"))
        return {"allowed": bool(asked & set(self.rights.get(spec["user"], ())))}


def _asked(page, resource):
    """The rights of which each is enough."""
    if page is not None:
        return {page["path"] if page["verb"] == "get" else f"{page['verb']} {page['path']}"}
    kind, namespace, name = (resource.get(key, "") for key in ("resource", "namespace", "name"))
    if resource.get("group"):
        kind = f"{kind}.{resource['group']}"
    if resource["verb"] != "get":
        kind = f"{resource['verb']} {kind}"
    wider = {kind, f"{kind} {namespace}"} if namespace else {kind}
    return wider | ({f"{kind} {namespace}/{name}"} if name else set())
