"""Two equal engines, of which one is asked for explanations between two steps: both must do the same.

What would be different is asked too: nodes and pods that change in a question alone change nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eclectus.config.what_if import read_question
from eclectus.engine.engine import Engine
from eclectus.explain.node import node_explanation
from eclectus.explain.pending import pending_pods
from eclectus.explain.pod import explain_pod
from eclectus.explain.what_if import what_if_explanation
from eclectus.feasibility.fit_error import fit_error
from eclectus.feasibility.task_class import TaskClass
from eclectus.model.commands import Command
from eclectus.model.events import Event
from eclectus.model.explanation import NearMiss, PodExplanation
from eclectus.model.objects import Task
from judge import refusal

EXPLAINED_STEPS = 120  # of one engine: a machine lets time pass in thousands of steps in the end


class ExplainedEngine:
    """An engine that explains a pod and a node after each step, in turn; all else is asked of that engine."""

    def __init__(self, explained: Engine, silent: Engine) -> None:
        self._explained, self._silent, self._steps = explained, silent, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._explained, name)

    def step(self, events: Sequence[Event], now: float) -> list[Command]:
        """One step of both; raises AssertionError where they differ."""
        commands, expected = self._explained.step(events, now), self._silent.step(events, now)
        assert commands == expected, "an explanation has changed what the engine does"
        assert self._explained.next_step_at() == self._silent.next_step_at()
        self._steps += 1
        if self._steps <= EXPLAINED_STEPS:
            explain_some(self._explained, self._steps, now)
        return commands


def explain_some(engine: Engine, turn: int, now: float) -> None:
    """Ask for a waiting pod, a placed pod and a node, half a second later, and check the answers."""
    state = engine._state
    for tasks in (list(state.pending.values()), list(state.placed.tasks())):
        if tasks:
            task = tasks[turn % len(tasks)]
            found = explain_pod(engine, task.namespace, task.name, now + 0.5)
            check(engine, found)
            assert explain_pod(engine, task.namespace, task.name, now + 0.5) == found
    nodes = list(state.cluster.rows)
    if nodes:
        assert engine.read(node_explanation, nodes[turn % len(nodes)]).conditions != ("unknown",)
    waiting = [task for task in state.pending.values() if may_be_asked_about(engine, task)]
    listed = engine.read(pending_pods, "", None, len(waiting) + 1, now + 0.5)
    assert {each.uid for each in listed.items} == {task.uid for task in waiting}
    if waiting:
        ask_what_if(engine, waiting[turn % len(waiting)], turn, now)


def may_be_asked_about(engine: Engine, task: Task) -> bool:
    """Whether a pending pod waits here, so that there is an answer."""
    return task.uid not in engine._state.placed.assumed and not task.deleting


def ask_what_if(engine: Engine, task: Task, turn: int, now: float) -> None:
    """One question, another kind in each turn; the answer is checked like an explanation."""
    state = engine._state
    nodes, placed = list(state.cluster.rows), [each for each in state.placed.tasks() if each.node]
    texts = ["request.cpu=1m", "priority=1000"]
    if nodes:
        node = nodes[turn % len(nodes)]
        texts += [f"node={node},cordon=true", f"node={node},allocatable.cpu=64", f"add-node-like={node}"]
    texts += [f"delete-pod={each.namespace}/{each.name}" for each in placed[turn % 3 : turn % 3 + 1]]
    asked = [texts[turn % len(texts)], texts[(turn // 2) % len(texts)]]
    question = read_question(list(dict.fromkeys(asked)), "", task.namespace)
    found = engine.read(what_if_explanation, (task.namespace, task.name), question, now + 0.5)
    funnel = found.pod.funnel
    assert funnel is not None
    assert funnel.steps[-1].left == funnel.with_room == found.with_room
    assert (found.placement.answered == "noRoom") <= (not found.with_room)
    if found.placement.answered == "places":
        assert found.placement.node in {each.node for each in found.placement.candidates}


def check(engine: Engine, pod: PodExplanation) -> None:
    """What every explanation promises."""
    state = engine._state
    assert pod.state != "unknown", f"the engine knows {pod.name}"
    if pod.funnel is None:
        assert pod.placement is not None or pod.state == "otherScheduler"
        return
    task = state.pending[pod.uid]
    task_class = TaskClass(state.cluster, task.spec, task.workload)
    assert pod.funnel.steps[-1].left == pod.funnel.with_room == task_class.fits_now_count
    assert pod.funnel.feasible == task_class.feasible_count
    assert bool(pod.funnel.message) == (not pod.funnel.with_room)
    assert pod.attempts is not None
    lefts = [pod.funnel.nodes, *(step.left for step in pod.funnel.steps)]
    assert lefts == sorted(lefts, reverse=True), "a rule has brought nodes back"
    if task_class.fits_now_count:
        assert not pod.nearest
    else:
        assert pod.funnel.message.startswith(fit_error(task_class, state.cluster).message)
    for miss in pod.nearest:
        assert miss.lacks, f"{miss.node} lacks nothing for {pod.name}"
        assert not any(lack.permanent for lack in miss.lacks) or not miss.fits_without
        if miss.fits_without and not miss.not_listed:
            check_that_it_fits_without(engine, task, miss)
    check_evictions(engine, pod, task)


def check_that_it_fits_without(engine: Engine, task: Task, miss: NearMiss) -> None:
    """As an independent judge says, who knows no rules about other pods."""
    state = engine._state
    named = {(other.namespace, other.name) for other in miss.fits_without}
    staying = [
        pod
        for pod, _ in state.placed.on_row(state.cluster.rows[miss.node])
        if (pod.namespace, pod.name) not in named
        and not (pod.deleting or pod.uid in state.evictions.sent or state.placed.is_nominated(pod.uid))
    ]
    assert not refusal(task, state.cluster.node(miss.node), staying)


def check_evictions(engine: Engine, pod: PodExplanation, task: Task) -> None:
    """Candidates for eviction are pods that may be evicted."""
    for candidate in () if pod.preemption is None else pod.preemption.candidates:
        assert candidate.victims
        assert all(victim.priority < task.priority for victim in candidate.victims)
        assert candidate.node in engine._state.cluster.rows
