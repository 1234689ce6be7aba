"""Classes of work as a scenario writes them, and how much of it a cluster can do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated

from eclectus.model.objects import Amounts, Spec
from eclectus.model.settings import Setting
from eclectus.sim.base.distributions import Size
from eclectus.sim.base.machine import Machine
from eclectus.sim.base.work import Kind
from eclectus.sim.world.cluster import SLOT_CPU, TolerationField, read_amounts
from eclectus.sim.world.judge import forbidden

SCORED_MEMORY = 200 * 2**20  # kube-scheduler's count for a pod that asks for none


@dataclass(frozen=True)
class Needs:
    """What a task asks for and where it may run, spelled as on a pod."""

    requests: Annotated[
        dict[str, object] | None, Setting("amounts; one core, that is one slot, if left out")
    ] = None
    node_selector: Annotated[dict[str, str], Setting("labels that the node must carry")] = field(
        default_factory=dict
    )
    tolerations: tuple[TolerationField, ...] = ()
    priority: Annotated[int, Setting("higher goes first")] = 0

    def __post_init__(self) -> None:
        self.asked()

    def asked(self) -> Amounts:
        """Raises SettingsError."""
        return (
            (("cpu", SLOT_CPU),) if self.requests is None else read_amounts(dict(self.requests), "requests")
        )

    def kind(self, name: str) -> Kind:
        """As the world knows it."""
        asked = self.asked()
        amounts = dict(asked)
        spec = Spec(
            requests=asked,
            score_requests=(amounts.get("cpu", 0) or 100, amounts.get("memory", 0) or SCORED_MEMORY),
            node_selector=tuple(sorted(self.node_selector.items())),
            tolerations=tuple(each.toleration for each in self.tolerations),
        )
        return Kind(name, spec, self.priority)


@dataclass(frozen=True)
class WorkClass(Needs):
    """One class of a generated workload."""

    name: Annotated[str, Setting("for reports, for `speeds`, and as the pods' class")] = "work"
    share: Annotated[float, Setting("of the jobs, relative to the other classes", least=1e-9)] = 1.0
    tasks_per_job: Annotated[int, Setting("tasks that arrive together", least=1, most=100_000)] = 1
    size: Annotated[Size, Setting("how large its tasks are")] = field(default_factory=Size)
    estimate: Annotated[
        float | None, Setting("how long its tasks are said to take, for whoever asks", unit="s", least=1e-9)
    ] = None


def capacity(kind: Kind, machines: Iterable[Machine]) -> float:
    """Work of this kind that the machines can do a second, if they do nothing else."""
    total = 0.0
    for machine in machines:
        if not forbidden(kind.spec, machine.node):
            total += slots(kind.spec, machine) * machine.nominal(kind.name)
    return total


def slots(spec: Spec, machine: Machine) -> int:
    """Tasks of this spec that the empty machine takes."""
    offered = dict(machine.node.allocatable)
    asked = (("pods", 1), *spec.requests)
    return min(offered.get(name, 0) // amount for name, amount in asked)


def load(work: Mapping[Kind, float], machines: Mapping[str, Machine]) -> tuple[float, bool]:
    """Load ratio of work (seconds at speed 1, a second) on the machines, and whether it is exact.

    Exact where all kinds find equal machines. Elsewhere a lower bound, the largest of: each kind alone
    on what it may use, and all work on every machine at its best speed. inf where a kind can run nowhere
    and where nothing is known of the work.
    """
    every = list(machines.values())
    alone = {kind: capacity(kind, every) for kind in work}
    if not work or not all(alone.values()):
        return float("inf"), True
    offers = {tuple(_offer(kind, machine) for machine in every) for kind in work}
    if len(offers) == 1:
        return sum(work.values()) / next(iter(alone.values())), True
    best = sum(max(_offer(kind, machine) for kind in work) for machine in every)
    return max(*(work[kind] / alone[kind] for kind in work), sum(work.values()) / best), False


def _offer(kind: Kind, machine: Machine) -> float:
    return capacity(kind, (machine,))
