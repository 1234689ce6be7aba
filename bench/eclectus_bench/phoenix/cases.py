"""What is measured: a section of the page for each question, with the cases of its scenario."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from eclectus_bench.phoenix.contestants import BASELINE, CENTRAL, DISTRIBUTED, Contestant, only

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
)
