"""Binds one pod and finds out how the bind has ended.

After an uncertain answer (a timeout, a lost connection) a bind is neither repeated nor given up: the pod is
read. A bound pod stays bound, so reading it as bound settles the matter at once. Reading it as unbound
settles it only after the API server has certainly stopped working on our request, whose time limit we set.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any, Literal

from eclectus.kube.decoding import decode_pod
from eclectus.kube.objects import Pod
from eclectus.kubeclient.backoff import Backoff
from eclectus.kubeclient.clock import elapsed
from eclectus.kubeclient.errors import ApiError, MissingError, NotDoneError, UnsureError
from eclectus.live.context import Context
from eclectus.model.commands import Bind
from eclectus.model.errors import MalformedError
from eclectus.model.events import BindConfirmed, BindRefused

PATIENCE_SECONDS = 15.0  # a bind not sent for this long is refused, since the cluster has changed meanwhile
MARGIN_SECONDS = 1.0  # the server's write to etcd may outlast the time limit of the request by a moment

Answer = BindConfirmed | BindRefused
Outcome = Literal["bound", "elsewhere", "gone", "unbound", "unsent"]
_log = logging.getLogger(__name__)


class Binder:
    """Sends binds. `holds_lease` is asked before each request; `timeout_seconds` limits each request.

    `annotations` returns those that a pod gets with its bind, by uid.
    """

    def __init__(
        self,
        context: Context,
        holds_lease: Callable[[], bool],
        timeout_seconds: float,
        annotations: Callable[[str], Mapping[str, str]],
    ) -> None:
        self._context, self._holds_lease, self._annotations = context, holds_lease, annotations
        self._timeout_seconds = timeout_seconds  # for us and, as a query parameter, for the server

    async def bind(self, bind: Bind) -> Answer:
        """Bind the pod; returns once it is known whether it is bound, however long that takes."""
        backoff = Backoff(0.1, 5.0, self._context.rng)
        give_up_at = elapsed() + PATIENCE_SECONDS
        while self._holds_lease():
            sent_at = elapsed()
            try:
                await self._post(bind)
            except NotDoneError as error:
                if elapsed() > give_up_at:
                    return self._refused(bind, error, "unsent")
                await asyncio.sleep(error.retry_after or backoff.wait())
            except UnsureError as error:
                _log.warning("bind uncertain, reading the pod: %s", error, extra=_log_fields(bind))
                self._context.metrics.uncertain_answers.inc()
                return await self._settle(bind, error, sent_at + self._timeout_seconds + MARGIN_SECONDS)
            except ApiError as error:
                # A conflict may be our own bind, if a proxy has sent the request twice.
                return await self._settle(bind, error, sent_at)
            else:
                return BindConfirmed(bind.uid, bind.node)
        return BindRefused(
            bind.uid, bind.node, "not sent: this process no longer holds the Lease for certain"
        )

    async def _post(self, bind: Bind) -> None:
        # The uid is a precondition: a new pod of the same name is not the one that was scheduled.
        metadata: dict[str, Any] = {"namespace": bind.namespace, "name": bind.name, "uid": bind.uid}
        if annotations := self._annotations(bind.uid):
            metadata["annotations"] = annotations
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": metadata,
            "target": {"apiVersion": "v1", "kind": "Node", "name": bind.node},
        }
        # `timeout` ends the server's work on the request when we stop waiting for the answer.
        query = {"timeout": f"{self._timeout_seconds:g}s"}
        await self._context.client.send(
            "POST", _path(bind) + "/binding", body, query=query, seconds=self._timeout_seconds
        )

    async def _settle(self, bind: Bind, cause: ApiError, certain_after: float) -> Answer:
        """Read the pod until the result is known. No bind can be under way after `certain_after`."""
        backoff = Backoff(0.1, 5.0, self._context.rng)
        while True:
            read_at = elapsed()
            try:
                pod = decode_pod(await self._context.client.get(_path(bind)))
            except MissingError:
                return self._refused(bind, cause, "gone")
            except (ApiError, MalformedError) as error:
                # 64 binds in flight would repeat for each pod that the API server is away.
                _log.debug("cannot read the pod yet: %s", error, extra=_log_fields(bind))
                await asyncio.sleep(backoff.wait())
                continue
            outcome = verdict(bind, pod, is_certain=read_at >= certain_after)
            if outcome == "bound":
                return BindConfirmed(bind.uid, bind.node)
            if outcome is not None:
                return self._refused(bind, cause, outcome)
            await asyncio.sleep(max(certain_after - elapsed(), 0.0) + 0.05)

    def _refused(self, bind: Bind, cause: ApiError, outcome: Outcome) -> BindRefused:
        self._context.metrics.bind_conflicts.labels(outcome).inc()
        _log.warning("bind refused (%s): %s", outcome, cause, extra=_log_fields(bind))
        return BindRefused(bind.uid, bind.node, cause.message or str(cause))


def verdict(bind: Bind, pod: Pod, *, is_certain: bool) -> Outcome | None:
    """What the pod, as read, says about the bind; None: unbound, but our request may still be under way."""
    if pod.metadata.uid != bind.uid:
        return "gone"  # replaced by another pod of the same name
    if pod.spec.node_name:
        return "bound" if pod.spec.node_name == bind.node else "elsewhere"
    return "unbound" if is_certain else None


def _path(bind: Bind) -> str:
    return f"/api/v1/namespaces/{bind.namespace}/pods/{bind.name}"


def _log_fields(bind: Bind) -> dict[str, str]:
    return {"pod": f"{bind.namespace}/{bind.name}", "node": bind.node, "uid": bind.uid}
