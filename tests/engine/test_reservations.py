"""Tasks of a job behind reservations in several node queues: the first node that is free starts the next."""

from collections.abc import Iterator, Sequence

import pytest

from builders import make_engine, make_node, make_task
from eclectus.framework import Action, Line, LineTraits, Place, ReserveMany, View
from eclectus.model.objects import Reservation, Task
from eclectus.policies.line.fifo import FifoLine
from worlds import World, small_world


class ReserveEverywhere(Place):
    """All offered tasks behind one reservation at each of these rows."""

    def __init__(self, *rows: int, sticky: bool = False) -> None:
        self.rows, self.sticky = rows, sticky

    def place(self, view: View, pending: Iterator[Task]) -> Iterator[Action]:
        if tasks := tuple(pending):
            yield ReserveMany(tasks, self.rows, self.sticky)


def reserving_world(*rows: int, nodes: int = 3, sticky: bool = False, line: Line | None = None) -> World:
    """Nodes with one slot each, in use by a pod `r<row>`, so that every new task must wait."""
    engine = make_engine(ReserveEverywhere(*rows, sticky=sticky), line=line or FifoLine())
    world = small_world(engine, nodes=nodes, cpu=1)
    for at in range(nodes):
        world.put(make_task(f"r{at}", node=f"n{at}"))
    return world


def job(count: int, prefix: str = "t") -> list[Task]:
    return [make_task(f"{prefix}{at}", created=at) for at in range(count)]


def test_the_first_node_that_is_free_starts_the_next_task() -> None:
    world = reserving_world(0, 1, 2)
    world.add(*job(2))
    assert world.engine.queue_counts().node_queues == 2
    world.end("r2")
    world.end("r0")
    assert (world.node_of("t0"), world.node_of("t1")) == ("n2", "n0")


def test_reservations_left_over_are_removed() -> None:
    world = reserving_world(0, 1, 2)
    world.add(*job(1))
    world.end("r1")
    assert world.engine._state.node_queues.by_row == {}


def test_a_reservation_is_used_up_by_the_task_it_starts() -> None:
    world = reserving_world(0, 1)
    world.add(*job(2))
    world.end("r0")
    world.end("t0")
    assert world.node_of("t1") == ""
    world.end("r1")
    assert world.node_of("t1") == "n1"


def test_a_sticky_reservation_stays_until_all_have_started() -> None:
    world = reserving_world(0, 1, sticky=True)
    world.add(*job(2))
    world.end("r0")
    world.end("t0")
    assert world.node_of("t1") == "n0"


def test_a_row_given_twice_has_two_reservations() -> None:
    world = reserving_world(0, 0, 1)
    world.add(*job(3))
    world.end("r0")
    world.end("t0")
    assert world.node_of("t1") == "n0"


def test_the_last_reservation_stays_while_tasks_are_left() -> None:
    world = reserving_world(0)
    world.add(*job(2))
    world.end("r0")
    world.end("t0")
    assert world.node_of("t1") == "n0"


def test_free_nodes_start_tasks_at_once() -> None:
    world = small_world(make_engine(ReserveEverywhere(0, 1, 2)), nodes=3, cpu=1)
    world.add(*job(2))
    assert (world.node_of("t0"), world.node_of("t1")) == ("n0", "n1")


def test_a_reservation_holds_no_tentative_room() -> None:
    world = reserving_world(0, 1)
    world.add(*job(1))
    assert not world.engine._state.cluster.tentative.any()


def test_a_deleted_task_leaves_the_reservations_of_its_job() -> None:
    world = reserving_world(0, 1)
    world.add(*job(2))
    world.delete("t0")
    world.end("r1")
    assert (world.node_of("t1"), world.engine._state.node_queues.by_row) == ("n1", {})


def test_no_task_is_lost_when_the_nodes_of_all_reservations_are_deleted() -> None:
    world = reserving_world(0, 1)
    world.add(*job(2))
    world.engine._state.profiles["eclectus"].place.rows = (2,)  # type: ignore[attr-defined]
    world.drop_node("n0")
    assert world.engine.queue_counts().node_queues == 2
    world.drop_node("n1")
    world.end("r2")
    assert world.node_of("t0") == "n2"


def test_a_task_reserved_at_several_nodes_is_reported_so() -> None:
    world = reserving_world(0, 1)
    world.add(*job(2))
    world.sleep(2.0)
    [(_, message)] = world.messages("t0")
    assert message.endswith("Queued: in the queues of 2 nodes, for 2 pods of its job.")


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda tasks: ReserveMany((), (0,)), "need tasks and rows"),
        (lambda tasks: ReserveMany(tasks, ()), "need tasks and rows"),
        (lambda tasks: ReserveMany(tasks, (7,)), "no node in row 7"),
        (lambda tasks: ReserveMany((tasks[0], tasks[0]), (0,)), "named twice"),
        (lambda tasks: ReserveMany((tasks[0], make_task("unknown")), (0,)), "not offered"),
        (lambda tasks: ReserveMany((tasks[0], None), (0,)), "is no task"),
    ],
)
def test_an_invalid_reservation_is_refused(make, problem) -> None:  # type: ignore[no-untyped-def]
    class FaultyPolicy(Place):
        def place(self, view: View, pending: Iterator[Task]) -> Iterator[Action]:
            if tasks := tuple(pending):
                yield make(tasks)

    world = small_world(make_engine(FaultyPolicy()), nodes=1, cpu=4)
    world.add(*job(2))
    assert any(problem in fault.message for fault in world.faults), world.faults
    assert world.engine.queue_counts().node_queues == 0


def test_tasks_of_two_classes_cannot_share_a_reservation() -> None:
    world = reserving_world(0)
    world.add(make_task("a"), make_task("b", cpu=0.5))
    assert any("not of one class and profile" in fault.message for fault in world.faults)


# -- stealing --------------------------------------------------------------------------------------


class StealingLine(FifoLine):
    """An idle node steals the newest reservation of row 0."""

    traits = LineTraits(first_come=True, steals=True)

    def steal(self, view: View, row: int) -> Iterator[tuple[int, Reservation]]:
        queue: Sequence[Reservation] = view.node_queues.get(0, ())
        if row and queue and view.task_class(queue[-1].head).fits_beside_held(row):
            yield 0, queue[-1]


def test_a_node_without_a_queue_may_steal_a_reservation() -> None:
    world = reserving_world(0, 0, line=StealingLine())
    world.add(*job(2))
    world.end("r1")
    assert world.node_of("t0") == "n1"
    world.end("r0")
    assert world.node_of("t1") == "n0"


def test_stealing_a_reservation_from_the_wrong_row_is_a_fault() -> None:
    class FaultyLine(StealingLine):
        def steal(self, view: View, row: int) -> Iterator[tuple[int, Reservation]]:
            yield 2, view.node_queues[0][0]

    world = reserving_world(0, line=FaultyLine())
    world.add(*job(1))
    world.end("r1")
    assert any("is not in the queue" in fault.message for fault in world.faults)
    assert world.engine.queue_counts().node_queues == 1


def test_no_reservation_is_moved_to_an_infeasible_node() -> None:
    world = reserving_world(0, line=StealingLine())
    world.put_node(make_node("n1", cpu=1, unschedulable=True))
    world.add(*job(1))
    world.engine._state.profiles["eclectus"].line.steal = lambda view, row: iter(
        [(0, view.node_queues[0][0])]
    )
    world.end("r1")
    assert any("may never run" in fault.message for fault in world.faults)
    assert world.engine.queue_counts().node_queues == 1
