"""Constrained against unconstrained on the same trace: what constraints cost each policy of the paper.

The traces of the paper are not public, so each seed writes one in their line format: jobs of many sizes, of
which few are long and hold most of the work. Machine types and constraint sets are those of the scenario
`constraints`. A trace is run twice under each policy, once with `constraints`: the jobs are the same.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from random import Random

import yaml

from eclectus.sim.base.results import RunResult, Times
from eclectus.sim.runs import RunSpec
from eclectus.sim.scenario import shipped_scenarios
from eclectus_bench.clocks import clocks
from eclectus_bench.phoenix.cases import CENTRAL, CUT_OFF, DISTRIBUTED, RECORDED
from eclectus_bench.phoenix.measure import Measured, Size, completed, interval

NAMES = ("phoenix", "eagle-c-crv", "eagle-c-wait", "eagle-c", "hawk-c", "sparrow-c")
OWN = "eagle-c-crv"  # the paper's own form of Phoenix
LOAD = 0.9
LEAST_SECONDS = 0.01
SHORT = "short"
GROUPS = "length+constrained"
PICTURE = """
![How long tasks of constrained and of free jobs wait, by policy](../pictures/phoenix-waits.png)
"""


@dataclass(frozen=True)
class JobKind:
    """Part of the jobs; numbers of tasks and mean durations of jobs are exponential around these."""

    share: float
    tasks: float
    seconds: float


KINDS = (JobKind(0.9, 10, 5.0), JobKind(0.1, 20, 100.0))


def trace_lines(size: Size, seed: int) -> Iterator[str]:
    """A job a line; submit times are such that the work is `LOAD` of what the workers can do."""
    chance, jobs, at, tasks, work = Random(seed), [], 0.0, 0, 0.0
    while tasks < size.tasks:
        at += chance.expovariate(1.0)
        kind = chance.choices(KINDS, [each.share for each in KINDS])[0]
        mean = max(chance.expovariate(1.0 / kind.seconds), LEAST_SECONDS)
        count = max(round(chance.expovariate(1.0 / kind.tasks)), 1)
        sizes = [max(chance.expovariate(1.0 / mean), LEAST_SECONDS) for _ in range(count)]
        jobs.append((at, mean, sizes))
        tasks, work = tasks + count, work + sum(sizes)
    stretch = work / (LOAD * size.workers * at)
    for moment, mean, sizes in jobs:
        durations = " ".join(f"{each:.3f}" for each in sizes)
        yield f"{moment * stretch:.3f} {len(sizes)} {mean:.3f} {durations}\n"


def scenario_text(size: Size, trace: str, is_constrained: bool) -> str:
    """The scenario of one trace, with or without the sets of `constraints`."""
    shipped = yaml.safe_load(shipped_scenarios()["constraints"].read_text(encoding="utf-8"))
    sets = shipped["workload"]["poisson"]["constraints"] if is_constrained else None
    contestants = CENTRAL | DISTRIBUTED | RECORDED
    return yaml.safe_dump(
        {
            **shipped,
            "cluster": shipped["cluster"] | {"groups": [{"name": "node", "count": size.workers}]},
            "workload": {"jobtrace": {"file": trace, "cutOff": CUT_OFF, "constraints": sets}},
            "profiles": [{"schedulerName": name, **contestants[name].profile} for name in NAMES],
            "measure": {"groups": ["length", GROUPS], "cutOff": CUT_OFF},
            "allowUnstable": True,  # what some sets need may be more than their nodes can do for a while
        }
    )


@dataclass(frozen=True)
class Pair:
    """One trace under one policy."""

    constrained: RunResult
    plain: RunResult


TEXT = """\
The traces of the paper (Google, Cloudera, Yahoo) are not published with it. Each seed writes one in their
line format: Poisson arrivals, numbers of tasks and mean durations of jobs exponential, durations of tasks
exponential around their job's mean, which is all that policies see of them. Every policy runs a trace twice,
once with the sets of scenario `constraints` drawn by half of the jobs. Policies of the papers have no
`waitLimit`."""
REMARK = """\
Free short tasks wait here too, since most of the work is long: that may be why constraints add less than in
the paper, whose loads and sets are not known. One central queue in order of arrival (`phoenix`) has no nodes
for short tasks alone, as Hawk and Eagle have, and its short tasks wait longer than under `eagle-c-crv`."""
OF_COSTS = """
Short jobs and their tasks, with constraints **over** without, trace by trace; empty where hardly anything
waits without. The paper's text has 1.7 times the p99 and 2 to 2.5 times the queueing under Eagle-C, and about
20 times under Hawk-C and Sparrow-C.
"""
OF_WAITS = f"""
Waits of short tasks in the runs with constraints, in seconds, of constrained and of free jobs; and the mean
wait of short tasks and the p99 of short jobs over those of `{OWN}`, the paper's form of Phoenix.
"""


@dataclass(frozen=True)
class Part:
    """A section of the page: these policies, at this size."""

    name: str  # for --only
    title: str
    text: str
    policies: tuple[str, ...]
    size: Size
    remark: str  # on what was found
    is_drawn: bool = False  # the distribution of its waits


PARTS = (
    Part("traces", "With and without constraints, on the same trace", TEXT, NAMES, Size(), REMARK, True),
    Part(
        "large",
        "As many workers as in the paper",
        "The same, once: Eagle-C, and the paper's form of Phoenix, which orders queues as Eagle does until\n"
        "four fifths of the slots are in use.",
        (OWN, "eagle-c"),
        Size(tasks=700_000, seeds=1, workers=15_000),
        "One run has no interval. More than four fifths of the slots are in use, and still both policies\n"
        "are equal in two digits: of so many workers some are free soon, hardly a short task waits, and\n"
        "in what order those few do changes nothing. Queues as the paper has them need more load, or\n"
        "fewer workers (above).",
    ),
)

Pairs = Mapping[str, Sequence[Pair]]
"""By policy, in the order of the seeds."""


@dataclass(frozen=True)
class Measurement:
    """The runs of a part, and what they took."""

    part: Part
    size: Size
    pairs: Pairs
    processor_minutes: float


def measure(part: Part, size: Size, processes: int, say: Callable[[str], None]) -> Measurement:
    """A pair of runs for each policy and each seed. Raises EclectusError if a run fails."""
    _, began = clocks()
    pairs = _pairs(part.policies, size, processes, say)
    return Measurement(part, size, pairs, clocks()[1] - began)


def _pairs(names: Sequence[str], size: Size, processes: int, say: Callable[[str], None]) -> Pairs:
    cases = list(product(names, range(1, size.seeds + 1), (True, False)))
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(1, size.seeds + 1):
            with (Path(folder) / f"{seed}.trace").open("w", encoding="utf-8") as out:
                out.writelines(trace_lines(size, seed))
        specs = [
            RunSpec(scenario_text(size, f"{seed}.trace", with_sets), Path(folder), (), name, seed)
            for name, seed, with_sets in cases
        ]
        runs = iter(completed("traces", specs, size, processes, say))
    pairs: dict[str, list[Pair]] = {name: [] for name in names}
    for name, _, with_sets in cases:
        if with_sets:
            pairs[name].append(Pair(next(runs), next(runs)))
    return pairs


# -- figures ---------------------------------------------------------------------------------------

Read = Callable[[Times], float]
READS: dict[str, Read] = {
    "mean": lambda times: times.mean,
    "p50": lambda times: times.p50,
    "p90": lambda times: times.p90,
    "p99": lambda times: times.p99,
}


def _short_jobs(run: RunResult) -> Times:
    return run.groups["length"][SHORT].jobs


def _short_waits(run: RunResult) -> Times:
    return run.groups["length"][SHORT].wait


def _ratio(pairs: Sequence[Pair], of: Callable[[RunResult], Times], read: Read) -> Measured | None:
    """With constraints over without, trace by trace; none where nothing waits without."""
    found = [(read(of(each.constrained)), read(of(each.plain))) for each in pairs]
    return interval([one / other if other else None for one, other in found])


@dataclass(frozen=True)
class Published:
    """A ratio of the paper and ours."""

    what: str
    paper: tuple[float, float]  # least and most
    ours: Measured | None

    def sentence(self) -> str:
        """Where the two differ, if there are runs enough to say."""
        least, most = self.paper
        of_paper = f"{self.what}: {least:g}" if least == most else f"{self.what}: {least:g} to {most:g}"
        if self.ours is None:
            return f"{of_paper} in the paper; nothing to compare here."
        if self.ours.half_width is None:
            return f"{of_paper} in the paper, {shown(self.ours)} in one run here."
        low, high = self.ours.mean - self.ours.half_width, self.ours.mean + self.ours.half_width
        verdict = "less"
        if low <= most and high >= least:
            verdict = "within the interval"
        elif high < 1.0:
            verdict = "**reversed**"
        elif low > most:
            verdict = "more"
        elif low <= 1.0:
            verdict = "no cost or gain that the interval shows"
        return f"{of_paper} in the paper, {shown(self.ours)} here: {verdict}."


def shown(value: Measured | None) -> str:
    """The figure with its interval."""
    if value is None:
        return ""
    return f"{value.mean:.2f}" + ("" if value.half_width is None else f" ±{value.half_width:.2f}")


COST_OF_P99 = {"eagle-c": (1.7, 1.7)}
COST_OF_WAITS = {"eagle-c": (2.0, 2.5), "hawk-c": (20.0, 20.0), "sparrow-c": (20.0, 20.0)}
OVER_PHOENIX = {"eagle-c": (1.9, 1.9), "hawk-c": (5.0, 5.0)}


def published(pairs: Pairs) -> Iterator[Published]:
    """Every figure of the paper that has one here."""
    for figures, what, ours in (
        (COST_OF_P99, "what constraints cost the p99 of short jobs", _cost_of_p99),
        (COST_OF_WAITS, "what they cost the mean wait of short tasks", _cost_of_waits),
        (OVER_PHOENIX, "p99 of short jobs over Phoenix's", _over),
    ):
        for name, paper in figures.items():
            if name in pairs:
                yield Published(f"`{name}`, {what}", paper, ours(pairs, name))


def _cost_of_p99(pairs: Pairs, name: str) -> Measured | None:
    return _ratio(pairs[name], _short_jobs, READS["p99"])


def _cost_of_waits(pairs: Pairs, name: str) -> Measured | None:
    return _ratio(pairs[name], _short_waits, READS["mean"])


def _over(pairs: Pairs, name: str) -> Measured | None:
    return _over_own(pairs, name, lambda run: _short_jobs(run).p99)


def _over_own(pairs: Pairs, name: str, read: Callable[[RunResult], float]) -> Measured | None:
    """A figure with constraints over that of the paper's form of Phoenix, trace by trace."""
    if OWN not in pairs:
        return None
    mine, own = ([read(each.constrained) for each in pairs[at]] for at in (name, OWN))
    return interval([one / other if other else None for one, other in zip(mine, own, strict=True)])


# -- tables ----------------------------------------------------------------------------------------


def section(done: Measurement) -> Iterator[str]:
    """The section of the page, with a sentence for each figure of the paper."""
    size, work = done.size, [each.share * each.tasks * each.seconds for each in KINDS]
    yield f"\n## {done.part.title}\n\n{done.part.text}\n"
    busy = [each.constrained.utilisation for mine in done.pairs.values() for each in mine]
    yield (
        f"{size.workers:,} workers of one slot and as much work as {LOAD:.0%} of them can do; "
        f"{size.seeds} x {size.tasks:,} tasks,\nof which the first 30 % are not measured. Clusters are empty "
        f"at first: in the measured time {min(busy):.0%} to {max(busy):.0%}\nof the slots are in use. "
        f"This took {done.processor_minutes:.0f} minutes of processor time."
    )
    yield ""
    for kind, part in zip(KINDS, work, strict=True):
        yield (
            f"- {kind.share:.0%} of the jobs: {kind.tasks:g} tasks of {kind.seconds:g} s in the mean, "
            f"{part / sum(work):.0%} of the work"
        )
    yield OF_COSTS
    yield from costs(done.pairs)
    yield OF_WAITS
    yield from waits(done.pairs)
    yield ""
    yield from (f"- {each.sentence()}" for each in published(done.pairs))
    yield f"\n{done.part.remark}"
    if done.part.is_drawn:
        yield PICTURE.rstrip()


def costs(pairs: Pairs) -> Iterator[str]:
    """With constraints over without."""
    yield (
        "| | p99 of short jobs | paper | mean wait | wait p90 | wait p99 | paper, waits |\n"
        "|---|---:|---:|---:|---:|---:|---:|"
    )
    for name, mine in pairs.items():
        of_waits = (shown(_ratio(mine, _short_waits, READS[each])) for each in ("mean", "p90", "p99"))
        cells = [
            shown(_cost_of_p99(pairs, name)),
            _range(COST_OF_P99.get(name)),
            *of_waits,
            _range(COST_OF_WAITS.get(name)),
        ]
        yield f"| `{name}` | {' | '.join(cells)} |"


def waits(pairs: Pairs) -> Iterator[str]:
    """Seconds that short tasks wait with constraints, and the p99 of their jobs over Phoenix's."""
    kinds = ("constrained", "free")
    heads = [f"{kind} {name}" for kind in kinds for name in ("p50", "p90", "p99")]
    yield f"| | {' | '.join(heads)} | mean wait over | p99 of short jobs over | paper |"
    yield f"|---|{'---:|' * (len(heads) + 3)}"
    for name, mine in pairs.items():
        groups = [each.constrained.groups[GROUPS] for each in mine]
        cells = [
            shown(interval([READS[which](group[f"{SHORT}, {kind}"].wait) for group in groups]))
            for kind in kinds
            for which in ("p50", "p90", "p99")
        ]
        if name != OWN:
            cells += [
                shown(_over_own(pairs, name, lambda run: _short_waits(run).mean)),
                shown(_over(pairs, name)),
                _range(OVER_PHOENIX.get(name)),
            ]
        else:
            cells += ["", "", ""]
        yield f"| `{name}` | {' | '.join(cells)} |"


def _range(paper: tuple[float, float] | None) -> str:
    return "" if paper is None else " to ".join(f"{each:g}" for each in dict.fromkeys(paper))
