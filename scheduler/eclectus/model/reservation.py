"""What stands in a node's line: a claim to the room that falls free there."""

from __future__ import annotations

from eclectus.model.objects import Spec, Task

ClassKey = tuple[Spec, str]
"""What defines a class: spec and workload."""


class Reservation:
    """Tasks that wait in lines, and the nodes in whose lines they stand. Read it, do not write it.

    One task that has joined one line is a claim; so are the tasks of a job behind reservations in many
    lines (Sparrow, 2013: late binding). Whichever node comes to it first starts the next of its tasks. A
    claim is the same object wherever it stands, so a policy may remember things about it.
    """

    __slots__ = ("__weakref__", "class_key", "is_tentative", "profile", "rows", "since", "sticky", "tasks")

    def __init__(
        self,
        tasks: list[Task],
        rows: list[int],
        since: float,
        *,
        sticky: bool = False,
        is_tentative: bool = False,
    ) -> None:
        first = tasks[0]
        self.class_key: ClassKey = (first.spec, first.workload)  # of all its tasks
        self.profile = first.profile  # of all its tasks
        self.tasks = tasks  # not started yet, in order; never empty while it stands anywhere
        self.rows = rows  # where it stands; a row stands here twice if it was drawn twice
        self.since = since  # seconds
        self.sticky = sticky  # keeps its place in a line until all its tasks have started
        self.is_tentative = is_tentative  # counts as held for a node: one task, which has joined its line

    @property
    def head(self) -> Task:
        """The task that starts next."""
        return self.tasks[0]
