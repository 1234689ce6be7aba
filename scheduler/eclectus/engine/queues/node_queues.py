"""Node queues: reservations of tasks that wait for a busy node, in order of arrival.

A task that joined one node queue counts as `tentative` in the cluster's arrays, so that tasks placed later
see its room as taken. The reservations of a job in many queues do not count: most of them become void.
Nothing here is persisted; after a restart policies answer again for the pending pods.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from eclectus.cluster.nodes import Cluster
from eclectus.model.objects import ClassKey, Reservation, Task


class NodeQueues:
    """The node queue of every row."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._by_row: dict[int, list[Reservation]] = {}
        self.by_row: Mapping[int, Sequence[Reservation]] = self._by_row  # no empty queues
        self._class_keys: dict[int, dict[ClassKey, int]] = {}  # row -> class -> reservations in the queue
        self._reservations: dict[Reservation, None] = {}  # those with tasks, in order of arrival
        self._count = 0  # tasks
        self._tasks_by_class: dict[ClassKey, int] = {}
        self.tasks_by_class: Mapping[ClassKey, int] = self._tasks_by_class  # waiting, each once; no zeros

    def __len__(self) -> int:
        """Tasks that wait in node queues."""
        return self._count

    def class_keys(self, row: int) -> Iterable[ClassKey]:
        """The classes in the queue of this row, each once: queues are long and have few classes."""
        return self._class_keys.get(row, {}).keys()

    def of_class(self, profile: str, class_key: ClassKey) -> Iterator[Task]:
        """The tasks of a profile and class, in order of arrival; O(tasks in node queues)."""
        for reservation in self._reservations:
            if reservation.profile == profile and reservation.class_key == class_key:
                yield from reservation.tasks

    def enqueue(self, task: Task, row: int, now: float) -> Reservation:
        """Add the task at the end of the queue of this row; the reservation behind which it waits."""
        reservation = Reservation([task], [row], now, is_tentative=True)
        self._append(reservation, row)
        self._wait(reservation)
        return reservation

    def reserve(self, tasks: Sequence[Task], rows: Sequence[int], sticky: bool, now: float) -> Reservation:
        """Add one reservation for tasks of one class at the end of the queue of each of these rows."""
        reservation = Reservation(list(tasks), list(rows), now, sticky=sticky)
        for row in reservation.rows:
            self._append(reservation, row)
        self._wait(reservation)
        return reservation

    def move(self, reservation: Reservation, row: int, to: int) -> None:
        """Move the reservation from the queue of `row` to the end of that of `to`."""
        self._remove(reservation, row)
        reservation.rows.append(to)
        self._append(reservation, to)

    def _wait(self, reservation: Reservation) -> None:
        counts, tasks = self._tasks_by_class, len(reservation.tasks)
        counts[reservation.class_key] = counts.get(reservation.class_key, 0) + tasks
        self._reservations[reservation] = None
        self._count += tasks

    def _append(self, reservation: Reservation, row: int) -> None:
        self._by_row.setdefault(row, []).append(reservation)
        counts = self._class_keys.setdefault(row, {})
        counts[reservation.class_key] = counts.get(reservation.class_key, 0) + 1
        if reservation.is_tentative:
            self._cluster.add_tentative(row, reservation.class_key[0].requests)

    def dequeue(self, reservation: Reservation, row: int) -> Task:
        """Take the reservation's next task out of all node queues: it starts on this row."""
        task = reservation.tasks[0]
        if len(reservation.tasks) > 1 and not reservation.sticky:
            self._remove(reservation, row)
        self.discard(reservation, task.uid)
        if reservation.tasks and not reservation.rows:  # its last reservation is used up, and tasks are left
            reservation.rows.append(row)
            self._append(reservation, row)
        return task

    def discard(self, reservation: Reservation, uid: str) -> None:
        """A task waits behind the reservation no more, which without tasks is void everywhere."""
        self._count -= 1
        self._tasks_by_class[reservation.class_key] -= 1
        if not self._tasks_by_class[reservation.class_key]:
            del self._tasks_by_class[reservation.class_key]
        if len(reservation.tasks) == 1:
            del self._reservations[reservation]
            for row in tuple(reservation.rows):
                self._remove(reservation, row)
        del reservation.tasks[[task.uid for task in reservation.tasks].index(uid)]

    def cancel(self, reservation: Reservation, row: int) -> list[Task]:
        """Cancel the reservation at this row.

        Returns its tasks, then in no node queue any more, if it had no reservation elsewhere.
        """
        if any(other != row for other in reservation.rows):
            while row in reservation.rows:
                self._remove(reservation, row)
            return []
        tasks = list(reservation.tasks)
        for task in tasks:
            self.discard(reservation, task.uid)
        return tasks

    def cancel_all(self, row: int) -> list[Task]:
        """Cancel every reservation at this row; returns the tasks then in no node queue, in order."""
        reservations = dict.fromkeys(self._by_row.get(row, ()))
        return [task for reservation in reservations for task in self.cancel(reservation, row)]

    def _remove(self, reservation: Reservation, row: int) -> None:
        reservation.rows.remove(row)
        queue, counts = self._by_row[row], self._class_keys[row]
        queue.remove(reservation)
        counts[reservation.class_key] -= 1
        if not counts[reservation.class_key]:
            del counts[reservation.class_key]
        if not queue:
            del self._by_row[row], self._class_keys[row]
        if reservation.is_tentative:
            self._cluster.add_tentative(row, reservation.class_key[0].requests, -1)
