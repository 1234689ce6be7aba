"""The policies that a SchedulerConfiguration may name, by role, and the combinations that are refused.

To add a policy, write its module, and add its class here under the name that users write. A module is
imported when one of its policies is asked for: a scheduler starts with those of its profiles only.
"""

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from importlib import import_module
from typing import Any, TypeVar

from msgspec import Struct
from typing_extensions import override

from eclectus.framework import (
    Hold,
    Learn,
    Line,
    Order,
    Place,
    PlaceTraits,
    Policy,
    Profile,
    Relieve,
    Speculate,
)
from eclectus.framework.traits import TITLES
from eclectus.policies.shared import OvertakingLine

_P = TypeVar("_P", bound=Policy)


class Policies(MutableMapping[str, type[_P]]):
    """The classes of one role's policies by name, each imported when it is first read.

    `paths`: name -> `module:class`, below `eclectus.policies`.
    """

    def __init__(self, role: str, paths: Mapping[str, str]) -> None:
        self._known: dict[str, str | type[_P]] = {
            name: f"eclectus.policies.{path}" for name, path in paths.items()
        }
        TITLES.update((str(path), f"{role}/{name}") for name, path in self._known.items())

    @override
    def __getitem__(self, name: str) -> type[_P]:
        known = self._known[name]
        if isinstance(known, str):
            module, _, kind = known.partition(":")
            known = self._known[name] = getattr(import_module(module), kind)
        return known

    @override
    def __setitem__(self, name: str, kind: type[_P]) -> None:
        self._known[name] = kind

    @override
    def __delitem__(self, name: str) -> None:
        del self._known[name]

    @override
    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    @override
    def __len__(self) -> int:
        return len(self._known)


LEARN: Policies[Learn] = Policies(
    "learn", {"rosella": "rosella.learn:RosellaLearn", "none": "learn.none:Unlearned"}
)

ORDER: Policies[Order] = Policies(
    "order",
    {
        "fifo": "order.fifo:FifoOrder",
        "sjf": "order.sjf:ShortestJob",
        "srtf": "order.srtf:LeastWorkLeft",
        "drf": "order.drf:DominantShare",
        "h-drf": "order.h_drf:HierarchicalShare",
        "phoenix": "order.phoenix:FewestNodesFirst",
        "carbyne": "carbyne.order:Carbyne",
        "pools": "order.pools:FairPools",
    },
)

PLACE: Policies[Place] = Policies(
    "place",
    {
        "rosella": "rosella.place:Rosella",
        "uniform": "place.power_of_two:Uniform",
        "pot": "place.power_of_two:PowerOfTwo",
        "jiq": "place.jiq:JoinIdle",
        "pss": "place.pss:Proportional",
        "round-robin": "place.round_robin:RoundRobin",
        "sparrow": "place.sparrow:Sparrow",
        "hawk": "place.hawk:Hawk",
        "eagle": "place.eagle:Eagle",
        "clwl": "place.clwl:CentralLeastWait",
        "dlwl": "place.clwl:DistributedLeastWait",
        "least-allocated": "place.allocation:LeastAllocated",
        "most-allocated": "place.allocation:MostAllocated",
        "requested-to-capacity-ratio": "place.allocation:RequestedToCapacityRatio",
        "best-fit": "place.fit:BestFit",
        "worst-fit": "place.fit:WorstFit",
        "tetris": "place.tetris:Tetris",
        "scaled-best-fit": "place.scaled_fit:ScaledBestFit",
        "dot-product": "place.scaled_fit:DotProduct",
        "phoenix": "place.phoenix:ScarceNodesLast",
        "kube": "place.kube:KubeScores",
        "quincy": "quincy.place:Quincy",
    },
)

LINE: Policies[Line] = Policies(
    "line",
    {
        "fifo": "line.fifo:FifoLine",
        "rosella": "rosella.line:RosellaLine",
        "srpt": "line.srpt:ShortestRemaining",
        "phoenix": "line.phoenix:ContendedFirst",
        "stealing": "line.stealing:Stealing",
    },
)

RELIEVE: Policies[Relieve] = Policies(
    "relieve",
    {
        "none": "relieve.none:NoRelief",
        "preemption": "relieve.preemption:Preemption",
        "reclaim": "relieve.reclaim:Reclaim",
    },
)

SPECULATE: Policies[Speculate] = Policies(
    "speculate",
    {
        "none": "speculate.none:NoCopies",
        "late": "speculate.late:Late",
        "late-hadoop": "speculate.late_hadoop:LateOfHadoop",
        "native": "speculate.native:Native",
        "spark": "speculate.spark:Spark",
        "mantri-lite": "speculate.mantri:MantriLite",
    },
)

HOLD: Policies[Hold] = Policies("hold", {"none": "hold.none:NoHold", "delay": "hold.delay:Delay"})

ROLES: dict[str, Policies[Any]] = {
    "learn": LEARN,
    "order": ORDER,
    "place": PLACE,
    "line": LINE,
    "relieve": RELIEVE,
    "speculate": SPECULATE,
    "hold": HOLD,
}


# Clashes: combinations of policies in which one voids another. A configuration that has one is refused.
#
# A combination that is merely worse than another is no clash. What a paper leaves out of its algorithm, to
# compare with, can be left out by a setting (`attempts: 0`). The chart and docs/reference have this table
# too: `make manifests` writes it there.


class Clash(Struct, frozen=True):
    """A combination is refused if the policy of every role named here is such a one; None: any policy."""

    at: str  # the role that the message is about
    problem: str  # which policy is voided and why, and what to do
    order: Callable[[Order], bool] | None = None
    place: Callable[[Place], bool] | None = None
    line: Callable[[Line], bool] | None = None
    relieve: Callable[[Relieve], bool] | None = None
    hold: Callable[[Hold], bool] | None = None

    def is_in(self, profile: Profile) -> bool:
        """Whether the profile is such a combination."""
        return (
            (self.order is None or self.order(profile.order))
            and (self.place is None or self.place(profile.place))
            and (self.line is None or self.line(profile.line))
            and (self.relieve is None or self.relieve(profile.relieve))
            and (self.hold is None or self.hold(profile.hold))
        )


CLASHES = (
    Clash(
        at="line",
        place=lambda place: not place.traits.joins_node_queues,
        line=lambda line: not _is(line, "line/fifo"),
        problem="orders node queues, but with this place no pod enters one; leave it out, or choose a place "
        "that joins node queues, for example by queue: lines or view: sample",
    ),
    Clash(
        at="line",
        place=lambda place: _is(place, "place/rosella") and getattr(place, "mode", "") == "paper",
        line=lambda line: not line.traits.first_come or line.traits.steals,
        problem="contradicts place's mode: paper, whose node queues are first come, first served; leave it "
        "out",
    ),
    Clash(
        at="relieve",
        place=lambda place: _is(place, "place/rosella") and getattr(place, "mode", "") == "paper",
        relieve=lambda relieve: relieve.traits.evicts,
        problem="contradicts place's mode: paper, in which no pod is ended for another; leave it out",
    ),
    Clash(
        at="line",
        place=lambda place: _is(place, "place/hawk"),
        line=lambda line: not _is(line, "line/stealing"),
        problem="hawk needs {policy: stealing}: its short pods queue behind long ones until idle nodes steal "
        "them; attempts: 0 is hawk without stealing, for comparison",
    ),
    Clash(
        at="line",
        place=lambda place: _is(place, "place/eagle"),
        line=lambda line: not isinstance(line, OvertakingLine),
        problem="eagle needs {policy: srpt} or {policy: phoenix}: its reservations stay until their job is "
        "done, so in another order a large job holds up all others, and behind long pods there are no short "
        "ones to steal; slack: 0 is eagle without overtaking, for comparison",
    ),
    Clash(
        at="line",
        place=lambda place: _is(place, "place/sparrow"),
        line=lambda line: _is(line, "line/rosella"),
        problem="moves pods that wait at one node, but sparrow's wait at several; leave it out",
    ),
    Clash(
        at="line",
        place=lambda place: _is(place, "place/clwl"),
        line=lambda line: _is(line, "line/rosella"),
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
    Clash(
        at="hold",
        place=lambda place: _chooses_itself(place.traits) or _is(place, "place/tetris"),
        hold=lambda hold: hold.traits.waits,
        problem="lets pods wait for nodes with their data, but this place chooses among pods itself, or lets "
        "them wait for other nodes; choose one that gives one pod after the other a node with room, such as "
        "kube or best-fit, or leave it out: rosella weighs itself what data cost elsewhere",
    ),
)


def _chooses_itself(traits: PlaceTraits) -> bool:
    return traits.joins_node_queues or traits.takes_all_pending or traits.defers or traits.asks_solver


def _is(policy: Policy, title: str) -> bool:
    """Whether it is this policy of the table, or made from it; its module is not imported to find out."""
    return any(getattr(kind, "title", "") == title for kind in type(policy).__mro__)


def clashes_in(profile: Profile) -> Iterator[Clash]:
    """The combinations of this table that the profile is."""
    return (clash for clash in CLASHES if clash.is_in(profile))
