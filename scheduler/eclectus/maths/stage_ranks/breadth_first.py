"""Breadth first: by the number of stages on the longest way from the start of the job.

What Carbyne's evaluation runs inside the jobs of its DRF baseline (Grandl and others, OSDI 2016, section 7).
"""

from __future__ import annotations

from collections.abc import Sequence

from eclectus.maths.dag_plan.stages import StageLeft, remaining


def breadth_first(stages: Sequence[StageLeft], share: Sequence[float]) -> list[float]:
    """0 for stages without parents that are left, 1 for their children, and so on."""
    depths: list[float] = []
    for above in remaining(stages, share).parents:
        depths.append(1.0 + max((depths[parent] for parent in above), default=-1.0))
    return depths
