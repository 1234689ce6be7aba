"""What a Place policy may answer with."""

from __future__ import annotations

from math import inf

from msgspec import Struct

from eclectus.model.objects import Task


class Reason(Struct, frozen=True, gc=False):
    """Why a task is not placed. `of_class`: true of every task of its class until the cluster changes."""

    message: str = ""  # empty: the engine words it from the rules; must be given for one task alone
    of_class: bool = True


class Place(Struct, frozen=True, gc=False):
    """Bind the task to this node now. The node must be open to its class.

    `devices`: which of the node's devices a task takes that asks for some, whole ones first and that of
    its share last. Where none are named it takes the fullest that have room.
    """

    task: Task
    row: int
    devices: tuple[int, ...] = ()


class Defer(Struct, frozen=True, gc=False):
    """The task waits for this busy node, for this round only: the next round plans afresh."""

    task: Task
    row: int
    until: float = inf  # look again at this time even if nothing has happened, seconds


class Enqueue(Struct, frozen=True, gc=False):
    """The task joins this node's line and stays there until the Line policy serves it.

    The node must have a slot that services leave to others: a line behind services never moves.
    """

    task: Task
    row: int


class ReserveMany(Struct, frozen=True, gc=False):
    """Tasks of one kind wait together behind a reservation in the line of each of these nodes.

    A node that comes to a reservation starts the next of them (late binding); reservations left over
    when all have started are void. A row given twice gets two. `sticky`: a reservation stays until all
    tasks have started, instead of being used up by the first.
    """

    tasks: tuple[Task, ...]
    rows: tuple[int, ...]
    sticky: bool = False


class Unschedulable(Struct, frozen=True, gc=False):
    """The task has no place now."""

    task: Task
    reason: Reason = Reason()


Action = Place | Defer | Enqueue | ReserveMany | Unschedulable
