"""`make rivals`: Eclectus beside kube-scheduler as administrators set it for nodes of different speeds.

The pods and nodes of the short demo on held-out streams, written to docs/results/rivals.md. Nodes carry
their speed as a label, which only the affinity that some rivals add to every pod names.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from eclectus import __version__
from eclectus.sim.runs import RunSpec
from eclectus.sim.scenario import shipped_scenarios
from eclectus_bench.held_out import MEAN, MEDIAN, MET, P99, SEEDS, Figure, Ratio, Runs, ratio_of, simulate
from eclectus_bench.profiles import parser_of, publish
from eclectus_e2e.demo.workload.pods import PREFERENCE_WEIGHT
from eclectus_e2e.paths import CHECKOUT

SCENARIO = "short-demo"
BASELINE, OURS = "least-allocated", "eclectus"
LABEL = "speed"
RATES = {0.6: 14.64, 0.8: 19.53, 0.9: 21.97}  # load of the demo's nodes -> pods a second
FIGURES: Sequence[Figure] = (MEAN, MEDIAN, P99, MET)
HEADS = ("mean response", "median", "p99", "preferences met")


def _affinity(weights: Mapping[tuple[int, ...], int]) -> Mapping[str, Any]:
    """Preferred node affinity of every pod; `weights`: speeds -> weight."""
    preferred = [
        {
            "weight": weight,
            "preference": {
                "matchExpressions": [{"key": LABEL, "operator": "In", "values": [f"{each}" for each in some]}]
            },
        }
        for some, weight in weights.items()
    ]
    return {"addedAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}


BY_SPEED = _affinity({(8,): 100, (4,): 50, (2,): 25})


@dataclass(frozen=True)
class Rival:
    """A profile, and what it is."""

    what: str
    settings: Mapping[str, Any]


RIVALS = {
    BASELINE: Rival(
        "kube-scheduler's score of free cpu and memory, ties at random: what the ratios are over",
        {"place": {"policy": "least-allocated", "ties": "random"}},
    ),
    OURS: Rival("Eclectus' default, which starts with nothing learned and reads no label of speed", {}),
    "kube": Rival("all scores of kube-scheduler, with their weights", {"place": {"policy": "kube"}}),
    "kube-fast": Rival(
        "`kube`, and every pod prefers nodes labelled with speed 4 or 8, by weight 50",
        {"place": {"policy": "kube"}, **_affinity({(4, 8): 50})},
    ),
    "kube-weighted": Rival(
        "`kube`, and every pod prefers nodes by their speed: 8 by weight 100, 4 by 50, 2 by 25",
        {"place": {"policy": "kube"}, **BY_SPEED},
    ),
    "packing": Rival(
        "RequestedToCapacityRatio alone: the fuller a node, the better; here the same as `most-allocated`",
        {"place": {"policy": "requested-to-capacity-ratio", "ties": "random"}},
    ),
    "packing-weighted": Rival(
        "`packing`, and every pod prefers nodes by their speed as in `kube-weighted`",
        {"place": {"policy": "requested-to-capacity-ratio", "ties": "random"}, **BY_SPEED},
    ),
}


@dataclass(frozen=True)
class Case:
    """Whether nodes change speeds half-way, after which labels are wrong; and the load."""

    changes: bool
    load: float

    @property
    def what(self) -> str:
        """The cell of a table."""
        return f"{'change half-way' if self.changes else 'stay'}, {self.load:g}"


CASES = tuple(Case(changes, load) for changes in (False, True) for load in RATES)
Tables = Mapping[Case, Runs]

INTRODUCTION = f"""\
# Rivals as administrators have them

Written by `make rivals`; change `bench/eclectus_bench/rivals.py`, not this page. The twelve nodes of the
[demo](demo.md), of speeds 1 : 2 : 4 : 8, and its pods, in the simulator: streams of 100 s on which nothing
was tuned. Who knows nodes can label them by speed and let every pod prefer the fast ones. Labels are right
where speeds stay; where fast and slow nodes trade speeds after 50 s they are those from before, which
nobody has corrected. A pod's own preferences have weight {PREFERENCE_WEIGHT}, and only those count as
preferences met.

All figures are ratios to `{BASELINE}` on the same stream: the mean over streams ± half of Student's 95 %
interval. Below 1 is better, except for preferences met. **Bold** is worse than `{BASELINE}` by more than the
interval."""


def page(seeds: int, tables: Tables) -> str:
    """The whole page."""
    lines = [
        INTRODUCTION,
        f"\nEclectus {__version__}; {seeds} streams at each load.\n",
        "| profile | what it is |\n|---|---|",
        *(f"| `{name}` | {rival.what} |" for name, rival in RIVALS.items()),
        f"\n| speeds, load | profile | {' | '.join(HEADS)} |\n|---|---|{'---:|' * len(HEADS)}",
        *(line for case, runs in tables.items() for line in _rows(case, runs)),
        "\n## Where a rival is better than Eclectus\n",
        f"By the ratio of the rival to `{OURS}` on the same stream, where its interval leaves out 1.\n",
        "| speeds, load | figure | better |\n|---|---|---|",
        *(line for case, runs in tables.items() for line in _losses(case, runs)),
    ]
    return "\n".join(lines) + "\n"


def _ratios(runs: Runs, name: str, other: str) -> list[Ratio]:
    pairs = list(zip(runs[name], runs[other], strict=True))
    return [ratio_of(figure, pairs) for figure in FIGURES]


def _rows(case: Case, runs: Runs) -> Iterator[str]:
    for name in runs:
        if name != BASELINE:
            ratios = _ratios(runs, name, BASELINE)
            cells = (f"**{each}**" if each.verdict == "lost" else f"{each}" for each in ratios)
            yield f"| {case.what} | `{name}` | {' | '.join(cells)} |"


def _losses(case: Case, runs: Runs) -> Iterator[str]:
    over = {name: _ratios(runs, name, OURS) for name in runs if name != OURS}
    for at, head in enumerate(HEADS):
        won = [f"`{name}` {each[at]}" for name, each in over.items() if each[at].verdict == "won"]
        if won:
            yield f"| {case.what} | {head} | {', '.join(won)} |"


def scenario_text(case: Case) -> str:
    """The short demo with a label of speed on each node, at the load of the case, and all rivals."""
    document = yaml.safe_load(shipped_scenarios()[SCENARIO].read_text(encoding="utf-8"))
    for group in document["cluster"]["groups"]:
        group["labels"][LABEL] = f"{group['speed']}"
    if not case.changes:
        del document["events"]
    stream = document["workload"]["poisson"]
    stream["rate"] = RATES[case.load]
    for each in stream["classes"]:
        for preference in each.get("preferences", ()):
            preference["weight"] = PREFERENCE_WEIGHT
    document["profiles"] = [{"schedulerName": name, **rival.settings} for name, rival in RIVALS.items()]
    return yaml.safe_dump(document, sort_keys=False)


def measure(case: Case, seeds: Sequence[int], processes: int, changes: tuple[str, ...] = ()) -> Runs:
    """The runs of all rivals. Raises EclectusError if one fails."""
    text, folder = scenario_text(case), shipped_scenarios()[SCENARIO].parent
    specs = [RunSpec(text, folder, changes, name, seed) for name in RIVALS for seed in seeds]
    return simulate(f"speeds {case.what}", specs, processes)


FILE = CHECKOUT / "docs" / "results" / "rivals.md"


def main(arguments: Sequence[str] = ()) -> int:
    """Measure, print and write; a short version (`--quick`) is printed alone."""
    parser = parser_of("make rivals", __doc__)
    options = parser.parse_args(arguments)
    count = 2 if options.quick else options.seeds
    seeds = range(SEEDS.start, SEEDS.start + count)
    tables = {case: measure(case, seeds, options.jobs) for case in CASES}
    publish(page(count, tables), FILE, is_short=options.quick)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
