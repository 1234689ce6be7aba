"""The policies that are compared: orders beside the same placement, and Tetris with its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

BASELINE, OURS, ABLATION = "drf", "carbyne", "share-srtf"
LEARNED = "carbyne-rosella"
REFERENCE = "srtf"  # for what a mean response time can be if nobody has a share
BOUNDED = "carbyne-bounded"

Contestant = Mapping[str, Any]
"""The roles of a profile."""


def _fit(**order: Any) -> Contestant:
    return {"order": order, "place": {"policy": "best-fit"}, "learn": {"policy": "none"}}


def _learned(**order: Any) -> Contestant:
    return {"order": order, "place": {"policy": "rosella"}, "learn": {"policy": "rosella"}}


CONTESTANTS: dict[str, Contestant] = {
    BASELINE: _fit(policy="drf", by="job"),
    "h-drf": _fit(policy="h-drf"),
    REFERENCE: _fit(policy="srtf"),
    "sjf": _fit(policy="sjf"),
    "tetris": {"order": {"policy": "srtf"}, "place": {"policy": "tetris"}, "learn": {"policy": "none"}},
    # Without the wait limit, which places pods that strict sharing withholds for long.
    "strict": {**_fit(policy="carbyne", altruism=0, leftover="none"), "waitLimit": None},
    ABLATION: _fit(policy="carbyne", altruism=0),
    OURS: _fit(policy="carbyne"),
    BOUNDED: _fit(policy="carbyne", overhang="bounded"),
    "drf-rosella": _learned(policy="drf", by="job"),
    "srtf-rosella": _learned(policy="srtf"),
    LEARNED: _learned(policy="carbyne"),
}
MEANS = {
    BASELINE: "`order: {policy: drf, by: job}`: the job with the least dominant share; in seconds",
    "h-drf": "`order: h-drf`: the namespace, then its job, of the least share; all in one namespace",
    REFERENCE: "`order: srtf`: the job with the least unstarted work",
    "sjf": "`order: sjf`: the job with the shortest critical path",
    "tetris": "`place: tetris` and `order: srtf`: alignment of demand and room, minus remaining work",
    "strict": "`order: {policy: carbyne, altruism: 0, leftover: none}`: no job gets more than its share",
    ABLATION: "`order: {policy: carbyne, altruism: 0}`: shares; what is left over by least remaining work",
    OURS: "`order: carbyne`: the same, and jobs lend what they need not start now",
    BOUNDED: "`order: {policy: carbyne, overhang: bounded}`: starts above a share are bounded",
    "drf-rosella": "`order: drf`, `place: rosella` with learned speeds",
    "srtf-rosella": "`order: srtf`, `place: rosella` with learned speeds",
    LEARNED: "`order: carbyne`, `place: rosella` with learned speeds",
}


def only(*names: str) -> dict[str, Contestant]:
    """These contestants, after the baseline."""
    return {name: CONTESTANTS[name] for name in (BASELINE, *names)}
