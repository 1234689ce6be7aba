"""Pods put to a scheduler, and its answers. A pod is deleted as soon as it is answered."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from eclectus_e2e.differential.cluster import DELETE_NOW
from eclectus_e2e.differential.score_log import ScoreLog
from eclectus_e2e.testbed.kubelet.api import Api

Object = dict[str, Any]
KUBE_SCHEDULER = "default-scheduler"
ANSWER_SECONDS = 20.0  # on a busy machine; the usual answer takes hundredths
SILENCE = "(no answer)"
_WAITS_BY_CHOICE = "WaitingForNode"  # Eclectus' reason while a node has room and a better one is expected


@dataclass(frozen=True)
class Answer:
    """The node of a pod, or the message why it has none.

    `scores`: of kube-scheduler, each node on which the pod fits with the sum of its scores; empty where it
    fits on one node alone, because that is not scored. `victims`: paths of the pods that were evicted for it.
    `left_pending`: of kube-scheduler, which has evicted pods and does not try the pod again; `node` is the
    nominated one then.
    """

    node: str = ""
    message: str = ""
    scores: Mapping[str, int] = field(default_factory=dict)
    victims: frozenset[str] = frozenset()
    left_pending: bool = False

    @property
    def feasible(self) -> frozenset[str]:
        """Of kube-scheduler: the nodes on which the pod fits."""
        return frozenset(self.scores) or frozenset({self.node} if self.node else ())

    @property
    def best(self) -> frozenset[str]:
        """Of kube-scheduler: the nodes among which it draws."""
        most = max(self.scores.values(), default=0)
        return frozenset(node for node in self.feasible if self.scores.get(node, 0) == most)


class _Metadata(msgspec.Struct, frozen=True):
    name: str


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    node_name: str = ""


class _Condition(msgspec.Struct, frozen=True):
    type: str
    status: str
    reason: str = ""
    message: str = ""


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    conditions: tuple[_Condition, ...] = ()
    nominated_node_name: str = ""


class _Pod(msgspec.Struct, frozen=True):
    metadata: _Metadata
    spec: _Spec
    status: _Status


class _Question:
    """A pod that was put to a scheduler; `answer` is complete with its node or its refusal."""

    def __init__(self) -> None:
        self.answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self.nominated = ""

    def see(self, pod: _Pod) -> None:
        """The pod as it is now. One that is nominated waits for its victims to end."""
        self.nominated = pod.status.nominated_node_name or self.nominated
        if self.answer.done():
            return
        if pod.spec.node_name:
            self.answer.set_result(Answer(pod.spec.node_name))
        elif not self.nominated and (refusal := _refusal(pod)):
            self.answer.set_result(Answer(message=refusal))


class Questions:
    """Asks schedulers about pods on the cluster as it is; use `opened`."""

    def __init__(self, api: Api, log: ScoreLog) -> None:
        self._api, self._log = api, log
        self._waiting: dict[str, _Question] = {}
        self._asked = 0

    @classmethod
    @asynccontextmanager
    async def opened(cls, api: Api, log: ScoreLog) -> "AsyncIterator[Questions]":
        """Follow the pods' events within the block."""
        questions = cls(api, log)
        watch = asyncio.create_task(questions._follow())
        try:
            yield questions
        finally:
            watch.cancel()
            await asyncio.gather(watch, return_exceptions=True)

    async def ask(self, scheduler: str, namespace: str, pod: Object) -> Answer:
        """What a scheduler answers for a pod that is on no node afterwards.

        Both schedulers see the end of one pod before they see the next one, because the API server sends the
        events of pods in their order. Raises ApiError for a pod that the API server refuses.
        """
        self._asked += 1
        name, path = f"asked-{self._asked}", f"/api/v1/namespaces/{namespace}/pods"
        question = self._waiting[name] = _Question()
        body = {
            "metadata": {**pod["metadata"], "name": name},
            "spec": {**pod["spec"], "schedulerName": scheduler},
        }
        try:
            await self._api.request("POST", path, body)
            answer = await self._wait(question, scheduler)
        finally:
            del self._waiting[name]
        await self._api.request("DELETE", f"{path}/{name}", DELETE_NOW)
        if scheduler != KUBE_SCHEDULER:
            return answer
        return replace(answer, scores=self._log.take(f"{namespace}/{name}"))

    async def _wait(self, question: _Question, scheduler: str) -> Answer:
        try:
            return await asyncio.wait_for(question.answer, ANSWER_SECONDS)
        except TimeoutError:
            if scheduler == KUBE_SCHEDULER and question.nominated:
                return Answer(question.nominated, left_pending=True)
            return Answer(message=SILENCE)

    async def _follow(self) -> None:
        async for change in self._api.changes("/api/v1/pods", _Pod):
            for pod in change.items:
                if pod.metadata.name in self._waiting:
                    self._waiting[pod.metadata.name].see(pod)


def _refusal(pod: _Pod) -> str:
    for each in pod.status.conditions:
        if each.type == "PodScheduled" and each.status == "False" and each.reason != _WAITS_BY_CHOICE:
            return each.message
    return ""
