"""Properties of machines, drawn as wholes from a table of machine types.

After Sharma and others, "Modeling and Synthesizing Task Placement Constraints in Google Compute Clusters"
(SoCC 2011): the labels of a machine are drawn together, because labels drawn one by one make machines that
do not exist. Departure: every type gets its share of the machines exactly (by largest remainders), and only
which machines these are is random, so that a small cluster lacks no type by chance.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from eclectus.model.errors import SettingsError
from eclectus.model.settings import Setting
from eclectus.sim.base.random_draws import stream


@dataclass(frozen=True)
class MachineType:
    """One line of the table."""

    labels: Annotated[dict[str, str], Setting("labels of the nodes of this type")] = field(
        default_factory=dict
    )
    share: Annotated[float, Setting("share of the machines, relative to the other types", least=1e-9)] = 1.0


@dataclass(frozen=True)
class MachineTypes:
    """The table, and the seed of which machine is of which type."""

    types: tuple[MachineType, ...]
    seed: Annotated[
        int,
        Setting(
            "seed of which machine is of which type",
            why="properties in the order of the machines would coincide with partitions by number",
            least=0,
        ),
    ] = 1

    def __post_init__(self) -> None:
        if not self.types:
            raise SettingsError("types", "is empty; write at least one type such as {labels: {disk: ssd}}")

    def labels(self, machines: int) -> list[dict[str, str]]:
        """The labels of each of so many machines, in random order; the same for equal seeds."""
        types = [
            each for each, count in zip(self.types, self.counts(machines), strict=True) for _ in range(count)
        ]
        order = stream(self.seed, "machine types").permutation(machines)
        return [types[at].labels for at in order.tolist()]

    def counts(self, machines: int) -> list[int]:
        """How many of the machines are of each type."""
        total = sum(each.share for each in self.types)
        quotas = [machines * each.share / total for each in self.types]
        counts = [int(quota) for quota in quotas]
        by_remainder = sorted(range(len(quotas)), key=lambda at: counts[at] - quotas[at])
        for at in by_remainder[: machines - sum(counts)]:
            counts[at] += 1
        return counts
