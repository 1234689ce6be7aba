"""The array form and the single-row form of each room formula give exactly the same number."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eclectus.cluster.nodes import Cluster
from eclectus.feasibility.room import Room
from eclectus.feasibility.task_class import TaskClass
from eclectus.model.objects import Amounts, Node, Spec, Task

AMOUNTS = st.dictionaries(st.sampled_from(["cpu", "memory", "example.com/gpu"]), st.integers(1, 7_000)).map(
    lambda amounts: tuple(sorted(amounts.items()))
)
NODES = st.lists(st.tuples(AMOUNTS, AMOUNTS, AMOUNTS, AMOUNTS), min_size=1, max_size=4)


@given(NODES, AMOUNTS)
def test_both_forms_are_equal_to_the_last_bit(nodes: list[tuple[Amounts, ...]], requests: Amounts) -> None:
    cluster = Cluster(rows=1)
    for at, (allocatable, used, service, tentative) in enumerate(nodes):
        row = cluster.set_node(Node(f"n{at}", (*allocatable, ("pods", 2))))
        cluster.hold(row, Task("u", "n", "p", spec=Spec(requests=used)))
        cluster.hold(row, Task("s", "n", "p", spec=Spec(requests=service, long_running=True)))
        cluster.add_tentative(row, tentative)
    room, rows = Room(cluster, requests), np.arange(len(nodes))
    overflow = room.overflow(rows)
    assert overflow.tolist() == [room.overflow_at(row) for row in rows.tolist()]
    assert room.service_slots(rows).tolist() == [room.service_slots_at(row) for row in rows.tolist()]
    is_short = np.any([short for _, short in room.shortages(rows)], axis=0)
    assert (overflow > 0).tolist() == is_short.tolist()


def test_overflow_is_the_number_of_tasks_that_must_end_first() -> None:
    cluster = Cluster(rows=1)
    row = cluster.set_node(Node("n", (("cpu", 4), ("pods", 100))))
    requests = (("cpu", 2),)
    room = Room(cluster, requests)
    for tasks in range(5):
        assert room.overflow_at(row) == tasks + 1 - 2
        assert room.fits_beside_held(row) == (tasks < 2)
        cluster.hold(row, Task("u", "n", "p", spec=Spec(requests=requests)))


def test_what_others_read_cannot_be_written() -> None:
    cluster = Cluster(rows=1)
    cluster.set_node(Node("n", (("cpu", 4), ("pods", 100))))
    task_class = TaskClass(cluster, Spec(), "w")
    arrays = (cluster.layers, cluster.used, cluster.tentative, cluster.scored, cluster.present)
    own = (task_class.feasible, task_class.overflow, task_class.preference_score, task_class.waitable_rows)
    for array in (*arrays, *own):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    with pytest.raises(TypeError, match="read-only"):
        task_class.scalars.overflow[0] = 1.0  # type: ignore[index]
