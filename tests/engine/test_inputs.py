"""What tasks say of their data makes no classes: a class costs memory, and cycles are cut by their number."""

from __future__ import annotations

import pytest

from builders import make_engine, make_task
from eclectus.model.objects import Input, Task
from eclectus.policies.place.allocation import LeastAllocated
from worlds import small_world

TASKS = 10_000


def with_block(at: int) -> Task:
    block = Input(f"block-{at}", 128 * 2**20, (f"n{at % 7}", f"n{at % 11}", "no-node"))
    return make_task(f"t{at}", cpu=1, created=float(at), inputs=(block,))


@pytest.mark.parametrize("cpu", [0.5, 4])
def test_tasks_with_blocks_of_their_own_are_one_class(cpu: float) -> None:
    world = small_world(make_engine(LeastAllocated()), cpu=cpu)
    world.add(*map(with_block, range(TASKS)))
    state = world.engine._state
    assert state.class_queues.count == TASKS - len(world.binds)
    assert len(world.binds) == int(cpu)
    assert (len(state.class_queues._classes), len(state.view.classes)) == (1, 1)
