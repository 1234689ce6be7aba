"""What holds in every possible world, whatever the policy: if it does not, no number of the run counts.

The judge of a start is told nothing by the core: it reads selectors, taints and amounts by itself, in
the dumbest way, and remembers its verdicts because few specs meet few machines.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from eclectus.core.engine import Engine
from eclectus.core.model import Node, Spec
from eclectus.sim.errors import InvariantError
from eclectus.sim.ledger import Ledger
from eclectus.sim.machine import Machine, Running

CLOSE = 1e-6  # relative: sums of millions of floats differ by less


def forbidden(spec: Spec, node: Node) -> str:
    """Why this spec must not run on that node; empty if it may. Room is not looked at."""
    labels = dict(node.labels)
    for key, value in spec.node_selector:
        if labels.get(key) != value:
            return f"its label {key} is {labels.get(key)!r}, not {value!r}"
    for taint in node.taints:
        answers = (
            toleration.key in ("", taint.key)
            and toleration.effect in ("", taint.effect)
            and (toleration.op == "Exists" or toleration.value == taint.value)
            for toleration in spec.tolerations
        )
        if taint.effect != "PreferNoSchedule" and not any(answers):
            return f"nothing tolerates its taint {taint.key}"
    return ""


class Judge:
    """Watches starts."""

    def __init__(self) -> None:
        self._verdicts: dict[tuple[Spec, str], str] = {}

    def see_start(self, run: Running, machine: Machine) -> None:
        """Raise InvariantError if the machine's constraints forbid the task."""
        key = (run.task.spec, machine.node.name)
        why = self._verdicts.get(key)
        if why is None:
            why = self._verdicts[key] = forbidden(run.task.spec, machine.node)
        if why:
            raise InvariantError(f"{run.task} was bound to {machine.node.name}: {why}")


def check_moment(engine: Engine, ledger: Ledger, waiting: int, running: int) -> None:
    """Between two moments of a world without delays: everybody counts alike. Raises InvariantError."""
    census = engine.census()
    queued = census.active + census.backoff + census.unschedulable + census.in_line
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
    """Everybody has ended, and the books agree. Raises InvariantError."""
    for machine in machines.values():
        machine.account(now)
    if ledger.ended != ledger.arrived or ledger.in_system or ledger.running:
        raise InvariantError(f"{ledger.arrived} tasks arrived, {ledger.ended} ended")
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
