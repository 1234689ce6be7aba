"""`make bench`: the pace of a decision, of the simulator, and the match with kube-scheduler."""

import argparse
import sys
from collections.abc import Sequence

import orjson

from eclectus.policies.table import PLACE
from eclectus_bench import decisions, match, simulator
from eclectus_bench.decisions import DecisionCost
from eclectus_bench.match import OUTPUT, Sizes
from eclectus_bench.report import compare, comparison_table, decisions_table, report
from eclectus_bench.simulator import SimulatorCost
from eclectus_e2e.errors import E2EError
from eclectus_e2e.progress import Progress

SIZES, QUICK_SIZES = (500, 5_000, 15_000), (500, 5_000)
FULL = Sizes(nodes=5_000, pods=5_000, pairs=3, stream_seconds=15.0)
QUICK = Sizes(nodes=500, pods=1_000, pairs=1, stream_seconds=5.0)
TASKS, QUICK_TASKS = 1_000_000, 20_000
PARTS = ["decisions", "simulator", "match"]
PROFILED = "rosella"  # the default policy


def main(arguments: Sequence[str]) -> int:
    """Measure, print, write build/bench/report.json. Exits 0 whatever the figures are."""
    options = _options(arguments)
    OUTPUT.mkdir(parents=True, exist_ok=True)
    course = _course(options)
    if options.profile:
        return _profile(course)
    wanted = [options.only] if options.only else PARTS
    costs = _decide(QUICK_SIZES if options.quick else SIZES) if "decisions" in wanted else []
    simulated = _simulate(options.tasks or (QUICK_TASKS if options.quick else TASKS), "simulator" in wanted)
    result = None
    if "match" in wanted:
        print(f"\n{course.pods:,} pods on {course.nodes:,} nodes, {course.pairs} pairs", flush=True)
        result = match.run_match(course)
        print("\n" + "\n".join(comparison_table(compare(result))))
    file = OUTPUT / "report.json"
    file.write_bytes(orjson.dumps(report(course, costs, result, simulated), option=orjson.OPT_INDENT_2))
    print(f"\nwritten: {file}")
    return 0


def _decide(sizes: Sequence[int]) -> list[DecisionCost]:
    with Progress("decisions") as progress:
        costs: list[DecisionCost] = []
        for policy in PLACE:
            progress.say(policy)
            costs += decisions.measure(policy, sizes)
    print("\n".join(decisions_table(costs)), flush=True)
    return costs


def _simulate(tasks: int, wanted: bool) -> SimulatorCost | None:
    if not wanted:
        return None
    with Progress("simulator") as progress:
        progress.say(f"{tasks:,} tasks")
        cost = simulator.measure(tasks)
    print("\n".join(simulator.lines(cost)), flush=True)
    return cost


def _profile(course: Sizes) -> int:
    file = OUTPUT / "profile-decisions.txt"
    decisions.profile(PROFILED, course.nodes, file)
    simulated = OUTPUT / "profile-simulator.txt"
    simulator.profile(simulated)
    print(f"written: {file}\nwritten: {simulated}\nwritten: {match.profile(course)}")
    return 0


def _course(options: argparse.Namespace) -> Sizes:
    base = QUICK if options.quick else FULL
    return Sizes(
        nodes=options.nodes or base.nodes,
        pods=options.pods or base.pods,
        pairs=options.pairs or base.pairs,
        stream_seconds=base.stream_seconds,
    )


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("eclectus_bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a small course, to see that it runs: a minute")
    parser.add_argument("--only", choices=PARTS, help="one part of it")
    parser.add_argument("--nodes", type=_positive, help=f"of the match; {FULL.nodes:,} by default")
    parser.add_argument("--pods", type=_positive, help=f"of a backlog; {FULL.pods:,} by default")
    parser.add_argument("--pairs", type=_positive, help=f"drains and streams each; {FULL.pairs} by default")
    parser.add_argument("--tasks", type=_positive, help=f"of the simulator; {TASKS:,} by default")
    parser.add_argument(
        "--profile", action="store_true", help="do not measure: show where Eclectus' own time goes"
    )
    return parser.parse_args(arguments)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number above 0")
    return number


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except E2EError as problem:
        print(f"error: {problem}", file=sys.stderr)
        sys.exit(1)
