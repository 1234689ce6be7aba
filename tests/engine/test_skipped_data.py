"""Tasks found by their data and tasks that are skipped, in one cycle of one class: against a plain list."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from builders import make_task
from eclectus.engine.queues.class_queues import PendingClass, SortedClassQueue
from eclectus.model.objects import Input

TASKS = 12
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("near"), st.integers(0, 3)),  # the first task with data on this node
        st.tuples(st.just("head"), st.just(0)),
        st.tuples(st.just("skip"), st.integers(0, TASKS)),
    ),
    max_size=TASKS,
)


def queue_of(nodes: list[int]) -> tuple[PendingClass, SortedClassQueue]:
    """A queue with a task for each of these, with its data on that node."""
    task = make_task()
    pending = PendingClass(("eclectus", task.spec, task.workload, None), None)
    for serial, node in enumerate(nodes):
        each = make_task(f"t{serial}", inputs=(Input("data", 1, (f"n{node}",)),))
        queue = pending.add("", (0.0, float(serial)), serial, each)
        if queue.local is None:
            queue.index({f"n{at}" for at in range(4)})
    return pending, queue


@given(nodes=st.lists(st.integers(0, 3), min_size=1, max_size=TASKS), steps=STEPS, data=st.data())
def test_each_task_is_offered_or_skipped_once(
    nodes: list[int], steps: list[tuple[str, int]], data: st.DataObject
) -> None:
    pending, queue = queue_of(nodes)
    left, answered = list(range(len(nodes))), set[int]()  # serials, as the dumb twin keeps them
    for kind, number in steps:
        assert pending.to_offer == len(left)
        assert queue.local is not None
        if kind == "skip":
            skipped = pending.skip(number)
            assert skipped == min(number, len(left))
            if skipped and not pending.is_closed:
                pending.skip_in(queue)
                left = left[skipped:]
            if pending.is_closed:
                break
            continue
        if queue.head is None:  # then the queue is not asked
            assert not left
            break
        names = [f"n{number}"] if kind == "near" else [f"n{at}" for at in range(4)]
        entry = queue.local.first_of(names, queue.begin)
        expected = next((each for each in left if kind == "head" or nodes[each] == number), None)
        assert (None if entry is None else entry[1]) == expected
        if kind == "head" and left:
            assert queue.entries[queue.cursor][1] == left[0]
        if entry is not None:
            pending.take_out_of_order(queue, entry)
            left.remove(entry[1])
            if data.draw(st.booleans()):
                queue.answered.add(entry[1])
                pending.count -= 1
                pending.answered += 1
                answered.add(entry[1])
    pending.end_cycle()
    stay = [serial for serial in range(len(nodes)) if serial not in answered]
    assert [entry[1] for entry in queue.entries] == stay
    for node in range(4):
        found = None if queue.local is None else queue.local.first_of([f"n{node}"])
        here = [serial for serial in stay if nodes[serial] == node]
        assert (None if found is None else found[1]) == (here[0] if here else None)
