"""Amounts and other pods as people read them."""

from __future__ import annotations

from collections.abc import Sequence

from eclectus.model.explanation import Lack, OtherPod

_BYTES = ("memory", "ephemeral-storage")
_UNITS = (("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10))


def quantity(resource: str, amount: int) -> str:
    """As Kubernetes writes quantities: 300m, 2, 1.5Gi."""
    if resource == "cpu":
        return f"{amount}m" if amount % 1000 else f"{amount // 1000}"
    if resource in _BYTES or resource.startswith("hugepages-"):
        for suffix, unit in _UNITS:
            if abs(amount) >= unit:
                return f"{amount / unit:.4g}{suffix}"
    return str(amount)


def lack(each: Lack) -> str:
    """What a node lacks: `300m cpu short`, or `needs` and a condition, or a rule's refusal."""
    if not each.amount:
        return f"needs {each.what}" if each.permanent else each.what.removeprefix("node(s) ")
    also = ", also when it is empty" if each.permanent else ""
    return f"{quantity(each.what, each.amount)} {each.what} short{also}"


def pods(named: Sequence[OtherPod], not_listed: int = 0) -> str:
    """Names and priorities, and how many more there are."""
    words = [_pod(each) for each in named]
    if not_listed:
        words.append(f"{not_listed} more")
    return ", ".join(words)


def _pod(pod: OtherPod) -> str:
    name = f"{pod.namespace}/{pod.name}" if pod.name else "a pod of another namespace"
    leaving = ", on its way out" if pod.leaving else ""
    nominated = ", nominated" if pod.nominated else ""
    return f"{name} (priority {pod.priority}{leaving}{nominated})"


def count(number: int, noun: str) -> str:
    """`1 node`, `2 nodes`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
