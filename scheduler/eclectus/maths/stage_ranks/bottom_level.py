"""Critical path first: by the longest path from a stage to the end of the job.

Hu, "Parallel sequencing and assembly line problems", Operations Research 9, 1961.
"""

from __future__ import annotations

from collections.abc import Sequence

from eclectus.maths.dag_plan.stages import StageLeft, remaining


def bottom_level(stages: Sequence[StageLeft], share: Sequence[float]) -> list[float]:
    """Minus the path, so the longest is first."""
    return [-float(tail) for tail in remaining(stages, share).tails]
