"""Changes as users write them: what would be other than it is.

Each text is a list of `KEY=VALUE` with commas between, and the first one says what changes:

    node=NAME,taint-=KEY            a node; further items change more of it
    add-node-like=NAME,count=3      more nodes like one that exists, with further items as of a node
    delete-pod=NAMESPACE/NAME       a pod on a node is gone
    request.cpu=500m,priority=10    without these: the pod that is asked about

NODE_ITEMS and TASK_ITEMS are the tables of the other items. Every error names the item and what is known
instead.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, TypeVar, get_args

from msgspec.structs import replace

from eclectus.kube.requests import FieldError, amounts, counted, parsed
from eclectus.model.changes import (
    AddNodes,
    Change,
    ChangeNode,
    ChangeTask,
    DeletePod,
    NodeEdit,
    TaskEdit,
)
from eclectus.model.errors import QuestionError
from eclectus.model.objects import Amounts, Node, Taint, Task, Toleration, amount_of
from eclectus.model.printed import nearest, spelling

Effect = Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]
EFFECTS: tuple[Effect, ...] = get_args(Effect)


class Item(NamedTuple):
    """One `KEY=VALUE`. A key with a dot has a name behind it: `request.cpu`."""

    key: str
    name: str
    value: str

    def __str__(self) -> str:
        return f"{self.key}{self.name}={self.value}"


def read_item(text: str) -> Item:
    """The item that a user has written. Raises QuestionError."""
    left, sign, value = text.strip().partition("=")
    if not sign:
        raise QuestionError(f"{text.strip()!r} is not KEY=VALUE")
    # Of `taint+=KEY=VALUE:EFFECT` the + before the first = belongs to the key.
    key, dot, name = left.partition(".")
    return Item(f"{key}{dot}", name, value)


def with_amount(before: Amounts, resource: str, amount: int) -> Amounts:
    """The amounts with another one of this resource; without the resource for 0."""
    others = [each for each in before if each[0] != resource]
    return tuple(sorted([*others, (resource, amount)] if amount else others))


def amount(item: Item) -> int:
    """The value as a quantity, in the smallest unit of the resource. Raises QuestionError."""
    if not counted(item.name):
        raise QuestionError(f"{item}: {item.name!r} is no resource that nodes have, such as cpu or memory")
    try:
        return amount_of(amounts(parsed({item.name: item.value}, item.key.rstrip("."))), item.name)
    except FieldError as error:
        raise QuestionError(f"{item}: {error.problem}") from error


def with_effect(item: Item) -> tuple[str, Effect | Literal[""]]:
    """The text before `:EFFECT`, and the effect; empty: every one."""
    text, _, effect = item.value.partition(":")
    if not text:
        raise QuestionError(f"{item}: the key of a taint is missing")
    if effect and effect not in EFFECTS:
        raise QuestionError(f"{item}: there is no effect {effect!r}; {nearest(effect, list(EFFECTS))}")
    return text, next((each for each in EFFECTS if each == effect), "")


def whole(item: Item, least: int, most: int) -> int:
    """The value as a number within bounds. Raises QuestionError."""
    try:
        number = int(item.value)
    except ValueError:
        number = least - 1
    if not least <= number <= most:
        raise QuestionError(f"{item}: must be a whole number from {least} to {most}")
    return number


def _check_found(item: Item, problem: str, known: Collection[str], left: int) -> None:
    """Raise QuestionError if all that is known is left: the item names nothing of it."""
    if left == len(known):
        raise QuestionError(f"{item}: {problem}; it has {', '.join(known) or 'none'}")


def _cordon(item: Item) -> NodeEdit:
    if item.value not in ("true", "false"):
        raise QuestionError(f"{item}: must be true or false")
    return lambda node: replace(node, unschedulable=item.value == "true")


def _add_taint(item: Item) -> NodeEdit:
    taint, effect = with_effect(item)
    key, _, value = taint.partition("=")
    added = Taint(key, value, effect or "NoSchedule")

    def edit(node: Node) -> Node:
        others = [each for each in node.taints if (each.key, each.effect) != (key, added.effect)]
        return replace(node, taints=(*others, added))

    return edit


def _remove_taint(item: Item) -> NodeEdit:
    key, effect = with_effect(item)

    def edit(node: Node) -> Node:
        left = tuple(each for each in node.taints if each.key != key or effect not in ("", each.effect))
        spelled = [f"{each.key}:{each.effect}" for each in node.taints]
        _check_found(item, f"node {node.name!r} has no such taint", spelled, len(left))
        return replace(node, taints=left)

    return edit


def _add_label(item: Item) -> NodeEdit:
    key, sign, value = item.value.partition("=")
    if not key or not sign:
        raise QuestionError(f"{item}: must be label+=KEY=VALUE")
    return lambda node: replace(node, labels=tuple(sorted({**dict(node.labels), key: value}.items())))


def _remove_label(item: Item) -> NodeEdit:
    def edit(node: Node) -> Node:
        left = tuple(each for each in node.labels if each[0] != item.value)
        _check_found(item, f"node {node.name!r} has no such label", dict(node.labels), len(left))
        return replace(node, labels=left)

    return edit


def _allocatable(item: Item) -> NodeEdit:
    offered = amount(item)
    return lambda node: replace(node, allocatable=with_amount(node.allocatable, item.name, offered))


NODE_ITEMS: Mapping[str, Callable[[Item], NodeEdit]] = {
    "taint+": _add_taint,
    "taint-": _remove_taint,
    "label+": _add_label,
    "label-": _remove_label,
    "cordon": _cordon,
    "allocatable.": _allocatable,
}
"""Key of an item -> what reads it. A key that ends with a dot is followed by a resource."""


def _request(item: Item) -> TaskEdit:
    resource, requested = item.name, amount(item)

    def edit(task: Task) -> Task:
        cpu, memory = task.spec.score_requests
        if resource == "cpu":
            cpu = requested or cpu  # a pod without a request keeps Kubernetes' default there
        elif resource == "memory":
            memory = requested or memory
        requests = with_amount(task.spec.requests, resource, requested)
        return replace(task, spec=replace(task.spec, requests=requests, score_requests=(cpu, memory)))

    return edit


def _drop_selector(item: Item) -> TaskEdit:
    def edit(task: Task) -> Task:
        left = tuple(each for each in task.spec.node_selector if each[0] != item.value)
        known = dict(task.spec.node_selector)
        _check_found(item, "the pod's nodeSelector has no such key", known, len(left))
        return replace(task, spec=replace(task.spec, node_selector=left))

    return edit


def _tolerate(item: Item) -> TaskEdit:
    toleration, effect = with_effect(item)
    key, sign, value = toleration.partition("=")
    added = Toleration(key, "Equal" if sign else "Exists", value, effect)

    def edit(task: Task) -> Task:
        return replace(task, spec=replace(task.spec, tolerations=(*task.spec.tolerations, added)))

    return edit


def _priority(item: Item) -> TaskEdit:
    priority = whole(item, -(2**31), 2**31 - 1)
    return lambda task: replace(task, priority=priority)


TASK_ITEMS: Mapping[str, Callable[[Item], TaskEdit]] = {
    "request.": _request,
    "selector-": _drop_selector,
    "toleration+": _tolerate,
    "priority": _priority,
}
"""Key of an item -> what reads it. A key that ends with a dot is followed by a resource."""


CHANGES_MOST = 16  # texts of one question: each may be about a node that is copied
NODES_MOST = 100  # added by one text
CHARACTERS_MOST = 1024  # of one text
SUBJECTS = ("node", "add-node-like", "delete-pod")  # keys of a first item that is not about the pod

EditT = TypeVar("EditT", NodeEdit, TaskEdit)


def read_changes(texts: Sequence[str], namespace: str) -> tuple[Change, ...]:
    """The changes; `namespace`: of pods that are named without one. Raises QuestionError."""
    if len(texts) > CHANGES_MOST:
        raise QuestionError(f"{len(texts)} changes are asked for, and at most {CHANGES_MOST} are allowed")
    return tuple(_change(text, namespace) for text in texts)


def _change(text: str, namespace: str) -> Change:
    if len(text) > CHARACTERS_MOST:
        raise QuestionError(f"a change of {len(text)} characters is too long; at most {CHARACTERS_MOST}")
    first, *others = items = [read_item(each) for each in text.split(",")]
    if first.key in SUBJECTS and not first.value:
        raise QuestionError(f"{first}: a name is missing")
    match first.key:
        case "node":
            if not others:
                raise QuestionError(f"{first}: say what would be other about it; {_known(NODE_ITEMS)}")
            return ChangeNode(first.value, _edits(NODE_ITEMS, others))
        case "add-node-like":
            counts = [each for each in others if each.key == "count"]
            count = whole(counts[-1], 1, NODES_MOST) if counts else 1
            edits = _edits(NODE_ITEMS, [each for each in others if each.key != "count"])
            return AddNodes(first.value, count, edits)
        case "delete-pod":
            if others:
                raise QuestionError(f"{first}: nothing may follow, but {others[0]} does")
            before, slash, name = first.value.partition("/")
            return DeletePod(before, name) if slash else DeletePod(namespace, before)
    return ChangeTask(_edits(TASK_ITEMS, items))


def _edits(known: Mapping[str, Callable[[Item], EditT]], items: Iterable[Item]) -> tuple[EditT, ...]:
    found = list[EditT]()
    for each in items:
        if each.key not in known:
            subjects = ", ".join(f"{key}=" for key in SUBJECTS)
            others = f"; what is not about the pod begins with {subjects}" if known is TASK_ITEMS else ""
            near = spelling(each.key, [*known, *(SUBJECTS if known is TASK_ITEMS else ())])
            raise QuestionError(f"{each}: unknown; {near or _known(known) + others}")
        found.append(known[each.key](each))
    return tuple(found)


def _known(items: Mapping[str, object]) -> str:
    return "known are: " + ", ".join(f"{key}RESOURCE=" if key[-1] == "." else f"{key}=" for key in items)
