"""Constraint sets that jobs draw as wholes, by frequency.

After Sharma and others, "Modeling and Synthesizing Task Placement Constraints in Google Compute Clusters"
(SoCC 2011): a job draws a whole set, because the nodes that satisfy all constraints of a set can be far fewer
than those that satisfy each of them. All tasks of a job have the same set. By default it does not depend on
the job's class; `shares` and `frequencies` correlate it with the class, and thereby with the size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

from eclectus.config.settings_reading import nearest
from eclectus.model.errors import SettingsError
from eclectus.model.objects import Spec
from eclectus.model.settings import Setting
from eclectus.sim.base.machine import Machine
from eclectus.sim.world.judge import forbidden


@dataclass(frozen=True)
class ConstraintSet:
    """Constraints that jobs have together."""

    node_selector: Annotated[dict[str, str], Setting("labels that the node must carry, all of them")]
    frequency: Annotated[
        float, Setting("frequency among constrained jobs, relative to the other sets", least=0)
    ] = 1.0
    frequencies: Annotated[
        dict[str, float], Setting("frequency among constrained jobs of single classes", least=0)
    ] = field(default_factory=dict)

    def among(self, name: str) -> float:
        """Its relative frequency among the constrained jobs of the class."""
        return self.frequencies.get(name, self.frequency)


@dataclass(frozen=True)
class Constraints:
    """Which jobs have constraints, and which."""

    sets: tuple[ConstraintSet, ...]
    share: Annotated[float, Setting("share of the jobs that have a set", least=0, most=1)] = 0.5
    shares: Annotated[dict[str, float], Setting("share of the jobs of single classes", least=0, most=1)] = (
        field(default_factory=dict)
    )

    def __post_init__(self) -> None:
        if not self.sets:
            raise SettingsError(
                "sets", "is empty; write at least one set such as {nodeSelector: {disk: ssd}}"
            )

    def drawn(self, name: str) -> Iterator[tuple[float, dict[str, str]]]:
        """Probability and node selector of each set that a job of the class may have; the first is none."""
        share = self.shares.get(name, self.share)
        total = sum(each.among(name) for each in self.sets)
        yield 1.0 - share, {}
        for each in self.sets if share else ():
            yield share * each.among(name) / total, each.node_selector

    def check(self, classes: Sequence[str], machines: Mapping[str, Machine]) -> None:
        """Raise SettingsError for an unknown class, a class without sets, and a set of no or all machines.

        A set that all machines satisfy does not constrain: its tasks would be counted in the wrong group.
        """
        named = {f"shares.{name}": name for name in self.shares}
        for at, each in enumerate(self.sets):
            named |= {f"sets[{at}].frequencies.{name}": name for name in each.frequencies}
        for path, name in named.items():
            if name not in classes:
                raise SettingsError(path, f"is not a class; {nearest(name, list(classes))}")
        for name in classes:
            if self.shares.get(name, self.share) and not any(each.among(name) for each in self.sets):
                raise SettingsError("sets", f"none has a frequency above 0 among jobs of class {name!r}")
        for at, each in enumerate(self.sets):
            _check_set(each.node_selector, f"sets[{at}].nodeSelector", machines)


def _check_set(node_selector: Mapping[str, str], path: str, machines: Mapping[str, Machine]) -> None:
    count = satisfying(node_selector, machines.values())
    text = ", ".join(f"{key}: {value}" for key, value in node_selector.items())
    if not count:
        raise SettingsError(path, f"no machine satisfies {{{text}}}")
    if count == len(machines):
        raise SettingsError(path, f"all machines satisfy {{{text}}}, so it constrains nothing")


def satisfying(node_selector: Mapping[str, str], machines: Iterable[Machine]) -> int:
    """How many of the machines carry all these labels."""
    spec = Spec(node_selector=tuple(sorted(node_selector.items())))
    return sum(not forbidden(spec, machine.node) for machine in machines)
