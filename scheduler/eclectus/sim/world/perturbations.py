"""Perturbations disturb machines at given times, and tasks fail at random.

A perturbation swaps or scales speeds, or lets machines fail, freeze or recover.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from eclectus.config.settings_reading import nearest
from eclectus.model.errors import SettingsError
from eclectus.model.settings import REQUIRED, setting
from eclectus.sim.base.machine import Machine
from eclectus.sim.base.random_draws import stream
from eclectus.sim.world.cluster import ClusterSettings


@dataclass(frozen=True, slots=True)
class Failures:
    """Every attempt fails with the same probability, at a uniform point of its work.

    What happens to an attempt depends on its uid and the seed alone, so that all profiles meet the same
    failures, whatever the order in which they start tasks.
    """

    probability: float
    seed: int

    def share_done(self, uid: str) -> float | None:
        """The share of its work after which this attempt fails, 0..1; None if it does not."""
        fails, share = stream(self.seed, f"failure of {uid}").random(2).tolist()
        return share if fails < self.probability else None


Action = Literal["swap", "scale", "fail", "freeze", "recover"]


@dataclass(frozen=True, slots=True)
class Perturbation:
    """One perturbation. A frozen machine keeps its tasks without progress; a failed one loses them."""

    at: float
    action: Action
    machines: tuple[str, ...]
    partners: tuple[str, ...] = ()  # swap: the machines to trade speeds with
    factor: float = 1.0  # scale


@dataclass(frozen=True)
class PerturbationSettings:
    """One entry of `events:` in a scenario."""

    at: float = setting(REQUIRED, "when", unit="s", least=0)
    action: Action = REQUIRED
    group: str = setting(REQUIRED, "the machine group")
    count: int | None = setting(None, "only the first so many machines of the group", least=1)
    partner: str = setting("", "swap: the group to trade speeds with")
    factor: float = setting(1.0, "scale: new speed over old", least=1e-6, most=1e6)

    def perturbation(self, cluster: ClusterSettings) -> Perturbation:
        """The perturbation with the names of its machines. Raises SettingsError."""
        groups: dict[str, list[str]] = {}
        for name, machine in cluster.machines().items():
            groups.setdefault(machine.group, []).append(name)
        if (self.action == "swap") != bool(self.partner):
            raise SettingsError("partner", "is required by action: swap and valid only there")
        if (self.action == "scale") != (self.factor != 1.0):
            raise SettingsError("factor", "is required by action: scale (other than 1) and valid only there")
        machines = _names(groups, self.group, self.count, "group")
        partners = _names(groups, self.partner, self.count, "partner") if self.partner else ()
        return Perturbation(self.at, self.action, machines, partners, self.factor)


def apply_to_speeds(
    perturbation: Perturbation, machines: Sequence[Machine], partners: Sequence[Machine], now: float
) -> None:
    """Change the speeds; the caller reschedules the tasks' due times, and handles failed machines."""
    touched = (*machines, *partners)
    for machine in touched:
        machine.before_speed_change(now)
    match perturbation.action:
        case "swap":
            ours, theirs = ((each.own_speed, each.class_speeds) for each in (machines[0], partners[0]))
            for machine in machines:
                machine.own_speed, machine.class_speeds = theirs
            for machine in partners:
                machine.own_speed, machine.class_speeds = ours
        case "scale":
            for machine in machines:
                machine.factor *= perturbation.factor
        case "freeze":
            for machine in machines:
                machine.is_frozen = True
        case "recover":
            for machine in machines:
                machine.is_frozen, machine.factor = False, 1.0
        case "fail":
            pass  # speeds stay as they are
    for machine in touched:
        machine.after_speed_change(now)


def _names(groups: dict[str, list[str]], name: str, count: int | None, path: str) -> tuple[str, ...]:
    if name not in groups:
        raise SettingsError(path, f"{name!r} is not a group; {nearest(name, list(groups))}")
    return tuple(groups[name][:count])
