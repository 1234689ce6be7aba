"""What is measured: a section of the page for each question, with the jobs and contestants of its cases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from eclectus_bench.carbyne.contestants import (
    ABLATION,
    BOUNDED,
    LEARNED,
    OURS,
    REFERENCE,
    Contestant,
    only,
)

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


TPCH = Jobs(
    "TPC-H",
    ("tpch-dags/cloudlab_22query_tpch_profiles.json.gz", "tpch-dags/queries.yaml.gz"),
    # Four kinds of tasks, because the profiles have no memory: of a machine 1/20 or 1/10 in each resource.
    f"format: tpch, size: 50g, cores: 50, shrink: {SCALE}, "
    "mix: [{requests: {cpu: 1, memory: 2Gi}}, {requests: {cpu: 1, memory: 12Gi}}, "
    "{requests: {cpu: 2, memory: 4Gi}}, {requests: {cpu: 1, memory: 6Gi}}]",
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
ERRORS = (-0.5, 0.5)
ESTIMATES = "workload.dags.estimates"

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
        "errors",
        "Wrong estimates",
        "TPC-H at load 0.95. All estimates are wrong by the same share, or by a factor drawn for each stage "
        "(log-normal, sigma 0.5), or medians of the last runs.",
        TPCH,
        (
            *(Case(f"{error:+.0%}", NEAR_SATURATION, (f"{ESTIMATES}.bias={error}",)) for error in ERRORS),
            Case("noise 0.5", NEAR_SATURATION, (f"{ESTIMATES}.noise=0.5",)),
            Case("history", NEAR_SATURATION, (f"{ESTIMATES}.source=history",)),
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
