"""What is measured: the contestants, and a section of the page for each question, with its cases.

Contestants are rules for one central queue, and distributed ones. `-c` marks the constrained version of a
published algorithm: probes, thefts and central placement only on nodes that satisfy the job's constraints.
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
RECORDED = {  # jobs alone
    "eagle-c-wait": _distributed(
        place={"policy": "eagle", **_CUT}, line={"policy": "phoenix", "by": "wait", **_CUT}
    ),
}


def _soft(preferences: str) -> Contestant:
    """Gains on preferred nodes are learned under each of them, so that they differ in nothing else."""
    place = {"policy": "eagle", "preferences": preferences, **_CUT}
    profile = _distributed(place=place, line={"policy": "phoenix", **_CUT}).profile
    return Contestant({**profile, "learn": {"policy": "rosella"}})


NEGOTIATED = "negotiated"
SOFT = {each: _soft(each) for each in (NEGOTIATED, "kept", "ignored")}
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
    "eagle-c-wait": "`place: eagle`, `line: {policy: phoenix, by: wait}`: ordered by the estimated wait",
    NEGOTIATED: "`place: {policy: eagle, preferences: negotiated}`, `line: phoenix`, learned speeds",
    "kept": "the same with `preferences: kept`: preferred nodes are as good as required",
    "ignored": "the same with `preferences: ignored`, the default: they have no effect",
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
    "eagle-c-wait": "the same, for the sets that are expected to wait longest",
    "clwl-c": "a task stays where it was sent, though sizes turn out otherwise than estimated",
    "dlwl-c": "the same, and batches meet at the nodes that were empty up to 16 s ago",
}


def only(*names: str) -> dict[str, Contestant]:
    """Some of the central and distributed contestants."""
    known = CENTRAL | DISTRIBUTED
    return {name: known[name] for name in names}


SPEEDS = (1, 2, 4, 8)
LOAD = "workload.poisson.load"


@dataclass(frozen=True)
class Case:
    """One setting of a section's scenario."""

    what: str
    changes: tuple[str, ...]


@dataclass(frozen=True)
class Section:
    """One table of the page: every contestant in every case of one scenario."""

    name: str  # for --only
    title: str
    text: str
    scenario: str  # the name of a shipped one
    contestants: Mapping[str, Contestant]
    cases: tuple[Case, ...]
    columns: tuple[str, ...]  # of measure.FIGURES
    baseline: str = BASELINE  # to which all others are ratios


CONSTRAINED = ("all mean", "con mean", "con wait", "con wait p99", "free mean", "long mean", "work x wait")
PREFERRING = ("all mean", "preferring mean", "free mean", "long mean", "work x wait")


def _loads(*loads: float) -> tuple[Case, ...]:
    return tuple(Case(f"load {load}", (f"{LOAD}={load}",)) for load in loads)


def _speeds(*loads: float) -> tuple[Case, ...]:
    groups = ", ".join(f"{{name: speed-{speed}, count: 50, slots: 1, speed: {speed}}}" for speed in SPEEDS)
    return tuple(Case(f"load {load}", (f"cluster.groups=[{groups}]", f"{LOAD}={load}")) for load in loads)


SECTIONS = (
    Section(
        "loads",
        "Half of the jobs constrained, by load",
        "Scenario `constraints`: sets of one and two constraints, equal nodes.",
        "constraints",
        CENTRAL | DISTRIBUTED,
        _loads(0.7, 0.9),
        CONSTRAINED,
    ),
    Section(
        "scarce",
        "Scarce nodes, by load",
        "Scenario `scarce`: 45 % of the work wants what a fifth of the nodes have, or less.",
        "scarce",
        CENTRAL | only("eagle-c", "eagle-c-crv"),
        _loads(0.7, 0.8, 0.9, 0.95),
        CONSTRAINED,
    ),
    Section(
        "speeds",
        "Speeds 1 : 2 : 4 : 8",
        "Scenario `constraints`, 50 nodes of each speed; only `eclectus` learns speeds.",
        "constraints",
        only(BASELINE, "price", "phoenix", "phoenix-order", "eclectus"),
        _speeds(0.7, 0.8, 0.9),
        CONSTRAINED,
    ),
    Section(
        "preferences",
        "Preferences",
        "Scenario `preferences`: a third of the work is half again as fast on a quarter of the nodes.",
        "preferences",
        only(BASELINE, "phoenix", "phoenix-order", "eclectus"),
        _loads(0.7, 0.9),
        PREFERRING,
    ),
    Section(
        "negotiation",
        "Soft constraints in the distributed form",
        "The same scenario with queues at nodes: preferences negotiated, as in Phoenix, never given up, or\n"
        "ignored, as in Eagle. The row `negotiated` is in seconds, all others are **ratios to it**: bold is\n"
        "worse than to negotiate. What is public of the paper has no figure of what negotiation brings by\n"
        "itself, so there is nothing to compare these figures with.",
        "preferences",
        SOFT,
        _loads(0.7, 0.9),
        PREFERRING,
        NEGOTIATED,
    ),
)
