"""The rules by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from eclectus.maths.dag_plan.stages import StageLeft
from eclectus.maths.stage_ranks.bottom_level import bottom_level
from eclectus.maths.stage_ranks.breadth_first import breadth_first
from eclectus.maths.stage_ranks.dagps import dagps

StageRanks = Callable[[Sequence[StageLeft], Sequence[float]], list[float]]

STAGE_RANKS: Mapping[str, StageRanks] = {"cp": bottom_level, "bfs": breadth_first, "dagps": dagps}
