"""An independent check of every task start: may this task run on this machine?

It shares no code with the engine: node selectors, affinity, taints and ports are evaluated directly by
Kubernetes' rules, one task and one node at a time. Verdicts are cached, because specs repeat.
"""

from __future__ import annotations

from math import nan

from eclectus.model.objects import HostPort, Node, Requirement, Spec, Taint, Term, Toleration
from eclectus.sim.base.errors import InvariantError
from eclectus.sim.base.machine import Machine, TaskRun


def forbidden(spec: Spec, node: Node) -> str:
    """Why this spec must not run on that node; empty if it may. Free resources are not considered."""
    labels = dict(node.labels)
    for key, value in spec.node_selector:
        if labels.get(key) != value:
            return f"its label {key} is {labels.get(key)!r}, not {value!r}"
    if spec.affinity is not None and not any(_holds(term, labels, node.name) for term in spec.affinity):
        return "no term of the required node affinity holds there"
    for taint in node.taints:
        if taint.effect != "PreferNoSchedule" and not any(
            _tolerates(each, taint) for each in spec.tolerations
        ):
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
    requirements = [
        *((each, labels.get(each.key)) for each in term.expressions),
        *((f, name) for f in term.fields),
    ]
    return bool(requirements) and all(_meets(requirement, value) for requirement, value in requirements)


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
