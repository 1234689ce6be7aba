"""What kube-scheduler and Eclectus say otherwise on purpose. docs/differences.md names each, too.

Each is cut out of the message of its side before messages are compared; how often is in the report.
"""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

Side = Literal["kube-scheduler", "eclectus"]


@dataclass(frozen=True)
class KnownDifference:
    """Words of one side that the other does not have, and why."""

    side: Side
    words: re.Pattern[str]
    why: str


NO_OUTCOME = KnownDifference(
    "kube-scheduler",
    re.compile(r" not found$"),
    "the plugin of Dynamic Resource Allocation has no state of a pod that was refused for all nodes at once,"
    " and its error keeps preemption from being asked",
)
KNOWN_DIFFERENCES: dict[str, KnownDifference] = {
    "not found": NO_OUTCOME,
    "never feasible": KnownDifference(
        "eclectus",
        re.compile(r" No node, however empty, satisfies.*", re.DOTALL),
        "which of the pod's conditions no node meets, for those who read the message",
    ),
}


@dataclass(frozen=True)
class KnownScore:
    """Pods that kube-scheduler scores otherwise, and why."""

    applies: Callable[[Any], bool]
    why: str


KNOWN_SCORES: dict[str, KnownScore] = {
    "pod-level score": KnownScore(
        lambda pod: "resources" in pod["spec"],
        "kube-scheduler's LeastAllocated overlooks the pod-level requests of the pod that is to be placed,"
        " though not those of pods on nodes",
    ),
}


LEFT_PENDING, ORDER_OF_BUDGETS = "left pending", "order of budgets"
WHY = {
    ORDER_OF_BUDGETS: "kube-scheduler spends the budgets of a pod in no certain order, up to a violated one",
    LEFT_PENDING: "kube-scheduler has evicted pods for it, and does not try it again when they have ended",
    **{name: each.why for name, each in KNOWN_DIFFERENCES.items()},
    **{name: each.why for name, each in KNOWN_SCORES.items()},
}
"""Name of what is known -> why."""


def scored_alike(pod: Any, used: "Counter[str]") -> bool:
    """Whether both score nodes alike for the pod; counts in `used` why not."""
    known = [name for name, each in KNOWN_SCORES.items() if each.applies(pod)]
    used.update(known)
    return not known


def without_known(message: str, side: Side, used: "Counter[str]") -> str:
    """The message without what is known of this side; counts in `used` what it had."""
    for name, known in KNOWN_DIFFERENCES.items():
        if known.side == side and known.words.search(message):
            used[name] += 1
            message = known.words.sub("", message)
    return message
