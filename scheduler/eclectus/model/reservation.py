"""What a node queue holds: a reservation, by which tasks wait for a node."""

from eclectus.model.objects import Spec, Task

ClassKey = tuple[Spec, str]
"""What defines a class: spec and workload."""


class Reservation:
    """Tasks that wait, and the nodes in whose queues they wait. Written by NodeQueues only.

    Usually one task in the queue of one node; in Sparrow (SOSP 2013), the tasks of a job with reservations in
    the queues of many nodes (late binding): whichever node dispatches first starts the next of the tasks. It
    is the same object in every queue, so a policy may remember things about it.
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
        self.tasks = tasks  # not started yet, in order; never empty while it is in any queue
        self.rows = rows  # in whose queues it is; a row drawn twice is here twice
        self.since = since  # when it was enqueued, seconds on the caller's clock
        self.sticky = sticky  # keeps its place in a queue until all its tasks have started
        self.is_tentative = is_tentative  # its task counts as tentative on its node; only with one of each

    @property
    def head(self) -> Task:
        """The task that starts next."""
        return self.tasks[0]
