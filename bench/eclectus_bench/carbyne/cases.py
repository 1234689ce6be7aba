"""What is measured: the contestants, and a section for each question, with the jobs of its cases."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eclectus_e2e.paths import CHECKOUT

BESIDE = CHECKOUT.parent / "shared" / "data"
VARIABLE = "ECLECTUS_DATA"


def folder() -> Path:
    """The folder of published data sets: what ECLECTUS_DATA names, else ../shared/data."""
    return Path(os.environ.get(VARIABLE) or BESIDE)


def missing(files: tuple[str, ...]) -> str:
    """Why jobs cannot be read: the first of their files that is not there; empty if all are."""
    for name in files:
        if not (folder() / name).is_file():
            return f"{folder() / name} is missing: set {VARIABLE} to the folder of the published data sets"
    return ""


BASELINE, OURS, ABLATION = "drf", "carbyne", "share-srtf"
LEARNED = "carbyne-rosella"
REFERENCE = "srtf"  # for what a mean response time can be if nobody has a share
BOUNDED = "carbyne-bounded"
LEVELS = 0.25, 0.5, 0.75  # of altruism, beside 0 and 1

Contestant = Mapping[str, Any]
"""The roles of a profile."""


def _fit(**order: Any) -> Contestant:
    return {"order": order, "place": {"policy": "best-fit"}, "learn": {"policy": "none"}}


def _tetris(**place: Any) -> Contestant:
    return {
        "order": {"policy": "srtf"},
        "place": {"policy": "tetris", **place},
        "learn": {"policy": "none"},
    }


def _learned(**order: Any) -> Contestant:
    return {"order": order, "place": {"policy": "rosella"}, "learn": {"policy": "rosella"}}


CONTESTANTS: dict[str, Contestant] = {
    BASELINE: _fit(policy="drf", by="job"),
    "h-drf": _fit(policy="h-drf"),
    REFERENCE: _fit(policy="srtf"),
    "sjf": _fit(policy="sjf"),
    "tetris": _tetris(),
    "tetris-0": _tetris(fairness=0),
    "tetris-1": _tetris(fairness=0.99),
    # Without the wait limit, which places pods that strict sharing withholds for long.
    "strict": {**_fit(policy="carbyne", altruism=0, leftover="none"), "waitLimit": None},
    ABLATION: _fit(policy="carbyne", altruism=0),
    OURS: _fit(policy="carbyne"),
    BOUNDED: _fit(policy="carbyne", overhang="bounded"),
    **{f"altruism-{level:g}": _fit(policy="carbyne", altruism=level) for level in LEVELS},
    "srtf-packing": _fit(policy="carbyne", leftover="srtf-packing"),
    "packing": _fit(policy="carbyne", leftover="packing"),
    "intra-tetris": _fit(policy="carbyne", intra="tetris"),
    "published": _fit(policy="carbyne", intra="tetris", leftover="srtf-packing"),
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
    "tetris-0": "the same with `fairness: 0`, the baseline of Carbyne's paper",
    "tetris-1": "the same with `fairness: 0.99`: only the job with the least dominant share",
    "strict": "`order: {policy: carbyne, altruism: 0, leftover: none}`: no job gets more than its share",
    ABLATION: "`order: {policy: carbyne, altruism: 0}`: shares; what is left over by least remaining work",
    OURS: "`order: carbyne`: the same, and jobs lend what they need not start now",
    BOUNDED: "`order: {policy: carbyne, overhang: bounded}`: starts above a share are bounded",
    **{f"altruism-{level:g}": f"`order: {{policy: carbyne, altruism: {level:g}}}`" for level in LEVELS},
    "srtf-packing": "`order: {policy: carbyne, leftover: srtf-packing}`: of a job what fills best",
    "packing": "`order: {policy: carbyne, leftover: packing}`: what fills best what is left, of any job",
    "intra-tetris": "`order: {policy: carbyne, intra: tetris}`: plans are packed by alignment",
    "published": "`order: {policy: carbyne, intra: tetris, leftover: srtf-packing}`: both, as in the paper",
    "drf-rosella": "`order: drf`, `place: rosella` with learned speeds",
    "srtf-rosella": "`order: srtf`, `place: rosella` with learned speeds",
    LEARNED: "`order: carbyne`, `place: rosella` with learned speeds",
}


def only(*names: str) -> dict[str, Contestant]:
    """These contestants, after the baseline."""
    return {name: CONTESTANTS[name] for name in (BASELINE, *names)}


CORES = 20  # of a machine, as in the paper; its other machine sizes are below
SCALE = 5  # the paper's 100 machines and the measured tasks of a stage, both divided by this
MACHINES = 100 // SCALE
NEAR_SATURATION, OVERLOAD = 0.95, 2.0


@dataclass(frozen=True)
class Jobs:
    """Where jobs come from: settings of the workload `dags`, with files in the folder of data sets."""

    what: str
    files: tuple[str, ...]  # `file`, and `graphs` if the format has such a file
    settings: str  # a YAML mapping without braces


# Cores and GiB of four kinds of tasks, because the profiles have no memory: of a machine 1/20 or 1/10 each.
DEMANDS = (1, 2), (1, 12), (2, 4), (1, 6)


def mix(error: float = 0.0) -> str:
    """The requests of tasks, which are so much more than the tasks need."""
    times = 1.0 + error
    kinds = (
        f"{{requests: {{cpu: {cores * 1000 * times:.0f}m, memory: {gib * 1024 * times:.0f}Mi}}}}"
        for cores, gib in DEMANDS
    )
    return f"[{', '.join(kinds)}]"


TPCH = Jobs(
    "TPC-H",
    ("tpch-dags/cloudlab_22query_tpch_profiles.json.gz", "tpch-dags/queries.yaml.gz"),
    f"format: tpch, size: 50g, cores: 50, shrink: {SCALE}, mix: {mix()}",
)
ALIBABA = Jobs(
    "Alibaba",
    ("alibaba2018-dags/alibaba_random_50_dags.jsonl.gz",),
    # Without the job that has 96 % of all work: alone it would decide every mean.
    "format: alibaba, machineMemory: 128Gi, mostTasks: 2000",
)


@dataclass(frozen=True)
class Case:
    """One setting: all jobs at 0, or a Poisson process at this load of the resource that is shortest."""

    what: str
    load: float | None = None
    changes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Section:
    """One table of the page: every contestant in every case."""

    name: str  # for --only
    title: str
    text: str
    jobs: Jobs
    cases: tuple[Case, ...]
    contestants: Mapping[str, Contestant]
    speeds: tuple[int, ...] = ()  # of equal parts of the machines; none: all have speed 1

    @property
    def classes(self) -> str:
        """One class of work for all tasks, because runs then take less time, unless somebody learns."""
        return "job" if self.speeds else "all"


OFFLINE = Case("all at once")
ONLINE = tuple(Case(f"load {load:g}", load) for load in (0.7, NEAR_SATURATION, OVERLOAD))
HEAVIER = tuple(Case(f"load {load:g}", load) for load in (4.0, 6.0))
ERRORS = (-0.5, 0.5)
ESTIMATES = "workload.dags.estimates"
WINDOW = "5s"  # of Jain's index: jobs take 10 to 50 s, and must have tasks waiting in all of one

SECTIONS = (
    Section(
        "tpch",
        "TPC-H queries",
        "Jobs are the 22 queries at 50 GB in random order, again and again.",
        TPCH,
        (OFFLINE, *ONLINE),
        only("h-drf", REFERENCE, "sjf", "tetris", "strict", ABLATION, OURS, BOUNDED),
    ),
    Section(
        "alibaba",
        "Alibaba's batch jobs",
        "Fifty production jobs, most of them small, without the one that has 96 % of all work.",
        ALIBABA,
        (OFFLINE, ONLINE[1]),
        only("h-drf", REFERENCE, "sjf", "tetris", ABLATION, OURS, BOUNDED),
    ),
    Section(
        "overload",
        "Loads that grow",
        "TPC-H at four and six times the capacity; load 2 is above. At 1, 2, 4 and 6 times the paper's "
        "factors over DRF are 1.57, 1.91, 2.22 and 2.28, on TPC-DS.",
        TPCH,
        HEAVIER,
        only(REFERENCE, "tetris", ABLATION, OURS),
    ),
    Section(
        "altruism",
        "Altruism",
        "TPC-H at twice the capacity, by the probability with which jobs lend: 0 is `share-srtf`, 1 "
        "`carbyne`. The paper has 1.05, 1.22, 1.25, 1.39 and 1.57, on TPC-DS.",
        TPCH,
        (ONLINE[2],),
        only(ABLATION, *(f"altruism-{level:g}" for level in LEVELS), OURS),
    ),
    Section(
        "published",
        "As published",
        "Carbyne with the packing of its paper, and Tetris at both ends of its fairness.",
        TPCH,
        (OFFLINE, ONLINE[2]),
        only("tetris-0", "tetris-1", OURS, "srtf-packing", "packing", "intra-tetris", "published"),
    ),
    Section(
        "errors",
        "Wrong estimates",
        "TPC-H at load 0.95. All estimates of run times are wrong by the same share, or by a factor drawn "
        "for each stage (log-normal, sigma 0.5), or medians of the last runs.",
        TPCH,
        (
            *(Case(f"{error:+.0%}", NEAR_SATURATION, (f"{ESTIMATES}.bias={error}",)) for error in ERRORS),
            Case("noise 0.5", NEAR_SATURATION, (f"{ESTIMATES}.noise=0.5",)),
            Case("history", NEAR_SATURATION, (f"{ESTIMATES}.source=history",)),
        ),
        only(REFERENCE, OURS),
    ),
    Section(
        "demands",
        "Wrong demands",
        "TPC-H at load 0.95 by what tasks need; all request so much less or more than that, and hold what "
        "they request. Run times are as estimated, so tasks that request too little slow no others here, as "
        "they would on a machine. The paper has errors of demands and run times together: its factors over "
        "DRF are 1.00, 0.98, 1.57, 1.54 and 1.64 at -50, -25, 0, 25 and 50 %.",
        TPCH,
        tuple(
            Case(f"{error:+.0%}", NEAR_SATURATION, (f"workload.dags.mix={mix(error)}",))
            for error in (-0.5, -0.25, 0.25, 0.5)
        ),
        only(REFERENCE, OURS),
    ),
    Section(
        "failures",
        "Failures",
        "TPC-H at load 0.95, each attempt of a task fails with this probability.",
        TPCH,
        (Case("2 %", NEAR_SATURATION, ("workload.dags.failures=0.02",)),),
        only(REFERENCE, OURS),
    ),
    Section(
        "speeds",
        "Speeds 1 : 2 : 4 : 8",
        "TPC-H on machines of four speeds. Work is the same; only `rosella` learns speeds.",
        TPCH,
        (Case("load 0.7", 0.7), Case("load 0.95", NEAR_SATURATION)),
        only(OURS, "drf-rosella", "srtf-rosella", LEARNED),
        speeds=(1, 2, 4, 8),
    ),
)
