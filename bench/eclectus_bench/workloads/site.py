"""Where a workload runs: what all its runs share, and what is of one run alone."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from eclectus_bench.drain import Say
from eclectus_bench.load import Load, Object

STANDING_SHARE_MOST = 0.8  # of the nodes: the others are left for measured pods that must be alone

PodOf = Callable[[str, str, Sequence[str]], Object]
"""A pod of a workload: its name, its schedulerName, and the namespaces in which its terms match pods."""


@dataclass(frozen=True)
class Sizes:
    """How much of each workload is run."""

    nodes: int
    pairs: int  # of runs, one by each scheduler
    pods: int | None  # measured in a run; None: as many as the workload says
    standing: int  # pods on nodes of their own before the runs, in workloads that have such
    waiting: int  # pods that cannot run, in workloads that have such

    @property
    def standing_pods(self) -> int:
        """As many as there are nodes for."""
        return min(self.standing, int(STANDING_SHARE_MOST * self.nodes))


@dataclass(frozen=True)
class Site:
    """The cluster of a workload: the same for all its runs."""

    load: Load
    sizes: Sizes
    pod_of: PodOf
    namespaces: Sequence[str]  # of the pods that stand there, and then of the measured pods of each run
    say: Say

    @property
    def standing(self) -> str:
        """The namespace of the pods that stand there."""
        return self.namespaces[0]


@dataclass(frozen=True)
class Run:
    """One backlog for one scheduler."""

    site: Site
    namespace: str  # of the measured pods
    scheduler: str  # schedulerName
    names: Sequence[str]  # of the measured pods
    say: Say
