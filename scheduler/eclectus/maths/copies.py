"""Copies of stragglers: the next step of a task that runs as two pods, by what both are doing. One table.

    original         no copy    waits       runs        succeeded  failed     is being deleted
    runs             wait       withdraw    wait        win        wait       wait
    straggles        create     wait        wait        win        wait       wait
    succeeded        wait       lose        lose        first      lose       wait
    failed           wait       take over   take over   win        withdraw   wait
    being deleted    wait       take over   take over   wait       wait       wait
    gone             wait       take over   take over   wait       wait       wait

    create       make the copy
    withdraw     delete the copy: nobody has won
    win          delete the original: the copy has ended first
    lose         delete the copy: the original has ended first
    first        win or lose: who has finished first, and at the same time who is first by name
    take over    the original is no more: the copy is the attempt, and no other is made
    drop         delete both, but for what has succeeded: nobody wants the task any more
    force        delete the copy without waiting for its node, which is silent

A copy that has failed stays until its original ends. It shows why, and by its name no second one is made. A
copy that has been in one stage of its life for too long is withdrawn, unless it only runs and is the attempt.

The table reads what is the case and remembers nothing, so whatever a crash leaves behind is a cell of it: the
operator makes a copy under a name that follows from its original's, and deletes pods by uid. The simulator
takes the same steps.
"""

from __future__ import annotations

import hashlib
from enum import StrEnum
from math import inf

from msgspec import Struct

SUFFIX = "-copy"
_LABEL_CHARACTERS = 63  # of a DNS label: the name of a pod is its host name too


class Doing(StrEnum):
    """What a pod is doing."""

    GONE = "gone"  # or it was never there
    WAITS = "waits"  # for a node, an image or its start
    RUNS = "runs"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    LEAVING = "being deleted"  # before it has ended


class Step(StrEnum):
    """What follows."""

    WAIT = "wait"
    CREATE = "create"
    WITHDRAW = "withdraw"
    WIN = "win"
    LOSE = "lose"
    TAKE_OVER = "take over"
    DROP = "drop"
    FORCE = "force"


class Attempt(Struct, frozen=True, gc=False):
    """The original or the copy. `finished_at`: when it ended, in seconds of any clock that both have."""

    doing: Doing = Doing.GONE
    name: str = ""
    finished_at: float = inf


NO_POD = Attempt()
_STRAGGLES = "straggles"
_FIRST = "first"
_COLUMNS = (Doing.GONE, Doing.WAITS, Doing.RUNS, Doing.SUCCEEDED, Doing.FAILED, Doing.LEAVING)
_ROWS: dict[str, tuple[str, ...]] = {
    Doing.RUNS: (Step.WAIT, Step.WITHDRAW, Step.WAIT, Step.WIN, Step.WAIT, Step.WAIT),
    _STRAGGLES: (Step.CREATE, Step.WAIT, Step.WAIT, Step.WIN, Step.WAIT, Step.WAIT),
    Doing.SUCCEEDED: (Step.WAIT, Step.LOSE, Step.LOSE, _FIRST, Step.LOSE, Step.WAIT),
    Doing.FAILED: (Step.WAIT, Step.TAKE_OVER, Step.TAKE_OVER, Step.WIN, Step.WITHDRAW, Step.WAIT),
    Doing.LEAVING: (Step.WAIT, Step.TAKE_OVER, Step.TAKE_OVER, Step.WAIT, Step.WAIT, Step.WAIT),
    Doing.GONE: (Step.WAIT, Step.TAKE_OVER, Step.TAKE_OVER, Step.WAIT, Step.WAIT, Step.WAIT),
}
_CELLS = {(row, column): cells[at] for row, cells in _ROWS.items() for at, column in enumerate(_COLUMNS)}


def next_step(
    original: Attempt,
    copy: Attempt,
    *,
    is_straggling: bool,
    is_wanted: bool = True,
    is_overdue: bool = False,
) -> Step:
    """The next step of a task.

    `is_straggling`: the scheduler says so of the original; `is_wanted`: the task is neither suspended nor
    deleted; `is_overdue`: the copy has been in its stage for longer than it may.
    """
    step = _cell(original, copy, is_straggling=is_straggling)
    if copy.doing is Doing.LEAVING:
        return Step.FORCE if is_overdue else step
    if step in (Step.WIN, Step.LOSE) or Doing.SUCCEEDED in (original.doing, copy.doing):
        return step
    if not is_wanted:
        return Step.WAIT if copy.doing is Doing.GONE else Step.DROP
    is_only_running = step is Step.TAKE_OVER and copy.doing is Doing.RUNS
    if is_overdue and copy.doing in (Doing.WAITS, Doing.RUNS) and not is_only_running:
        return Step.WITHDRAW
    return step


def _cell(original: Attempt, copy: Attempt, *, is_straggling: bool) -> Step:
    row: str = original.doing
    if original.doing is Doing.WAITS:
        row = Doing.RUNS  # one without a node has nothing that a copy could overtake
    elif original.doing is Doing.RUNS and is_straggling:
        row = _STRAGGLES
    found = _CELLS[row, copy.doing]
    if found != _FIRST:
        return Step(found)
    return Step.WIN if _place(copy) < _place(original) else Step.LOSE


def _place(attempt: Attempt) -> tuple[float, str]:
    return attempt.finished_at, attempt.name


def copy_name(original: str) -> str:
    """The name of the copy of a pod, by which a create that is repeated finds it; a DNS label if that is."""
    name = original + SUFFIX
    if len(name) <= _LABEL_CHARACTERS:
        return name
    tail = f"-{hashlib.sha256(original.encode()).hexdigest()[:8]}{SUFFIX}"
    return original[: _LABEL_CHARACTERS - len(tail)].rstrip("-.") + tail
