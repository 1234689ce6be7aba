"""Rosella: learn node speeds from completed pods, and place by them.

Q. Wu, Z. Liu, "Rosella: A Self-Driving Distributed Scheduler for Heterogeneous Clusters", 2020 (arXiv
2010.15206). `learn`: the learner. `place`: sampling as in the paper, and re-planning. `line`: node queues
from which tasks move to faster nodes. docs/rosella.md and docs/placement.md describe them.
"""

from eclectus.policies.rosella.learn import RosellaLearn
from eclectus.policies.rosella.line import RosellaLine
from eclectus.policies.rosella.place import Rosella

__all__ = ["Rosella", "RosellaLearn", "RosellaLine"]
