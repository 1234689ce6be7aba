"""Several Relieve policies: each is asked about the tasks for which those before have made no room."""

from collections.abc import Iterator
from dataclasses import dataclass

from typing_extensions import override

from eclectus.framework import Refused, ReliefAction, Relieve, RelieveTraits, View


@dataclass(eq=False)
class Chain(Relieve):
    """`relieve: [reclaim, preemption]` in a configuration."""

    policies: tuple[Relieve, ...]

    @property
    @override
    def traits(self) -> RelieveTraits:
        """What any of them may do."""
        return RelieveTraits(
            needs=frozenset(need for each in self.policies for need in each.traits.needs),
            evicts=any(each.traits.evicts for each in self.policies),
            reclaims=any(each.traits.reclaims for each in self.policies),
        )

    def relieve(self, view: View, refused: Refused) -> Iterator[ReliefAction]:
        """What the first answers, then what the next answers about the tasks that are not nominated yet."""
        for policy in self.policies:
            left = [task for task in refused.tasks if not view.placed.is_nominated(task.uid)]
            if left:
                yield from policy.relieve(view, Refused(refused.task_class, left))
