"""Checks of every run: may this task run on this machine, and do invariants hold under every policy?

The verdict on a start shares no code with the engine: node selectors, affinity, taints and ports are
evaluated directly by Kubernetes' rules, one task and one node at a time. Verdicts are cached, because specs
repeat. If an invariant is violated, the results of the run are invalid.
"""

from collections.abc import Mapping
from math import nan

from eclectus.model.objects import HostPort, Node, Requirement, Spec, Taint, Term, Toleration
from eclectus.sim.base.machine import InvariantError, Machine, StuckError, TaskRun
from eclectus.sim.world.run_record import RunRecord


def forbidden(spec: Spec, node: Node) -> str:
    """Why this spec must not run on that node; empty if it may. Free resources are not considered."""
    labels = dict(node.labels)
    for key, value in spec.node_selector:
        if labels.get(key) != value:
            return f"its label {key} is {labels.get(key)!r}, not {value!r}"
    if spec.affinity is not None and not any(_holds(term, labels, node.name) for term in spec.affinity):
        return "no term of the required node affinity holds there"
    for taint in node.taints:
        is_tolerated = any(_tolerates(each, taint) for each in spec.tolerations)
        if taint.effect != "PreferNoSchedule" and not is_tolerated:
            return f"nothing tolerates its taint {taint.key}"
    return ""


def preferences_met(spec: Spec, node: Node) -> float:
    """Share of the spec's preferences, by weight, that the node meets; 0 for a spec without preferences."""
    labels = dict(node.labels)
    total = sum(each.weight for each in spec.preferences)
    met = sum(each.weight for each in spec.preferences if _holds(each.term, labels, node.name))
    return met / total if total else 0.0


class Judge:
    """Checks starts and caches the verdicts."""

    def __init__(self) -> None:
        self._met: dict[tuple[Spec, str], float] = {}  # by spec and node name
        self._allowed: set[tuple[Spec, str]] = set()  # spec and node name; only specs without host ports

    def check_start(self, run: TaskRun, machine: Machine) -> None:
        """Raise InvariantError if the node's labels or taints, or host ports in use, forbid the task."""
        spec, node = run.task.spec, machine.node
        if (spec, node.name) in self._allowed:
            return
        where = f"{run.task} was bound to {node.name}"
        why = forbidden(spec, node)
        if why:
            raise InvariantError(f"{where}: {why}")
        for other in machine.running.values():
            for port in spec.host_ports:
                if any(_clash(port, used) for used in other.task.spec.host_ports):
                    raise InvariantError(f"{where}: {other.task} has port {port.port} there")
        if not spec.host_ports:
            self._allowed.add((spec, node.name))

    def preferences_met(self, run: TaskRun, machine: Machine) -> float:
        """Share of the task's preferences, by weight, that the machine's node meets."""
        key = run.task.spec, machine.node.name
        met = self._met.get(key)
        if met is None:
            met = self._met[key] = preferences_met(run.task.spec, machine.node)
        return met


def _holds(term: Term, labels: dict[str, str], name: str) -> bool:
    found = [_meets(each, labels.get(each.key)) for each in term.expressions]
    found += [_meets(each, name) for each in term.fields]
    return bool(found) and all(found)


def _meets(requirement: Requirement, value: str | None) -> bool:
    match requirement.op:
        case "In":
            return value in requirement.values
        case "NotIn":
            return value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt":
            return _number(value) > _number(*requirement.values)
        case "Lt":
            return _number(value) < _number(*requirement.values)


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.key not in ("", taint.key) or toleration.effect not in ("", taint.effect):
        return False
    match toleration.op:
        case "Exists":
            return True
        case "Equal":
            return toleration.value == taint.value
        case "Lt":
            return _decimal(taint.value) < _decimal(toleration.value)
        case "Gt":
            return _decimal(taint.value) > _decimal(toleration.value)


def _number(text: str | None = None, *more: str) -> float:
    """The text as a whole number; nan, with which every comparison fails, if it is not exactly one."""
    plain = text is not None and not more and text.isascii() and text.lstrip("+-").isdigit()
    return int(text) if text is not None and plain else nan


def _decimal(text: str) -> float:
    """The same, but only in the form that taints allow: no plus sign, no leading zeros."""
    number = _number(text)
    return number if str(number) == text else nan


def _clash(one: HostPort, other: HostPort) -> bool:
    anywhere = HostPort(1).ip in (one.ip, other.ip)
    return (one.port, one.protocol) == (other.port, other.protocol) and (anywhere or one.ip == other.ip)


CLOSE = 1e-6  # relative tolerance: rounding of sums of millions of floats stays below


def check_end(record: RunRecord, machines: Mapping[str, Machine], now: float) -> None:
    """Every task has ended, was withdrawn or never ends, and all totals agree. Raises InvariantError."""
    for machine in machines.values():
        machine.account(now)
        for run in machine.running.values():
            record.response_seconds += now - run.arrived  # tasks that never end were in the system until now
    if record.settled != record.arrived or not record.in_system == record.running == record.never_ending:
        raise InvariantError(
            f"{record.arrived} tasks arrived, {record.ended} ended, {record.dropped} were withdrawn, "
            f"{record.never_ending} never end"
        )
    done = sum(machine.work_done for machine in machines.values())
    busy = sum(machine.busy_seconds for machine in machines.values())
    law = "Little's law: time in the system, summed over tasks and integrated over time"
    _equal(law, record.response_seconds, record.system_seconds)
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
    which = f"the first is {first.task} of class {first.work_class.name}"
    return StuckError(f"at {now:g} s {len(waiting)} tasks wait and no event is left; {which}{fault}")


def _equal(what: str, one: float, other: float) -> None:
    if abs(one - other) > CLOSE * max(1.0, abs(one), abs(other)):
        raise InvariantError(f"{what}: {one!r} is not {other!r}")
