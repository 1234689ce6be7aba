"""How far pods are, as they say it themselves by the aggregated API: `create` of `pods/progress`.

What the annotation `eclectus.dev/progress` would say, without a write to etcd. The API server knows by a
pod's token which pod speaks, and nobody is believed about another pod. The leader alone listens, since it
alone judges; a new one knows it from the next word of each pod on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus

import msgspec
from aiohttp import web
from msgspec import Struct

from eclectus.api import names
from eclectus.engine.engine import Engine
from eclectus.explain.copies import follows
from eclectus.kube.progress import progress, progress_problems
from eclectus.kubeclient.serving.access import Recent
from eclectus.kubeclient.serving.callers import Caller, Subject
from eclectus.kubeclient.serving.health import failure
from eclectus.kubeclient.serving.pages import BusyError
from eclectus.kubeclient.timing import elapsed
from eclectus.live.inbox import Inbox
from eclectus.live.limits import Limits
from eclectus.model.events import ProgressSaid

APART_SECONDS = 5.0  # between two words of one pod: more of them tell nothing new
PODS_MOST = 4096  # whose last word is remembered for that
ACCOUNT_PREFIX = "system:serviceaccount:"
POD_NAME, POD_UID = "authentication.kubernetes.io/pod-name", "authentication.kubernetes.io/pod-uid"


class Speaker(Struct, frozen=True):
    """The pod that a token is bound to, as the API server says."""

    namespace: str
    name: str
    uid: str


def speaker(caller: Caller) -> Speaker | None:
    """The pod that speaks; None if the caller is none."""
    if not isinstance(caller, Subject) or not caller.user.startswith(ACCOUNT_PREFIX):
        return None
    extra = dict(caller.extra)
    if len(extra.get(POD_NAME, ())) != 1 or len(extra.get(POD_UID, ())) != 1:
        return None
    namespace = caller.user.removeprefix(ACCOUNT_PREFIX).partition(":")[0]
    return Speaker(namespace, extra[POD_NAME][0], extra[POD_UID][0])


class Taken(Struct, frozen=True, rename="camel"):
    """The answer. `followed`: whether it counts for anything."""

    progress: float
    followed: bool


@dataclass(eq=False)
class ProgressPage:
    """The handler. `phase_weights`: of a pod that is followed, by uid, as its annotation has them."""

    engine: Engine
    inbox: Inbox
    phase_weights: Callable[[str], str | None]
    limits: Limits
    why_not: Callable[[], str]
    caller: Callable[[web.Request], Caller]
    now: Callable[[], float] = elapsed
    _spoken: Recent[str, float] = field(init=False)

    def __post_init__(self) -> None:
        self._spoken = Recent(APART_SECONDS, PODS_MOST, self.now)

    async def say(self, request: web.Request) -> web.Response:
        """Take the progress of the pod that the path names, which is the body, from that pod."""
        # 1. Nobody is believed but the pod itself.
        named, pod = request.match_info, speaker(self.caller(request))
        if pod is None or (pod.namespace, pod.name) != (named["namespace"], named["name"]):
            whose = "a pod says its own progress, with the token that it was given"
            return failure(HTTPStatus.FORBIDDEN, f'pods "{named["name"]}" is forbidden: {whose}')
        if why_not := self.why_not():
            return failure(HTTPStatus.SERVICE_UNAVAILABLE, why_not)
        # 2. Each pod speaks now and then, and all together so often that decisions do not wait.
        if (at := self._spoken.get(pod.uid)) is not None:
            text = f"it has said so less than {APART_SECONDS:g} s ago"
            return failure(HTTPStatus.TOO_MANY_REQUESTS, text, at + APART_SECONDS - self.now())
        try:
            with self.limits.admitted_to_say(pod.namespace):
                return self._taken(pod, (await request.read()).decode("ascii", "replace").strip())
        except BusyError as error:
            return failure(HTTPStatus.TOO_MANY_REQUESTS, str(error), error.seconds)

    def _taken(self, pod: Speaker, text: str) -> web.Response:
        self._spoken.put(pod.uid, self.now())
        weights = self.phase_weights(pod.uid)
        said = {names.PROGRESS: text, **({} if weights is None else {names.PHASE_WEIGHTS: weights})}
        found = progress(said)
        if found is None:
            return failure(HTTPStatus.BAD_REQUEST, "; ".join(progress_problems(said)))
        is_followed = self.engine.read(follows, pod.namespace, pod.uid)
        if is_followed:
            self.inbox.put(ProgressSaid(pod.uid, found))
        return web.Response(
            body=msgspec.json.encode(Taken(found, is_followed)), content_type="application/json"
        )
