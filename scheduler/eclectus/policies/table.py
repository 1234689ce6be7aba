"""The policies that a SchedulerConfiguration may name, by role, and the combinations that are refused.

To add a policy, write its module, and add the class here under the name that users write.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from eclectus.framework import Learn, Line, Order, Place, Profile, Relieve
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
from eclectus.policies.order.pools import FairPools
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
from eclectus.policies.relieve.reclaim import Reclaim
from eclectus.policies.rosella import Rosella, RosellaLearn, RosellaLine
from eclectus.policies.shared import OvertakingLine

LEARN: dict[str, type[Learn]] = {"rosella": RosellaLearn, "none": Unlearned}

ORDER: dict[str, type[Order]] = {
    "fifo": FifoOrder,
    "sjf": ShortestJob,
    "srtf": LeastWorkLeft,
    "drf": DominantShare,
    "h-drf": HierarchicalShare,
    "phoenix": FewestNodesFirst,
    "carbyne": Carbyne,
    "pools": FairPools,
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

RELIEVE: dict[str, type[Relieve]] = {"none": NoRelief, "preemption": Preemption, "reclaim": Reclaim}

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


# Clashes: combinations of policies in which one voids another. A configuration that has one is refused.
#
# A combination that is merely worse than another is no clash. What a paper leaves out of its algorithm, to
# compare with, can be left out by a setting (`attempts: 0`). The chart and docs/reference have this table
# too: `make manifests` writes it there.


@dataclass(frozen=True)
class Clash:
    """A combination is refused if the policy of every role named here is such a one; None: any policy."""

    at: str  # the role that the message is about
    problem: str  # which policy is voided and why, and what to do
    order: Callable[[Order], bool] | None = None
    place: Callable[[Place], bool] | None = None
    line: Callable[[Line], bool] | None = None
    relieve: Callable[[Relieve], bool] | None = None

    def is_in(self, profile: Profile) -> bool:
        """Whether the profile is such a combination."""
        return (
            (self.order is None or self.order(profile.order))
            and (self.place is None or self.place(profile.place))
            and (self.line is None or self.line(profile.line))
            and (self.relieve is None or self.relieve(profile.relieve))
        )


CLASHES = (
    Clash(
        at="line",
        place=lambda place: not place.traits.joins_node_queues,
        line=lambda line: not isinstance(line, FifoLine),
        problem="orders node queues, but with this place no pod enters one; leave it out, or choose a place "
        "that joins node queues, for example by queue: lines or view: sample",
    ),
    Clash(
        at="line",
        place=lambda place: isinstance(place, Rosella) and place.mode == "paper",
        line=lambda line: not line.traits.first_come or line.traits.steals,
        problem="contradicts place's mode: paper, whose node queues are first come, first served; leave it "
        "out",
    ),
    Clash(
        at="relieve",
        place=lambda place: isinstance(place, Rosella) and place.mode == "paper",
        relieve=lambda relieve: relieve.traits.evicts,
        problem="contradicts place's mode: paper, in which no pod is ended for another; leave it out",
    ),
    Clash(
        at="line",
        place=lambda place: isinstance(place, Hawk),
        line=lambda line: not isinstance(line, Stealing),
        problem="hawk needs {policy: stealing}: its short pods queue behind long ones until idle nodes steal "
        "them; attempts: 0 is hawk without stealing, for comparison",
    ),
    Clash(
        at="line",
        place=lambda place: isinstance(place, Eagle),
        line=lambda line: not isinstance(line, OvertakingLine),
        problem="eagle needs {policy: srpt} or {policy: phoenix}: its reservations stay until their job is "
        "done, so in another order a large job holds up all others, and behind long pods there are no short "
        "ones to steal; slack: 0 is eagle without overtaking, for comparison",
    ),
    Clash(
        at="line",
        place=lambda place: isinstance(place, Sparrow),
        line=lambda line: isinstance(line, RosellaLine),
        problem="moves pods that wait at one node, but sparrow's wait at several; leave it out",
    ),
    Clash(
        at="line",
        place=lambda place: isinstance(place, CentralLeastWait),
        line=lambda line: isinstance(line, RosellaLine),
        problem="moves long pods to nodes that clwl and dlwl keep for short ones; leave it out, or choose "
        "{policy: srpt} or {policy: stealing}",
    ),
    Clash(
        at="order",
        order=lambda order: order.traits.needs_one_at_a_time,
        place=lambda place: place.traits.joins_node_queues or place.traits.takes_all_pending,
        problem="ranks groups by what their bound pods hold, but this place decides on all pending pods at "
        "once, or sends pods to nodes before they have room; choose a place that binds one pod after the "
        "other, such as rosella or best-fit",
    ),
)


def clashes_in(profile: Profile) -> Iterator[Clash]:
    """The combinations of this table that the profile is."""
    return (clash for clash in CLASHES if clash.is_in(profile))
