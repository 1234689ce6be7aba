"""The policies that are compared: rules for one central queue, and distributed ones.

`-c` marks the constrained version of a published algorithm: probes, thefts and central placement only on
nodes that satisfy the job's constraints.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

CUT_OFF = "20s"  # between the means of short and long jobs, 5 s and 60 s
BASELINE = "kube-scheduler"


@dataclass(frozen=True)
class Contestant:
    """A profile of a scenario, and what else is changed in the scenario for it."""

    profile: Mapping[str, Any] = field(default_factory=dict)
    changes: tuple[str, ...] = ()


def _central(**roles: Any) -> Contestant:
    return Contestant({"learn": {"policy": "none"}, **roles})


def _distributed(**roles: Any) -> Contestant:
    """Without the wait limit, as in the papers."""
    return Contestant({"learn": {"policy": "none"}, "waitLimit": None, **roles})


_KUBE = {"place": {"policy": "least-allocated", "ties": "random"}}
_CUT = {"cutOff": CUT_OFF}
_PHOENIX = {"policy": "phoenix"}

CENTRAL = {
    BASELINE: _central(**_KUBE),
    "unconstrained": Contestant(
        {"learn": {"policy": "none"}, **_KUBE}, ("workload.poisson.constraints.share=0",)
    ),
    "order": _central(**_KUBE, order=_PHOENIX),
    "price": _central(place=_PHOENIX | {"spareDear": False}),
    "phoenix": _central(place=_PHOENIX),
    "phoenix-order": _central(place=_PHOENIX, order=_PHOENIX),
    "eclectus": Contestant({"learn": {"policy": "rosella"}}),
}
DISTRIBUTED = {
    "sparrow-c": _distributed(place={"policy": "sparrow"}),
    "hawk-c": _distributed(place={"policy": "hawk", **_CUT}, line={"policy": "stealing", **_CUT}),
    "eagle-c": _distributed(place={"policy": "eagle", **_CUT}, line={"policy": "srpt", **_CUT}),
    "eagle-c-crv": _distributed(place={"policy": "eagle", **_CUT}, line={"policy": "phoenix", **_CUT}),
    "clwl-c": _distributed(place={"policy": "clwl", **_CUT}),
    "dlwl-c": _distributed(place={"policy": "dlwl", **_CUT}, line={"policy": "srpt", **_CUT}),
}
MEANS = {
    BASELINE: "`place: {policy: least-allocated, ties: random}`: its default scores and order; in seconds",
    "unconstrained": "the same with the same tasks, none of which is constrained: a bound on the mean of all",
    "order": "the same with `order: phoenix`: an order alone",
    "price": "`place: {policy: phoenix, spareDear: false}`: the node with room that the fewest others need",
    "phoenix": "`place: phoenix`: and long tasks keep off scarce nodes for a time",
    "phoenix-order": "`place: phoenix`, `order: phoenix`",
    "eclectus": "the default, `place: rosella` with learned speeds",
    "sparrow-c": "`place: sparrow`",
    "hawk-c": "`place: hawk`, `line: stealing`",
    "eagle-c": "`place: eagle`, `line: srpt`",
    "eagle-c-crv": "`place: eagle`, `line: phoenix`: Eagle's node queues, ordered by the CRV",
    "clwl-c": "`place: clwl`: least estimated wait, exactly known",
    "dlwl-c": "`place: dlwl`, `line: srpt`: the same with waits of up to 16 s ago",
}

WHY = {  # it fails where it does
    "order": "an order makes no room: what some gain others lose",
    "price": "it keeps nodes for tasks that may not come",
    "phoenix": "long tasks wait for cheap nodes, also where no node is scarce enough for that to pay",
    "phoenix-order": "the same, and free tasks pay for the order when nearly all slots are busy",
    "eclectus": "learned rates are noisy: of equal nodes some seem fast, and tasks wait for these",
    "sparrow-c": "reservations wait behind long tasks in the queues of few nodes while others are idle",
    "hawk-c": "idle nodes steal short tasks only, and only some of those that they may run",
    "eagle-c": "short tasks keep off nodes with long ones, and few of the nodes that satisfy them have none",
    "eagle-c-crv": "the same; and free tasks wait while contended sets go first",
    "clwl-c": "a task stays where it was sent, though sizes turn out otherwise than estimated",
    "dlwl-c": "the same, and batches meet at the nodes that were empty up to 16 s ago",
}


def only(*names: str) -> dict[str, Contestant]:
    """Some of the central and distributed contestants."""
    known = CENTRAL | DISTRIBUTED
    return {name: known[name] for name in names}
