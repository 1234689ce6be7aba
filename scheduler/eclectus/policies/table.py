"""The table of policies: what a user may write in a SchedulerConfiguration. To add one: a file and a line."""

from __future__ import annotations

from typing import Any

from eclectus.core.seam import Hold, Learn, Line, Order, PlacePolicy, Relieve
from eclectus.policies.allocation import LeastAllocated, MostAllocated
from eclectus.policies.drf import DominantShare
from eclectus.policies.eagle import Eagle
from eclectus.policies.fifo import FifoLine, FifoOrder
from eclectus.policies.fit import BestFit, WorstFit
from eclectus.policies.hawk import Hawk, Stealing
from eclectus.policies.join_idle import JoinIdle
from eclectus.policies.least_wait import CentralLeastWait, DistributedLeastWait
from eclectus.policies.proportional import Proportional
from eclectus.policies.random_choice import PowerOfTwo, Uniform
from eclectus.policies.rosella import Rosella, RosellaLearn, RosellaLine
from eclectus.policies.round_robin import RoundRobin
from eclectus.policies.scaled_fit import DotProduct, ScaledBestFit
from eclectus.policies.sjf import ShortestJob
from eclectus.policies.sparrow import Sparrow
from eclectus.policies.srpt import ShortestRemaining
from eclectus.policies.srtf import LeastWorkLeft
from eclectus.policies.tetris import Tetris
from eclectus.policies.unlearned import Unlearned

LEARN: dict[str, type[Learn]] = {
    "rosella": RosellaLearn,
    "none": Unlearned,
}

ORDER: dict[str, type[Order]] = {
    "fifo": FifoOrder,
    "sjf": ShortestJob,
    "srtf": LeastWorkLeft,
    "drf": DominantShare,
}

HOLD: dict[str, type[Hold]] = {}

PLACE: dict[str, type[PlacePolicy]] = {
    "rosella": Rosella,
    "uniform": Uniform,
    "pot": PowerOfTwo,
    "jiq": JoinIdle,
    "pss": Proportional,
    "round-robin": RoundRobin,
    "sparrow": Sparrow,
    "hawk": Hawk,
    "eagle": Eagle,
    "clwl": CentralLeastWait,
    "dlwl": DistributedLeastWait,
    "least-allocated": LeastAllocated,
    "most-allocated": MostAllocated,
    "best-fit": BestFit,
    "worst-fit": WorstFit,
    "tetris": Tetris,
    "scaled-best-fit": ScaledBestFit,
    "dot-product": DotProduct,
}

LINE: dict[str, type[Line]] = {
    "fifo": FifoLine,
    "rosella": RosellaLine,
    "srpt": ShortestRemaining,
    "stealing": Stealing,
}

RELIEVE: dict[str, type[Relieve]] = {}

ROLES: dict[str, dict[str, type[Any]]] = {
    "learn": LEARN,
    "order": ORDER,
    "hold": HOLD,
    "place": PLACE,
    "line": LINE,
    "relieve": RELIEVE,
}
