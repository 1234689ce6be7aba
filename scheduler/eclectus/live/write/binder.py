"""Binding one pod, until it is known how it ended.

A bind is never repeated on an uncertain answer and never given up on one: we look. A pod that is
bound stays bound, so seeing it bound settles the matter at once; seeing it unbound settles it only
after the server has surely stopped working on our request, whose time limit we have set ourselves.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Literal

from eclectus.kube.decoding import decode_pod
from eclectus.kube.objects import Pod
from eclectus.kubeclient.backoff import Backoff
from eclectus.kubeclient.clock import elapsed
from eclectus.kubeclient.errors import ApiError, MissingError, NotDoneError, UnsureError
from eclectus.live.context import Means
from eclectus.model.commands import Bind
from eclectus.model.errors import MalformedError
from eclectus.model.events import BindConfirmed, BindRefused

PATIENCE_SECONDS = 15.0  # a bind that could not be sent for so long is given back: the picture has moved on
MARGIN_SECONDS = 1.0  # after its time limit the server's write to etcd may still be under way for a moment

Answer = BindConfirmed | BindRefused
Outcome = Literal["bound", "elsewhere", "gone", "unbound", "unsent"]
_log = logging.getLogger(__name__)


class Binder:
    """Sends binds and settles them. `may_bind` is asked before every sending: do we surely lead?"""

    def __init__(self, means: Means, may_bind: Callable[[], bool], seconds: float) -> None:
        self._means, self._may_bind = means, may_bind
        self._seconds = seconds  # time limit of a bind, ours and the server's

    async def bind(self, bind: Bind) -> Answer:
        """Bind the pod; returns when it is known whether it is bound, however long that takes."""
        backoff = Backoff(0.1, 5.0, self._means.rng)
        give_back_at = elapsed() + PATIENCE_SECONDS
        while self._may_bind():
            sent_at = elapsed()
            try:
                await self._post(bind)
            except NotDoneError as error:
                if elapsed() > give_back_at:
                    return self._refused(bind, error, "unsent")
                await asyncio.sleep(error.retry_after or backoff.wait())
            except UnsureError as error:
                _log.warning("bind uncertain, looking: %s", error, extra=_names(bind))
                self._means.metrics.uncertain_answers.inc()
                return await self._settle(bind, error, sent_at + self._seconds + MARGIN_SECONDS)
            except ApiError as error:
                # A conflict may well be our own bind, if something between us and the server sent it twice.
                return await self._settle(bind, error, sent_at)
            else:
                return BindConfirmed(bind.uid, bind.node)
        return BindRefused(bind.uid, bind.node, "the lease is not surely ours any more; nothing was sent")

    async def _post(self, bind: Bind) -> None:
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            # The uid is a precondition: a namesake made since then is not what we decided about.
            "metadata": {"namespace": bind.namespace, "name": bind.name, "uid": bind.uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": bind.node},
        }
        # `timeout` ends the server's work on the request when we stop waiting for it.
        query = {"timeout": f"{self._seconds:g}s"}
        await self._means.client.send(
            "POST", _path(bind) + "/binding", body, query=query, seconds=self._seconds
        )

    async def _settle(self, bind: Bind, cause: ApiError, sure_after: float) -> Answer:
        backoff = Backoff(0.1, 5.0, self._means.rng)
        while True:
            looked_at = elapsed()
            try:
                pod = decode_pod(await self._means.client.get(_path(bind)))
            except MissingError:
                return self._refused(bind, cause, "gone")
            except (ApiError, MalformedError) as error:
                _log.warning("cannot look yet: %s", error, extra=_names(bind))
                await asyncio.sleep(backoff.wait())
                continue
            outcome = verdict(bind, pod, sure=looked_at >= sure_after)
            if outcome == "bound":
                return BindConfirmed(bind.uid, bind.node)
            if outcome is not None:
                return self._refused(bind, cause, outcome)
            await asyncio.sleep(max(sure_after - elapsed(), 0.0) + 0.05)

    def _refused(self, bind: Bind, cause: ApiError, outcome: Outcome) -> BindRefused:
        self._means.metrics.bind_conflicts.labels(outcome).inc()
        _log.warning("bind refused (%s): %s", outcome, cause, extra=_names(bind))
        return BindRefused(bind.uid, bind.node, cause.message or str(cause))


def verdict(bind: Bind, pod: Pod, *, sure: bool) -> Outcome | None:
    """What a look at the pod says of the bind; None: unbound, but our request may still be under way."""
    if pod.metadata.uid != bind.uid:
        return "gone"  # a namesake stands in its place
    if pod.spec.node_name:
        return "bound" if pod.spec.node_name == bind.node else "elsewhere"
    return "unbound" if sure else None


def _path(bind: Bind) -> str:
    return f"/api/v1/namespaces/{bind.namespace}/pods/{bind.name}"


def _names(bind: Bind) -> dict[str, str]:
    return {"pod": f"{bind.namespace}/{bind.name}", "node": bind.node, "uid": bind.uid}
