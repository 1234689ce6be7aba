"""What a question may change of a node: the table of items."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from eclectus.config.what_if.item import Item, amount, with_amount, with_effect
from eclectus.engine.explain.what_if.question import NodeEdit
from eclectus.model.errors import QuestionError
from eclectus.model.objects import Node, Taint


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
        if len(left) == len(node.taints):
            has = ", ".join(f"{each.key}:{each.effect}" for each in node.taints) or "none"
            raise QuestionError(f"{item}: node {node.name!r} has no such taint; it has {has}")
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
        if len(left) == len(node.labels):
            has = ", ".join(key for key, _ in node.labels) or "none"
            raise QuestionError(f"{item}: node {node.name!r} has no such label; it has {has}")
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
