"""The policies that a SchedulerConfiguration may name, by role.

To add a policy, write its module, and add the class here under the name that users write.
"""

from __future__ import annotations

from typing import Any

from eclectus.framework import Learn, Line, Order, Place, Relieve
from eclectus.policies.carbyne import Carbyne
from eclectus.policies.learn.none import Unlearned
from eclectus.policies.line.fifo import FifoLine
from eclectus.policies.line.phoenix import ContendedFirst
from eclectus.policies.line.srpt import ShortestRemaining
from eclectus.policies.line.stealing import Stealing
from eclectus.policies.order.drf import DominantShare
from eclectus.policies.order.fifo import FifoOrder
from eclectus.policies.order.h_drf import HierarchicalShare
from eclectus.policies.order.phoenix import FewestNodesFirst
from eclectus.policies.order.sjf import ShortestJob
from eclectus.policies.order.srtf import LeastWorkLeft
from eclectus.policies.place.allocation import LeastAllocated, MostAllocated, RequestedToCapacityRatio
from eclectus.policies.place.clwl import CentralLeastWait, DistributedLeastWait
from eclectus.policies.place.eagle import Eagle
from eclectus.policies.place.fit import BestFit, WorstFit
from eclectus.policies.place.hawk import Hawk
from eclectus.policies.place.jiq import JoinIdle
from eclectus.policies.place.kube import KubeScores
from eclectus.policies.place.phoenix import ScarceNodesLast
from eclectus.policies.place.power_of_two import PowerOfTwo, Uniform
from eclectus.policies.place.pss import Proportional
from eclectus.policies.place.round_robin import RoundRobin
from eclectus.policies.place.scaled_fit import DotProduct, ScaledBestFit
from eclectus.policies.place.sparrow import Sparrow
from eclectus.policies.place.tetris import Tetris
from eclectus.policies.relieve.none import NoRelief
from eclectus.policies.relieve.preemption import Preemption
from eclectus.policies.rosella import Rosella, RosellaLearn, RosellaLine

LEARN: dict[str, type[Learn]] = {
    "rosella": RosellaLearn,
    "none": Unlearned,
}

ORDER: dict[str, type[Order]] = {
    "fifo": FifoOrder,
    "sjf": ShortestJob,
    "srtf": LeastWorkLeft,
    "drf": DominantShare,
    "h-drf": HierarchicalShare,
    "phoenix": FewestNodesFirst,
    "carbyne": Carbyne,
}

PLACE: dict[str, type[Place]] = {
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
    "requested-to-capacity-ratio": RequestedToCapacityRatio,
    "best-fit": BestFit,
    "worst-fit": WorstFit,
    "tetris": Tetris,
    "scaled-best-fit": ScaledBestFit,
    "dot-product": DotProduct,
    "phoenix": ScarceNodesLast,
    "kube": KubeScores,
}

LINE: dict[str, type[Line]] = {
    "fifo": FifoLine,
    "rosella": RosellaLine,
    "srpt": ShortestRemaining,
    "phoenix": ContendedFirst,
    "stealing": Stealing,
}

RELIEVE: dict[str, type[Relieve]] = {
    "none": NoRelief,
    "preemption": Preemption,
}

ROLES: dict[str, dict[str, type[Any]]] = {
    "learn": LEARN,
    "order": ORDER,
    "place": PLACE,
    "line": LINE,
    "relieve": RELIEVE,
}

for _role, _policies in ROLES.items():
    for _name, _policy in _policies.items():
        _policy.title = f"{_role}/{_name}"
