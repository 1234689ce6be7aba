"""A measured rule: pods that have it, what is there before them, and a change that it takes notice of."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from eclectus.framework import Place
from eclectus.model.events import Event, TaskGone, TaskSeen
from eclectus.model.objects import HostPort, Node, Task
from eclectus.policies.rosella import Rosella
from eclectus_bench.steps.driver import make_node, make_spec, make_task, running

EventsOf = Callable[[int], Sequence[Event]]
"""Events by a number: of a measured pod, of a change, or so many nodes."""


def nothing(number: int) -> Sequence[Event]:
    """No event."""
    return ()


@dataclass(frozen=True)
class Rule:
    """One row. `grows` says why a decision must cost more on more nodes; empty: it must not.

    `pod` is the measured pod of that number and `with_pod` what exists from just before it; `change` is what
    happens after it was bound. `there` is what exists before all of them, on that many nodes.
    """

    name: str
    pod: Callable[[int], Task]
    node: Callable[[int], Node] = make_node
    there: EventsOf = nothing
    with_pod: EventsOf = nothing
    change: EventsOf = nothing
    place: Callable[[], Place] = Rosella
    grows: str = ""


def pods_with(name: str, labels: Any = (), **spec: Any) -> Callable[[int], Task]:
    """Pods with these labels and these fields of a spec; their required anti-affinity is known as theirs."""
    made = make_spec(**spec)
    terms = made.own_anti_affinity

    def pod(number: int) -> Task:
        return make_task(f"{name}-{number}", made, labels=labels, anti_affinity_terms=terms)

    return pod


def placed_pods(labels: Any = (), *, terms: Any = (), ports: tuple[HostPort, ...] = ()) -> EventsOf:
    """Pods like these run on four nodes of five."""
    spec = make_spec(own_anti_affinity=terms, host_ports=ports)

    def events(nodes: int) -> list[Event]:
        return [
            TaskSeen(replace(_placed(at), spec=spec, labels=labels, anti_affinity_terms=terms))
            for at in _taken(nodes)
        ]

    return events


def placed_pod_goes(number: int) -> Sequence[Event]:
    """Another one of the placed pods is deleted."""
    return (TaskGone(_placed(_taken_node(number)).uid),)


def earlier_pod_goes(name: str) -> EventsOf:
    """The measured pod before that of this number is deleted, so that pods remain in one topology domain."""
    return lambda number: (TaskGone(make_task(f"{name}-{max(number - 1, 0)}").uid),)


def _placed(at: int) -> Task:
    return running(f"placed-{at}", make_node(at))


def _taken(nodes: int) -> Iterable[int]:
    return (at for at in range(nodes) if at % 5)


def _taken_node(number: int) -> int:
    """The number of a node with a placed pod, another one for each number."""
    return number // 4 * 5 + number % 4 + 1
