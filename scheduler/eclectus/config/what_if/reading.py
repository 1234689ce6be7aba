"""Questions as users write them: what would be other than it is, and which policy is asked.

Each text is a list of `KEY=VALUE` with commas between, and the first one says what changes:

    node=NAME,taint-=KEY            a node; further items change more of it
    add-node-like=NAME,count=3      more nodes like one that exists, with further items as of a node
    delete-pod=NAMESPACE/NAME       a pod on a node is gone
    request.cpu=500m,priority=10    without these: the pod that is asked about

node_items.py and task_items.py have the other items. Every error names the item and what is known instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from eclectus.config.reading import nearest
from eclectus.config.what_if.item import Item, read_item, whole
from eclectus.config.what_if.node_items import NODE_ITEMS
from eclectus.config.what_if.task_items import TASK_ITEMS
from eclectus.engine.explain.what_if.question import (
    AddNodes,
    Change,
    ChangeNode,
    ChangeTask,
    DeletePod,
    NodeEdit,
    Question,
    TaskEdit,
)
from eclectus.framework import Place
from eclectus.model.errors import QuestionError
from eclectus.policies import table

WHAT_IF, AS_POLICY = "whatIf", "asPolicy"  # parameters of the path that answers questions
CHANGES_MOST = 16  # texts of one question: each may be about a node that is copied
NODES_MOST = 100  # added by one text
CHARACTERS_MOST = 1024  # of one text

EditT = TypeVar("EditT", NodeEdit, TaskEdit)


def read_question(texts: Sequence[str], as_policy: str, namespace: str) -> Question:
    """The question; `namespace`: of pods that are named without one. Raises QuestionError."""
    if len(texts) > CHANGES_MOST:
        raise QuestionError(f"{len(texts)} changes are asked for, and at most {CHANGES_MOST} are allowed")
    if not texts and not as_policy:
        raise QuestionError("nothing is asked: say what would be other (what-if), or which policy decides")
    changes = tuple(_change(text, namespace) for text in texts)
    return Question(changes, tuple(texts), _policy(as_policy) if as_policy else None)


def _policy(name: str) -> Place:
    """A Place policy with its defaults. Raises QuestionError."""
    if name not in table.PLACE:
        raise QuestionError(f"there is no Place policy {name!r}; {nearest(name, list(table.PLACE))}")
    return table.PLACE[name]()


# -- what changes ----------------------------------------------------------------------------------


def _change(text: str, namespace: str) -> Change:
    if len(text) > CHARACTERS_MOST:
        raise QuestionError(f"a change of {len(text)} characters is too long; at most {CHARACTERS_MOST}")
    first, *others = items = [read_item(each) for each in text.split(",")]
    if first.key not in SUBJECTS:
        return ChangeTask(_edits(TASK_ITEMS, items))
    if not first.value:
        raise QuestionError(f"{first}: a name is missing")
    return SUBJECTS[first.key](first.value, others, namespace)


def _change_node(name: str, others: Sequence[Item], namespace: str) -> Change:
    del namespace
    if not others:
        raise QuestionError(f"node={name}: say what would be other about it; {_known(NODE_ITEMS)}")
    return ChangeNode(name, _edits(NODE_ITEMS, others))


def _add_nodes(like: str, others: Sequence[Item], namespace: str) -> Change:
    del namespace
    counts = [each for each in others if each.key == "count"]
    count = whole(counts[-1], 1, NODES_MOST) if counts else 1
    return AddNodes(like, count, _edits(NODE_ITEMS, [each for each in others if each.key != "count"]))


def _delete_pod(pod: str, others: Sequence[Item], namespace: str) -> Change:
    if others:
        raise QuestionError(f"delete-pod={pod}: nothing may follow, but {others[0]} does")
    before, slash, name = pod.partition("/")
    return DeletePod(before, name) if slash else DeletePod(namespace, pod)


SUBJECTS: Mapping[str, Callable[[str, Sequence[Item], str], Change]] = {
    "node": _change_node,
    "add-node-like": _add_nodes,
    "delete-pod": _delete_pod,
}
"""Key of the first item -> `(its value, the other items, the pod's namespace)`."""


def _edits(known: Mapping[str, Callable[[Item], EditT]], items: Iterable[Item]) -> tuple[EditT, ...]:
    found = list[EditT]()
    for each in items:
        if each.key not in known:
            subjects = ", ".join(f"{key}=" for key in SUBJECTS)
            others = f"; what is not about the pod begins with {subjects}" if known is TASK_ITEMS else ""
            raise QuestionError(f"{each}: unknown; {_known(known)}{others}")
        found.append(known[each.key](each))
    return tuple(found)


def _known(items: Mapping[str, object]) -> str:
    return "known are: " + ", ".join(f"{key}RESOURCE=" if key[-1] == "." else f"{key}=" for key in items)
