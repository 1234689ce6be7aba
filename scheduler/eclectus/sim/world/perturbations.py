"""What befalls machines at given times: speeds swapped or scaled, failures, freezes, recoveries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from eclectus.sim.base.machine import Machine

Action = Literal["swap", "scale", "fail", "freeze", "recover"]


@dataclass(frozen=True, slots=True)
class Shock:
    """One event. A frozen machine keeps its tasks and does nothing; a failed one loses them."""

    at: float
    action: Action
    machines: tuple[str, ...]
    partners: tuple[str, ...] = ()  # swap: whose speeds they take, and give theirs in turn
    factor: float = 1.0  # scale


def change_speeds(shock: Shock, machines: Sequence[Machine], partners: Sequence[Machine], now: float) -> None:
    """Whatever touches speeds alone; the caller looks at each machine's new due times afterwards."""
    touched = (*machines, *partners)
    for machine in touched:
        machine.pause(now)
    match shock.action:
        case "swap":
            ours, theirs = machines[0].speeds, partners[0].speeds
            for machine in machines:
                machine.speeds = theirs
            for machine in partners:
                machine.speeds = ours
        case "scale":
            for machine in machines:
                machine.factor *= shock.factor
        case "freeze":
            for machine in machines:
                machine.frozen = True
        case "recover":
            for machine in machines:
                machine.frozen, machine.factor = False, 1.0
        case "fail":
            pass  # no speed changes: the tasks are lost
    for machine in touched:
        machine.resume(now)
