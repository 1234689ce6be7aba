"""What holds in every possible world, whatever the policy: if it does not, no number of the run counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from eclectus.engine.engine import Engine
from eclectus.sim.base.errors import InvariantError
from eclectus.sim.base.machine import Machine, Running
from eclectus.sim.world.judge import forbidden
from eclectus.sim.world.ledger import Ledger

CLOSE = 1e-6  # relative: sums of millions of floats differ by less


def check_moment(engine: Engine, ledger: Ledger, waiting: int, running: int) -> None:
    """Between two moments of a world without delays: everybody counts alike. Raises InvariantError."""
    census = engine.queue_counts()
    queued = census.active + census.backoff + census.unschedulable + census.node_queues
    if not queued == waiting == ledger.waiting or running != ledger.running:
        raise InvariantError(
            f"waiting: engine {queued}, world {waiting}, books {ledger.waiting}; "
            f"running: world {running}, books {ledger.running}"
        )


def check_conserving(machines: Iterable[Machine], waiting: Iterable[Running]) -> None:
    """No machine has room for a task that waits: the promise of a central queue. Raises InvariantError."""
    specs = {run.task.spec for run in waiting}
    for machine in machines:
        for spec in specs if machine.is_up else ():
            if machine.has_room(spec.requests) and not forbidden(spec, machine.node):
                raise InvariantError(f"{machine.node.name} idles while a task waits that it may run")


def check_end(ledger: Ledger, machines: Mapping[str, Machine], now: float) -> None:
    """Everybody has ended, has gone away or stays, and the books agree. Raises InvariantError."""
    for machine in machines.values():
        machine.account(now)
        for run in machine.running.values():
            ledger.stay(run, now)
    if ledger.settled != ledger.arrived or not ledger.in_system == ledger.running == ledger.staying:
        raise InvariantError(
            f"{ledger.arrived} tasks arrived, {ledger.ended} ended, {ledger.dropped} went away, "
            f"{ledger.staying} stay"
        )
    done = sum(machine.work_done for machine in machines.values())
    busy = sum(machine.busy_seconds for machine in machines.values())
    _equal(
        "Little's law: time in system, by tasks and by numbers",
        ledger.response_seconds,
        ledger.system_seconds,
    )
    _equal("work of tasks and of machines", ledger.work_ended + ledger.work_lost, done)
    _equal("busy time in the books and on machines", ledger.busy_seconds, busy)


def _equal(what: str, one: float, other: float) -> None:
    if abs(one - other) > CLOSE * max(1.0, abs(one), abs(other)):
        raise InvariantError(f"{what}: {one!r} is not {other!r}")
