"""How much `make rosella` runs, and the cases of its three sections."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from eclectus_bench.profiles import Part
from eclectus_bench.rosella import learning, queues
from eclectus_bench.rosella.learning import LearningCase
from eclectus_bench.rosella.queues import CONTESTANTS, QueueCase

MACHINES = 32
SPEEDS = (1, 3), (1, 2, 4, 8)  # of equal parts of the machines
LOADS, TASKS_A_JOB = (0.5, 0.8, 0.9), (1, 10)
SETTINGS = tuple(product(SPEEDS, TASKS_A_JOB, LOADS))
AT_LOADS, AT_NODES = learning.NODES_AT_LOADS, learning.LOAD_AT_NODES


def _groups(speeds: Sequence[int]) -> str:
    count = MACHINES // len(speeds)
    return f"[{', '.join(f'{{name: s{speed}, count: {count}, speed: {speed}}}' for speed in speeds)}]"


@dataclass(frozen=True)
class Size:
    """How much is run."""

    seeds: int
    tasks: int = 4_000  # of a run of the first section
    nodes: Sequence[int] = queues.NODES
    tasks_least: int = QueueCase.tasks_least
    loads: Sequence[float] = learning.LOADS
    learning_nodes: Sequence[int] = learning.NODES

    def parts(self) -> list[Part]:
        """The settings of the first section."""
        return [
            Part(
                (
                    f"measure.tasks={self.tasks}",
                    f"cluster.groups={_groups(speeds)}",
                    f"workload.poisson.load={load}",
                    f"workload.poisson.classes.task.tasksPerJob={tasks}",
                ),
                self.seeds,
            )
            for speeds, tasks, load in SETTINGS
        ]

    def queue_cases(self) -> list[QueueCase]:
        """The larger ones last."""
        seeds = range(1, self.seeds + 1)
        return [
            QueueCase(policy, nodes, seed, tasks_least=self.tasks_least)
            for nodes, seed, policy in product(self.nodes, seeds, CONTESTANTS)
        ]

    def learning_cases(self) -> list[LearningCase]:
        """The larger ones last."""
        settings = [(AT_LOADS, load) for load in self.loads]
        settings += [(nodes, AT_NODES) for nodes in self.learning_nodes]
        cases = {
            LearningCase(learner, nodes, load, seed)
            for (nodes, load), learner, seed in product(settings, learning.LEARNERS, range(1, self.seeds + 1))
        }
        return sorted(cases, key=lambda case: (case.tasks, case.learner, case.seed))


QUICK = Size(2, 600, (25, 100), 2000, learning.LOADS[:2], learning.NODES[:2])
