"""Rosella: sample nodes in proportion to their learned speed, take the better; or, with a fresh view, plan.

Q. Wu, Z. Liu, "Rosella: A Self-Driving Distributed Scheduler for Heterogeneous Clusters", 2020.
"""

from eclectus.policies.rosella.learn.learn import RosellaLearn
from eclectus.policies.rosella.line import RosellaLine
from eclectus.policies.rosella.place.place import Rosella

__all__ = ["Rosella", "RosellaLearn", "RosellaLine"]
