"""An API server that answers reviews alone: whose a token is, and which paths its user may read."""

import asyncio
from collections import Counter

from eclectus.kubeclient.serving.reviews import ACCESS_REVIEWS, TOKEN_REVIEWS


class ReviewingApi:
    """`tokens`: token -> user; `rights`: user -> paths. `error` is raised instead; `gate` holds answers."""

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
        return {"allowed": spec["nonResourceAttributes"]["path"] in self.rights.get(spec["user"], ())}
