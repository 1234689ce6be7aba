"""The answer to a question: what differs, and the pod as it would be explained on the changed state."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from eclectus.engine.explain.pod import explain_waiting
from eclectus.engine.explain.what_if.changed_state import changed
from eclectus.engine.explain.what_if.explanation import PolicyAnswer, RuleDifference, WhatIfExplanation
from eclectus.engine.explain.what_if.policy_answer import answer_of
from eclectus.engine.explain.what_if.question import Question
from eclectus.engine.state import State
from eclectus.framework import Place
from eclectus.model.errors import QuestionError
from eclectus.model.explanation import Funnel, PodExplanation
from eclectus.model.objects import Task


def explain_what_if(state: State, pod: tuple[str, str], question: Question, now: float) -> WhatIfExplanation:
    """The answer about a pod that waits; `pod`: its namespace and name, `now` in seconds.

    Raises QuestionError. Costs two explanations, and a copy of nodes and pods where these are to change.
    """
    task = _waiting(state, *pod)
    before = explain_waiting(state, task, now)
    changed_state, changed_task = changed(state, task, question, now)
    after = explain_waiting(changed_state, changed_task, now)
    policy = _policy(state, changed_task, question.policy)
    placement = answer_of(changed_state, changed_task, policy)
    # Where it waits, since when and how often it failed is as it was.
    after = replace(after, waiting=None, attempts=None, summary=_sentence(before, after, placement))
    return WhatIfExplanation(
        changes=question.words,
        summary=after.summary,
        with_room_before=_funnel(before).with_room,
        with_room=_funnel(after).with_room,
        rules=tuple(_differences(_funnel(before), _funnel(after))),
        placement=placement,
        pod=after,
    )


def _waiting(state: State, namespace: str, name: str) -> Task:
    """The pod, which must wait here. Raises QuestionError."""
    for task in state.pending.values():
        if task.name == name and task.namespace == namespace and task.uid not in state.placed.assumed:
            if task.deleting:
                raise QuestionError(f"pod {namespace}/{name} is being deleted, so it is not placed any more")
            return task
    served = ", ".join(sorted(state.profiles))
    raise QuestionError(
        f"pod {namespace}/{name} is not one that waits for this scheduler, which serves {served}: "
        "it is bound, has ended, waits for another one, or does not exist"
    )


def _policy(state: State, task: Task, asked: Place | None) -> Place:
    """Who places the pod: the policy of its profile, unless another kind is asked for."""
    own = state.profiles[task.profile].place
    return own if asked is None or type(own) is type(asked) else asked


def _funnel(pod: PodExplanation) -> Funnel:
    """Of a pod that waits, which always has one."""
    if pod.funnel is None:
        raise ValueError(f"{pod.namespace}/{pod.name} does not wait")
    return pod.funnel


def _differences(before: Funnel, after: Funnel) -> Iterator[RuleDifference]:
    """The rules that refuse other numbers of nodes, in the order of the funnel after the change."""
    refused_before = _refused(before)
    refused = _refused(after)
    for rule in dict.fromkeys((*refused, *refused_before)):
        found = RuleDifference(rule, refused_before.get(rule, 0), refused.get(rule, 0))
        if found.refused != found.refused_before:
            yield found


def _refused(funnel: Funnel) -> dict[str, int]:
    """Rule -> nodes that it refuses of those that all before it have left."""
    found, left = dict[str, int](), funnel.nodes
    for step in funnel.steps:
        found[step.rule] = found.get(step.rule, 0) + left - step.left
        left = step.left
    return found


def _sentence(before: PodExplanation, after: PodExplanation, placement: PolicyAnswer) -> str:
    with_room = _funnel(after).with_room
    start = "once its gates are removed, " if after.state == "gated" else ""
    if not with_room:
        end = "it would fit on no node any more" if _funnel(before).with_room else "it would fit on no node"
        evicts = after.preemption is not None and after.preemption.state == "possible"
        return start + end + (", unless pods of lower priority were evicted" if evicts else "")
    room = "1 node would have room" if with_room == 1 else f"{with_room} nodes would have room"
    match placement.answered:
        case "places":
            return f"{start}it would be placed on node {placement.node}"
        case "defers":
            node = f" for node {placement.node}" if placement.node else ""
            return f"{start}{room}, and {placement.policy} would let it wait{node}"
        case "refuses":
            reason = f": {placement.reason}" if placement.reason else ""
            return f"{start}{room}, and {placement.policy} would refuse it{reason}"
        case _:
            return f"{start}{room}; which one {placement.policy} would take is not known: {placement.reason}"
