"""`make rosella`: the paper's comparison and its two laws, written as docs/results/rosella.md."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean

from eclectus import __version__
from eclectus.maths.load import error_aimed
from eclectus.maths.student import half_width
from eclectus_bench.processes import in_processes
from eclectus_bench.profiles import Runs, cell, measure, parser_of, publish
from eclectus_bench.rosella import learning, queues
from eclectus_bench.rosella.learning import Learned, LearningCase, learn
from eclectus_bench.rosella.queues import CONTESTANTS, LAWS, QueueCase, expected_longest, longest_queue
from eclectus_bench.rosella.sizes import AT_LOADS, AT_NODES, QUICK, SETTINGS, Size
from eclectus_e2e.paths import CHECKOUT
from eclectus_e2e.progress import Progress

SCENARIO, BASELINE, PAPER = "related", "sparrow", "paper"
DAYS = LearningCase("paper", 100, 0.9, 1).window / 0.9 / (24 * 60)
ORDER, OURS_MOST = list(learning.LEARNERS), learning.LEARNERS["eclectus"].most
OF_PAPER = 0.35  # its response time is 65 % less than Sparrow's, at a load that it does not state
MEANS = {
    "sparrow": "`place: sparrow`: a job of m tasks has 2 m reservations on random nodes",
    "pot": "`place: {policy: pot, queue: lines}`: the shorter queue of two uniform draws",
    "pss": "`place: pss`: one draw in proportion to speed, learned as in the paper",
    "paper": "`place: {policy: rosella, mode: paper}`: the paper's two draws, and its learner",
    "eclectus": "the default: one central queue, planned again at every event, by learned speeds",
}
INTRODUCTION = """\
# Rosella: what its paper claims, measured

Written by `make rosella`; change `scenarios/related.yaml` or `bench/eclectus_bench/rosella`, not this page.
Q. Wu, Z. Liu, "Rosella: A Self-Driving Distributed Scheduler for Heterogeneous Clusters" (arXiv 2010.15206)
claims a response time 65 % below Sparrow's on 32 machines and a longest queue that grows as log log n where
it grew as log n, and has a learner whose windows follow from the load and the number of machines. Here are
all three, in the simulator: exponential sizes, one slot a machine, messages that take no time. Everything is
learned from nothing unless it says that speeds are known. Means over runs ± half of Student's 95 % interval.
[What Eclectus' own rules cost and gain](rosella-rules.md) is another page."""
RESPONSES = """
## Responses on related speeds

32 machines (scenario `related`), first half of them three times as fast as the others: with more of a
difference two uniform choices, and so Sparrow with single tasks, are not stable at every load. Then eight
each of speeds 1, 2, 4 and 8, where they are not from a load of 0.8 on: a half of the machines, with a fifth
of all speed, then gets a quarter of all tasks. There their queues grow for as long as a run lasts.
Mean response of jobs, from arrival to the end of the last task, over that of `sparrow` with the same jobs;
the row `sparrow` is in seconds. Lower is better."""
QUEUES = f"""
## The longest queue against the number of machines

Half of the machines are twice as fast as the others, the load is {queues.LOAD}. The longest queue of all
machines, the running task included, in the mean over time; speeds are known, so that only the choice counts.
*Law* is what independent queues have with P(Q >= i) = a^i for one choice, and a^(2^i - 1) for two, both in
proportion to speed; `pot`, which draws uniformly, has the second on machines of one speed. *Exponent* is b of
c (ln n)^b, near 1 for log n and small for log log n; *slope* is that on the scale on which the law is a
straight line."""
LEARNING = f"""
## Learning time against load and against the number of machines

The same machines. `paper` has the windows of the paper, L = 4 ln n / (.3 (1 - a))^2 samples for exponential
times, `eclectus` the default of at most {OURS_MOST}. A machine is learned once it has ended L tasks, and
*time* is when all machines are, in mean times of a task on a slow machine: for pods of a minute, minutes.
Tasks are placed by one choice in proportion to speed, which keeps all machines equally busy, so that a slow
one is learned at *L / a* in the mean. *Error* is the largest of all machines then; the paper aims at
.3 (1 - a)."""

WHY_JOBS = """
Sparrow's reservations are for whichever task of the job is next when a machine is free, so with jobs of many
tasks a slow machine starts fewer of them. The paper's draws are made for each task as it arrives, and the
task stays where it was sent: that costs the more, the more tasks a job has, as the last one counts."""
ON_QUEUES = """
The paper's O(log n) is the law of one choice and its O(log log n) that of two. Laws have ties at random, and
`paper` gives them to the faster machine; `pot` knows no speeds and loads the slow machines more, so it begins
higher and grows alike. The default has no queues at machines: pods wait in one queue, and none is bound
before it can start."""
ON_LEARNING = f"""
With the paper's windows the time grows with (1 - a)^-2 and with ln n: at load 0.9 and 100 machines L / a is
{DAYS:.0f} days of pods of a minute. With the default's cap it depends on neither, but for chance: the last of
many machines is later than the mean one, which counts the more, the fewer samples there are. The price is an
error of the same size at any load; two choices bear a third (`tests/oracles/test_errors.py`)."""


@dataclass(frozen=True)
class Facts:
    """Version, runs of each figure, and tasks of a run of the first section."""

    eclectus: str
    seeds: int
    tasks: int


Responses = Mapping[tuple[tuple[int, ...], int, float], Runs]
"""By speeds, tasks a job and load."""

Longest = Mapping[QueueCase, float]
Times = Mapping[LearningCase, Learned]


def page(facts: Facts, responses: Responses, longest: Longest, times: Times) -> str:
    """The whole page."""
    lines = [
        INTRODUCTION,
        f"\nEclectus {facts.eclectus}; {facts.seeds} runs for each figure.",
        RESPONSES,
        f"{facts.tasks:,} tasks a run, of which the first 30 % are not measured.\n",
        "| row | policies |\n|---|---|",
        *(f"| `{name}` | {what} |" for name, what in MEANS.items()),
        *response_lines(responses),
        "",
        *(says(speeds, responses) for speeds in dict.fromkeys(speeds for speeds, _, _ in responses)),
        WHY_JOBS,
        QUEUES,
        *queue_lines(longest),
        ON_QUEUES,
        LEARNING,
        *learning_lines(times),
        ON_LEARNING,
    ]
    return "\n".join(lines) + "\n"


def response_lines(responses: Responses) -> Iterator[str]:
    """For each set of speeds a row for each profile, and what the paper has."""
    for speeds in dict.fromkeys(speeds for speeds, _, _ in responses):
        of = {(tasks, load): runs for (its, tasks, load), runs in responses.items() if its == speeds}
        heads = [f"{_jobs(tasks)}, load {load:g}" for tasks, load in of]
        yield f"\n| speeds {' : '.join(map(str, speeds))} | {' | '.join(heads)} |"
        yield f"|---|{'---:|' * len(heads)}"
        for name in MEANS:
            yield f"| `{name}` | {' | '.join(_response(name, runs) for runs in of.values())} |"
        of_paper = ("" if tasks > 1 else f"{OF_PAPER:.2f}" for tasks, _ in of)
        yield f"| the paper's figure for `{PAPER}` | {' | '.join(of_paper)} |"


def says(speeds: tuple[int, ...], responses: Responses) -> str:
    """Where the paper's policy differs from its figure, at the highest load."""
    of = {(tasks, load): runs for (its, tasks, load), runs in responses.items() if its == speeds}
    load = max(load for _, load in of)
    alone, many = (of[tasks, load] for tasks in (min(each for each, _ in of), max(each for each, _ in of)))
    gains = fmean(_ratios(PAPER, alone)) - (half_width(_ratios(PAPER, alone)) or 0.0) <= OF_PAPER
    return (
        f"With speeds {' : '.join(map(str, speeds))}, at load {load:g}, `{PAPER}` takes "
        f"{_response(PAPER, alone)} of `{BASELINE}`'s time for single tasks, "
        f"{'as' if gains else '**not**'} the paper's {OF_PAPER:.2f}, and {_response(PAPER, many)} for jobs."
    )


def _ratios(name: str, runs: Runs) -> list[float]:
    return [run.jobs.mean / other.jobs.mean for run, other in zip(runs[name], runs[BASELINE], strict=True)]


def _jobs(tasks: int) -> str:
    return "single tasks" if tasks == 1 else f"jobs of {tasks}"


def _response(name: str, runs: Runs) -> str:
    if name == BASELINE:
        return cell([run.jobs.mean for run in runs[name]], 2) + " s"
    return cell(_ratios(name, runs), 2)


def queue_lines(longest: Longest) -> Iterator[str]:
    """For each policy what was measured, and its law."""
    sizes = sorted({case.nodes for case in longest})
    heads = [*(f"n = {nodes:,}" for nodes in sizes), "exponent", "slope, on the scale of"]
    yield f"\n| | {' | '.join(heads)} |\n|---|{'---:|' * len(heads)}"
    for policy, contestant in CONTESTANTS.items():
        runs, law = _by_seed(policy, sizes, longest), contestant.law
        of_scale = partial(queues.growth, law, nodes=sizes)
        of_power = partial(queues.exponent, nodes=sizes)
        cells = [cell([run[at] for run in runs], 2) for at in range(len(sizes))]
        cells += [cell(list(map(fit, runs)), 2) for fit in (of_power, of_scale)]
        yield f"| `{policy}` | {' | '.join(cells)}, {law.scale_name} |"
    for law in LAWS:
        expected = [expected_longest(law.tail, nodes) for nodes in sizes]
        fits = (queues.exponent(expected, sizes), queues.growth(law, expected, sizes))
        cells = [f"{value:.2f}" for value in (*expected, *fits)]
        yield f"| law of {law.name} | {' | '.join(cells)}, {law.scale_name} |"


def _by_seed(policy: str, sizes: Sequence[int], longest: Longest) -> list[list[float]]:
    seeds = {case.seed for case in longest}
    found = {(case.seed, case.nodes): value for case, value in longest.items() if case.policy == policy}
    return [[found[seed, nodes] for nodes in sizes] for seed in sorted(seeds)]


def learning_lines(times: Times) -> Iterator[str]:
    """A row for each learner, number of machines and load; then the exponents."""
    yield "\n| | machines | load | L | L / a | time | error, % | the paper aims at, % |"
    yield f"|---|{'---:|' * 7}"
    for (learner, nodes, load), cases in _alike(times).items():
        window = cases[0].window
        cells = [
            f"{nodes} | {load:g} | {window:,} | {window / load:,.0f}",
            cell([times[case].times for case in cases], 0),
            cell([100 * times[case].error for case in cases], 1),
            f"{100 * error_aimed(load):.0f}",
        ]
        yield f"| `{learner}` | {' | '.join(cells)} |"
    yield "\n| exponent | by the paper's window | `paper` | `eclectus` |\n|---|---:|---:|---:|"
    for what, law, exponents in (
        ("b of time x a = c (1 - a)^-b", 2, _of_loads),
        ("b of time = c (ln n)^b", 1, _of_nodes),
    ):
        cells = [cell(exponents(times, learner), 2) for learner in learning.LEARNERS]
        yield f"| {what} | {law} | {' | '.join(cells)} |"


def _alike(times: Times) -> dict[tuple[str, int, float], list[LearningCase]]:
    """The cases that differ in their seeds alone."""
    found = dict[tuple[str, int, float], list[LearningCase]]()
    for case in sorted(times, key=lambda case: (ORDER.index(case.learner), case.nodes, case.load, case.seed)):
        found.setdefault((case.learner, case.nodes, case.load), []).append(case)
    return found


def _of_loads(times: Times, learner: str) -> list[float]:
    """An exponent for each seed."""
    of = [some for (name, nodes, _), some in _alike(times).items() if (name, nodes) == (learner, AT_LOADS)]
    loads = [some[0].load for some in of]
    by_seed = zip(*([times[case].times for case in some] for some in of), strict=True)
    return [learning.exponent_of_load(run, loads) for run in by_seed]


def _of_nodes(times: Times, learner: str) -> list[float]:
    """An exponent for each seed."""
    of = [some for (name, _, load), some in _alike(times).items() if (name, load) == (learner, AT_NODES)]
    nodes = [some[0].nodes for some in of]
    by_seed = zip(*([times[case].times for case in some] for some in of), strict=True)
    return [learning.exponent_of_nodes(run, nodes) for run in by_seed]


FILE = CHECKOUT / "docs" / "results" / "rosella.md"


def main(arguments: Sequence[str] = ()) -> int:
    """Measure, print and write; a short version (`--quick`) is printed alone."""
    options = parser_of("make rosella", __doc__).parse_args(arguments)
    size = QUICK if options.quick else Size(options.seeds)
    with Progress("rosella", expected="a minute" if options.quick else "10 minutes") as progress:
        found = measure(
            SCENARIO, size.parts(), options.jobs, lambda done: progress.update(f"responses: {done}")
        )
        queue_cases, learning_cases = size.queue_cases(), size.learning_cases()
        longest = in_processes(
            longest_queue, queue_cases, options.jobs, lambda done: progress.update(f"queues: {done}")
        )
        learned = in_processes(
            learn, learning_cases, options.jobs, lambda done: progress.update(f"learning: {done}")
        )
    text = page(
        Facts(__version__, size.seeds, size.tasks),
        dict(zip(SETTINGS, found, strict=True)),
        dict(zip(queue_cases, longest, strict=True)),
        dict(zip(learning_cases, learned, strict=True)),
    )
    publish(text, FILE, is_short=options.quick)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
