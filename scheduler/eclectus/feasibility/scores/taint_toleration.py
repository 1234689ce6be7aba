"""TaintToleration: the fewer taints of effect PreferNoSchedule the pod does not tolerate, the better."""

from __future__ import annotations

from eclectus.feasibility.scores.whole import MOST, Ints, share_of_most


def taint_toleration(untolerated: Ints, most: int) -> Ints:
    """The score of nodes with so many such taints; `most`: the greatest number among nodes that fit."""
    return MOST - share_of_most(untolerated, most)
