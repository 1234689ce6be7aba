"""What a question may change of the pod that it is about: the table of items."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from msgspec.structs import replace

from eclectus.config.what_if.item import Item, amount, whole, with_amount, with_effect
from eclectus.engine.explain.what_if.question import TaskEdit
from eclectus.model.errors import QuestionError
from eclectus.model.objects import Task, Toleration


def _request(item: Item) -> TaskEdit:
    return partial(_with_request, resource=item.name, requested=amount(item))


def _with_request(task: Task, *, resource: str, requested: int) -> Task:
    cpu, memory = task.spec.score_requests
    if resource == "cpu":
        cpu = requested or cpu  # a pod without a request keeps Kubernetes' default there
    elif resource == "memory":
        memory = requested or memory
    requests = with_amount(task.spec.requests, resource, requested)
    return replace(task, spec=replace(task.spec, requests=requests, score_requests=(cpu, memory)))


def _drop_selector(item: Item) -> TaskEdit:
    def edit(task: Task) -> Task:
        left = tuple(each for each in task.spec.node_selector if each[0] != item.value)
        if len(left) == len(task.spec.node_selector):
            has = ", ".join(key for key, _ in task.spec.node_selector) or "none"
            raise QuestionError(f"{item}: the pod's nodeSelector has no such key; it has {has}")
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
