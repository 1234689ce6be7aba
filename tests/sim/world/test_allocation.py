"""Tasks that never end, tasks that are withdrawn, and the devices of a machine."""

from __future__ import annotations

from math import inf

import pytest

from builders import make_engine, make_node
from checked_worlds import CheckedWorld
from eclectus.model.commands import Bind
from eclectus.model.objects import Grant, Spec, Task
from eclectus.policies.place.power_of_two import Uniform
from eclectus.sim.base.machine import InvariantError, Machine, TaskRun
from eclectus.sim.base.work import Arrival, WorkClass
from eclectus.sim.world.cluster import Perturbation
from eclectus.sim.world.run_record import RunRecord, Window
from eclectus.sim.world.world import World

SLOT = WorkClass("slot", Spec(requests=(("cpu", 1000),)))
HALF = WorkClass("half", Spec(requests=(("gpu-milli", 500),)))


def world(
    *jobs: Arrival, slots: int = 2, hop_seconds: float = 0.0, perturbations: tuple[Perturbation, ...] = ()
) -> World:
    machine = Machine(make_node("n", cpu=slots), "g", 1.0, {})
    return CheckedWorld(
        make_engine(Uniform()), {"n": machine}, iter(jobs), RunRecord(Window()),
        perturbations=perturbations, hop_seconds=hop_seconds,
    )  # fmt: skip


def test_a_run_ends_although_some_of_its_tasks_never_end() -> None:
    stays = world(Arrival(1.0, SLOT, (inf,)), Arrival(2.0, SLOT, (5.0,)))
    assert stays.run()
    assert (stays.now, stays.record.ended, stays.record.never_ending) == (7.0, 1, 1)
    assert stays.record.response_seconds == 6.0 + 5.0
    assert stays.record.tallies[()].wait.count == 2


def test_a_task_that_never_ends_waits_and_runs_again_after_a_machine_failure() -> None:
    perturbations = (
        Perturbation(3.0, "fail", ("n",), (), 1.0),
        Perturbation(4.0, "recover", ("n",), (), 1.0),
    )
    stays = world(Arrival(1.0, SLOT, (inf,)), Arrival(9.0, SLOT, (1.0,)), perturbations=perturbations)
    assert stays.run()
    assert (stays.record.never_ending, stays.record.ended, stays.record.work_lost) == (1, 1, 0.0)


def test_a_task_that_has_not_started_when_its_patience_ends_is_withdrawn() -> None:
    full = world(*(Arrival(float(at), SLOT, (inf,), patience=0.5) for at in range(5)))
    assert full.run()
    assert (full.record.never_ending, full.record.dropped, full.record.settled) == (2, 3, 5)
    counts = full.engine.queue_counts()
    assert counts.active + counts.unschedulable + counts.backoff == 0
    assert full.engine._state.pending == {}


def test_a_bind_of_a_withdrawn_task_is_refused() -> None:
    late = world(Arrival(0.0, SLOT, (1.0,), patience=0.5), Arrival(9.0, SLOT, (1.0,)), hop_seconds=0.3)
    binds: list[Bind] = []
    late.on_step = lambda now, events, commands: binds.extend(each for each in commands if type(each) is Bind)
    assert late.run()
    assert (len(binds), late.record.dropped, late.record.ended) == (2, 1, 1)
    assert late.engine._state.placed.node_of("job-0-0") == ""


# -- devices -----------------------------------------------------------------------------------------


def halves() -> Machine:
    node = make_node("n")
    return Machine(type(node)("n", (*node.allocatable, ("gpu-milli", 2000))), "g", 1.0, {})


def half(uid: str, *devices: int) -> TaskRun:
    run = TaskRun(Task(uid, "default", uid, spec=HALF.spec), HALF, 0, 1.0, 0.0)
    run.grant = Grant(devices)
    return run


def test_a_machine_counts_what_is_left_of_each_device() -> None:
    machine = halves()
    first = half("a", 1)
    machine.start(first, 0.0)
    assert machine.has_room((("gpu-milli", 1500),))
    machine.start(half("b", 0), 0.0)
    assert machine.has_room((("gpu-milli", 500),))
    assert not machine.has_room((("gpu-milli", 600),))
    assert not machine.has_room((("gpu-milli", 1000),))
    machine.end(first, 1.0)
    assert machine.has_room((("gpu-milli", 1000),))


@pytest.mark.parametrize(
    ("devices", "words"), [((1,), "is full"), ((), "requests more"), ((2,), "has no device 2")]
)
def test_a_machine_refuses_devices_that_have_no_room(devices: tuple[int, ...], words: str) -> None:
    machine = halves()
    machine.start(half("a", 1), 0.0)
    machine.start(half("b", 1), 0.0)
    with pytest.raises(InvariantError, match=words):
        machine.start(half("c", *devices), 0.0)
