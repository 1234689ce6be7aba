"""Clashes: combinations of policies in which one voids another. A configuration that has one is refused.

A combination that is merely worse than another is no clash. What a paper leaves out of its algorithm, to
compare with, can be left out by a setting (`attempts: 0`). The chart and docs/reference have this table too:
`make manifests` writes it there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from eclectus.framework import Line, Order, Place, Profile, Relieve
from eclectus.policies.line.fifo import FifoLine
from eclectus.policies.line.stealing import Stealing
from eclectus.policies.place.clwl import CentralLeastWait
from eclectus.policies.place.eagle import Eagle
from eclectus.policies.place.hawk import Hawk
from eclectus.policies.place.sparrow import Sparrow
from eclectus.policies.rosella import Rosella, RosellaLine
from eclectus.policies.shared.hybrids import OvertakingLine


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
