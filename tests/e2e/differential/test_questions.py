"""What counts as an answer of a scheduler about a pod."""

import asyncio
from typing import Any

import pytest

from eclectus_e2e.differential import questions
from eclectus_e2e.differential.questions import KUBE_SCHEDULER, SILENCE, Answer, Questions

REFUSED = [{"type": "PodScheduled", "status": "False", "message": "no room"}]


def answered(monkeypatch: pytest.MonkeyPatch, scheduler: str, *states: dict[str, Any]) -> Answer:
    """The answer after a pod was seen in these states."""
    monkeypatch.setattr(questions, "ANSWER_SECONDS", 0.01)

    async def wait() -> Answer:
        question = questions._Question()
        for state in states:
            pod = {"metadata": {"name": "a"}, "spec": {}, "status": {}, **state}
            question.see(questions.msgspec.convert(pod, questions._Pod))
        return await Questions(None, None)._wait(question, scheduler)  # type: ignore[arg-type]

    return asyncio.run(wait())


def test_a_refusal_is_an_answer_unless_the_pod_is_nominated(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = {"status": {"conditions": REFUSED}}
    nominated = {"status": {"conditions": REFUSED, "nominatedNodeName": "n1"}}
    bound = {"spec": {"nodeName": "n1"}}
    assert answered(monkeypatch, "any", refused) == Answer(message="no room")
    assert answered(monkeypatch, "any", nominated, bound) == Answer("n1")


def test_only_kube_scheduler_may_leave_a_nominated_pod_pending(monkeypatch: pytest.MonkeyPatch) -> None:
    nominated = {"status": {"nominatedNodeName": "n1"}}
    left = answered(monkeypatch, KUBE_SCHEDULER, nominated)
    assert left == Answer("n1", left_pending=True)
    assert answered(monkeypatch, "eclectus", nominated).message == SILENCE
    assert answered(monkeypatch, KUBE_SCHEDULER, {}).message == SILENCE
