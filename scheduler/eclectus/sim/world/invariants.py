"""Invariants that hold under every policy. If one is violated, the results of the run are invalid."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from eclectus.engine.engine import Engine
from eclectus.sim.base.errors import InvariantError, StuckError
from eclectus.sim.base.machine import Machine, TaskRun
from eclectus.sim.world.judge import forbidden
from eclectus.sim.world.run_record import RunRecord

CLOSE = 1e-6  # relative tolerance: rounding of sums of millions of floats stays below


def check_counts(engine: Engine, record: RunRecord, waiting: int, running: int) -> None:
    """Engine, world and record agree on counts; only without network delay. Raises InvariantError."""
    counts = engine.queue_counts()
    queued = counts.active + counts.backoff + counts.unschedulable + counts.node_queues
    if not queued == waiting == record.waiting or running != record.running:
        raise InvariantError(
            f"waiting: engine {queued}, world {waiting}, record {record.waiting}; "
            f"running: world {running}, record {record.running}"
        )


def check_work_conserving(machines: Iterable[Machine], waiting: Iterable[TaskRun]) -> None:
    """Work conservation: no machine has room for a waiting task that may run there. Raises InvariantError."""
    specs = {run.task.spec for run in waiting}
    for machine in machines:
        for spec in specs if machine.is_up else ():
            if machine.has_room(spec.requests) and not forbidden(spec, machine.node):
                raise InvariantError(f"{machine.node.name} has room for a task that waits")


def check_end(record: RunRecord, machines: Mapping[str, Machine], now: float) -> None:
    """Every task has ended, was withdrawn or never ends, and all totals agree. Raises InvariantError."""
    for machine in machines.values():
        machine.account(now)
        for run in machine.running.values():
            record.close_never_ending(run, now)
    if record.settled != record.arrived or not record.in_system == record.running == record.never_ending:
        raise InvariantError(
            f"{record.arrived} tasks arrived, {record.ended} ended, {record.dropped} were withdrawn, "
            f"{record.never_ending} never end"
        )
    done = sum(machine.work_done for machine in machines.values())
    busy = sum(machine.busy_seconds for machine in machines.values())
    _equal(
        "Little's law: time in the system, summed over tasks and integrated over time",
        record.response_seconds,
        record.system_seconds,
    )
    _equal("work of tasks and of machines", record.work_ended + record.work_lost, done)
    _equal("busy time of the record and of machines", record.busy_seconds, busy)


def stuck(
    now: float, waiting: Mapping[str, TaskRun], running: int, fault_count: int, first_fault: str
) -> StuckError:
    """The error to raise when tasks are left and no event is."""
    first = next(iter(waiting.values()), None)
    if first is None:
        return StuckError(f"at {now:g} s {running} tasks run on machines that are frozen for ever")
    fault = f"; first of {fault_count} faults: {first_fault}" if first_fault else ""
    return StuckError(
        f"at {now:g} s {len(waiting)} tasks wait and no event is left; the first is {first.task} "
        f"of class {first.work_class.name}{fault}"
    )


def _equal(what: str, one: float, other: float) -> None:
    if abs(one - other) > CLOSE * max(1.0, abs(one), abs(other)):
        raise InvariantError(f"{what}: {one!r} is not {other!r}")
