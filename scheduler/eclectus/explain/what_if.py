"""What would be different if nodes, pods on them or the pod itself were other than they are.

The answer is given about a copy of the state; the state itself stays as it is. Nodes and the pods on them
are copied where a change is about them: tens of milliseconds for 15,000 nodes with 150,000 pods. All else
is shared, and only read: queues, back-offs, budgets, and what is learned, as it was after the last step.

A Place policy is asked where it would put the pod, were it the only one that waits, and is not obeyed. A
new instance with the same settings is asked, so that the one that decides keeps its state, such as the next
node in turn. What a policy gathers over minutes, such as the load of each class of work, the new one does
not know. It is asked with several seeds, because some policies draw their nodes.

As in model/explanation.py, other pods are named by `OtherPod` alone.
"""

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from random import Random

import numpy as np
from msgspec.structs import replace

from eclectus import framework
from eclectus.cluster.nodes import Cluster
from eclectus.cluster.scalars import read_only
from eclectus.engine.placed_pods import PlacedPods
from eclectus.engine.state import State
from eclectus.explain.pod import explain_waiting
from eclectus.feasibility.scores_by_pods import HOSTNAME
from eclectus.feasibility.task_class import ClassCache, TaskClass
from eclectus.framework.view import Ranking
from eclectus.model.changes import AddNodes, Change, ChangeNode, ChangeTask, DeletePod, NodeEdit
from eclectus.model.errors import QuestionError
from eclectus.model.explanation import (
    Candidate,
    Funnel,
    PodExplanation,
    PolicyAnswer,
    RuleDifference,
    WhatIfExplanation,
)
from eclectus.model.learned import LearnedNode
from eclectus.model.objects import Node, Task


@dataclass(frozen=True)
class Question:
    """The changes, in the order in which they are made.

    `words`: the changes as they were asked for. `policy`: the kind that places the pod then, None for that of
    its profile.
    """

    changes: tuple[Change, ...] = ()
    words: tuple[str, ...] = ()
    policy: framework.Place | None = None

    @property
    def is_about_nodes(self) -> bool:
        """Whether it names a node: its answer says whether there is one, and what it has."""
        return any(isinstance(each, ChangeNode | AddNodes) for each in self.changes)

    @property
    def deleted_pods(self) -> tuple[DeletePod, ...]:
        """The pods that would be gone: the answer says whether they exist."""
        return tuple(each for each in self.changes if isinstance(each, DeletePod))

    @property
    def changes_the_task_alone(self) -> bool:
        """Whether nodes and other pods are as they are."""
        return all(isinstance(each, ChangeTask) for each in self.changes)


@dataclass(eq=False)
class KnownSpeeds(framework.Learn):
    """The speeds that a learner knows; it learns nothing, and brings nothing of the learner up to date.

    `rows`: of the cluster, which may have more than the learner knows: those count as typical nodes. `like`:
    row of a node that was added -> row of the node that is as fast.
    """

    learn: framework.Learn
    rows: int
    like: Mapping[int, int]

    def speeds(self, workload: str) -> framework.Speeds:
        """Those that were computed last."""
        known = self.learn.known_speeds(workload)
        missing = max(self.rows - len(known.rate), 0)
        if not missing and not self.like:
            return known
        typical = float(known.rate.mean()) if len(known.rate) else 1.0
        rate = np.concatenate((known.rate, np.full(missing, typical)))
        for row, other in self.like.items():
            rate[row] = rate[other]
        return framework.Speeds(
            read_only(rate), max(known.most, typical), known.epoch, known.differ, known.share
        )

    def turnaround(self, workload: str) -> float:
        """That of the learner."""
        return self.learn.turnaround(workload)

    def learned_cells(self, after: str = "") -> Iterator[framework.LearnedCell]:
        """Those of the learner."""
        return self.learn.learned_cells(after)

    def learned_node(self, node: str) -> LearnedNode | None:
        """What the learner knows of it."""
        return self.learn.learned_node(node)


NODES_NAMED_MOST = 8  # in the message for a node that there is not


def changed(state: State, task: Task, question: Question, now: float) -> tuple[State, Task]:
    """The state and the pending task with the changes. `now` in seconds. Raises QuestionError."""
    cluster, placed = state.cluster, state.placed
    if not question.changes_the_task_alone:
        cluster = state.cluster.copy()
        placed = state.placed.copy(cluster)
    like: dict[int, int] = {}
    for change in question.changes:
        match change:
            case ChangeTask(edits):
                for edit in edits:
                    task = edit(task)
            case ChangeNode(name, edits):
                _set_node(cluster, _node(cluster, name), edits)
            case AddNodes():
                like |= _add_nodes(cluster, change)
            case DeletePod(namespace, name):
                if (found := placed.find(namespace, name)) is None:
                    raise QuestionError(f"there is no pod {namespace}/{name} that holds room on a node")
                placed.remove(found.uid)
    return _with(state, cluster, placed, like, now), task


def _with(state: State, cluster: Cluster, placed: PlacedPods, like: dict[int, int], now: float) -> State:
    found, view = copy(state), state.view
    found.cluster, found.placed, found.now = cluster, placed, now
    found.learn = KnownSpeeds(state.learn, cluster.capacity, like)
    found.view = replace(
        view,
        now=now,
        cluster=cluster,
        placed=placed,
        classes=ClassCache(cluster),  # those of the state would be brought up to date
        learn=found.learn,
        rng=Random(0),  # a draw from the engine's own would change what it draws next
        pricing=None if view.pricing is None else view.pricing.copy(cluster),
    )
    return found


def _node(cluster: Cluster, name: str) -> Node:
    node = cluster.node(name)
    if node is None:
        names = sorted(cluster.rows)
        listed, more = ", ".join(names[:NODES_NAMED_MOST]) or "none", len(names) - NODES_NAMED_MOST
        others = f" and {more} more" if more > 0 else ""
        raise QuestionError(f"there is no node {name!r}; there are {listed}{others}")
    return node


def _set_node(cluster: Cluster, node: Node, edits: Sequence[NodeEdit]) -> int:
    for edit in edits:
        node = edit(node)
    return cluster.set_node(node)


def _add_nodes(cluster: Cluster, change: AddNodes) -> dict[int, int]:
    """Row of each new node -> row of the node that it is like."""
    model, like, number = _node(cluster, change.like), dict[int, int](), 0
    for _ in range(change.number):
        while (name := f"{change.like}-like-{number}") in cluster.rows:
            number += 1
        labels = tuple((key, name if key == HOSTNAME else value) for key, value in model.labels)
        row = _set_node(cluster, replace(model, name=name, labels=labels), change.edits)
        like[row] = other = cluster.rows[change.like]
        cluster.volumes.resemble(row, other)
    return like


DRAWS = 4  # how often a policy is asked: enough to see that it draws
CANDIDATES_MOST = 5

NODE_QUEUES = "it queues pods at nodes, and which node will be the first to start one is not known before"


def answer_of(state: State, task: Task, policy: framework.Place) -> PolicyAnswer:
    """What the policy answers in the view, which is not used elsewhere; if it fails, it cannot say."""
    name, reason = str(policy), _why_not(state, policy)
    if reason:
        return PolicyAnswer(name, "cannotSay", reason=reason)
    task_class = state.view.task_class(task)
    if not task_class.fits_now_count:
        return PolicyAnswer(name, "noRoom")
    try:
        return _asked(state, task, task_class, policy)
    except Exception as error:  # a plug-in's defect must not end the explanation
        return PolicyAnswer(name, "cannotSay", reason=f"it failed: {type(error).__name__}: {error}")


def _why_not(state: State, policy: framework.Place) -> str:
    """Why the policy cannot be asked; empty if it can be."""
    accounts, needs = state.accounts, policy.traits.needs
    wanted = (
        ("prices" in needs and accounts.pricing is None, "node prices"),
        ("work" in needs and accounts.job_work is None, "the work that is left in each job"),
        ("jobs" in needs and accounts.jobs is None, "DAG jobs"),
        ("shares" in needs and id(policy) not in state.view.shares_by_policy, "shares of groups"),
    )
    if policy.traits.joins_node_queues:
        return NODE_QUEUES
    if not dataclasses.is_dataclass(type(policy)):
        return "there is no way to make another one with its settings"
    missing = [what for is_missing, what in wanted if is_missing]
    return f"it counts {' and '.join(missing)}, which this scheduler does not" if missing else ""


def _asked(state: State, task: Task, task_class: TaskClass, policy: framework.Place) -> PolicyAnswer:
    name, chosen, first = str(policy), Counter[int](), None
    for seed in range(DRAWS):
        asked: framework.Place = dataclasses.replace(policy)  # type: ignore[type-var]
        action = next(asked.place(_view_for(state, policy, asked, seed), OneTask(task)), None)
        first = first or action
        if isinstance(action, framework.Bind):
            chosen[action.row] += 1
    names = state.cluster.names
    match first:
        case framework.Bind(row=row):
            found = tuple(_candidates(state, task_class, row, chosen))
            return PolicyAnswer(name, "places", names[row], "", found, DRAWS)
        case framework.Defer(wait=wait):
            return PolicyAnswer(name, "defers", "" if wait.row is None else names[wait.row])
        case framework.Unschedulable(reason=reason):
            return PolicyAnswer(name, "refuses", reason=reason.message)
        case _:
            return PolicyAnswer(name, "cannotSay", reason="it gives no answer about one pod alone")


def _view_for(state: State, policy: framework.Place, asked: framework.Place, seed: int) -> framework.View:
    """The view of the new instance, with the account of the one that it stands for."""
    shares = state.view.shares_by_policy
    if id(policy) in shares:
        shares = {**shares, id(asked): shares[id(policy)]}
    return replace(state.view, rng=Random(seed), shares_by_policy=shares)


def _candidates(state: State, task_class: TaskClass, row: int, chosen: Counter[int]) -> Iterator[Candidate]:
    """By the ranking in which the chosen row stands; without one, those that were drawn, by how often."""
    names = state.cluster.names
    rankings = [each for each in task_class.derived.values() if isinstance(each, Ranking)]
    ranking = next((each for each in rankings if each.cost_at(row) < float("inf")), None)
    if ranking is None:
        for each, draws in chosen.most_common(CANDIDATES_MOST):
            yield Candidate(names[each], None, draws)
        return
    for each, cost in ranking.first(CANDIDATES_MOST):
        yield Candidate(names[each], cost, chosen[each])


class OneTask(framework.PendingTasks):
    """A scheduling cycle with one task, and its class queue."""

    __slots__ = ("head",)
    group = ""

    def __init__(self, task: Task) -> None:
        self.head: Task | None = task  # until it is taken

    def __len__(self) -> int:
        return 1

    def __next__(self) -> Task:
        task = self.take(self)
        if task is None:
            raise StopIteration
        return task

    def queues(self) -> Iterator[framework.ClassQueue]:
        """The one queue, until its task is taken."""
        if self.head is not None:
            yield self

    def take(self, queue: framework.ClassQueue) -> Task | None:
        """The task; None when it was taken already."""
        taken, self.head = self.head, None
        return taken

    def left(self, task: Task) -> int:
        """The task, until it is taken."""
        return int(self.head is not None)

    def skip(self, task: Task, most: int) -> int:
        """None: there is no other task."""
        return 0


def what_if_explanation(
    state: State, pod: tuple[str, str], question: Question, now: float
) -> WhatIfExplanation:
    """The answer about a pod that waits; `pod`: its namespace and name, `now` in seconds.

    Raises QuestionError. Costs two explanations, and a copy of nodes and pods where these are to change.
    """
    task = _waiting(state, *pod)
    before = explain_waiting(state, task, now)
    changed_state, changed_task = changed(state, task, question, now)
    after = explain_waiting(changed_state, changed_task, now)
    # The policy of its profile, with its settings, unless another kind is asked for.
    own, other = state.profiles[changed_task.profile].place, question.policy
    policy = own if other is None or type(own) is type(other) else other
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


def _funnel(pod: PodExplanation) -> Funnel:
    """Of a pod that waits, which always has one."""
    if pod.funnel is None:
        raise ValueError(f"{pod.namespace}/{pod.name} does not wait")
    return pod.funnel


def _differences(before: Funnel, after: Funnel) -> Iterator[RuleDifference]:
    """The rules that refuse other numbers of nodes, in the order of the funnel after the change."""
    refused_before, refused = _refused(before), _refused(after)
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
