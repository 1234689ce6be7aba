"""`make bench`: the cost of a decision and of a simulated task, and the comparison with kube-scheduler."""

import argparse
import sys
from collections.abc import Sequence

import orjson

from eclectus.policies.table import PLACE
from eclectus_bench import decisions, match, simulator, startup
from eclectus_bench.decisions import DecisionCost
from eclectus_bench.match import OUTPUT, Sizes
from eclectus_bench.report import compare, comparison_table, decisions_table, report
from eclectus_bench.simulator import SimulatorCost
from eclectus_e2e.errors import E2EError
from eclectus_e2e.progress import Progress

NODE_COUNTS, QUICK_NODE_COUNTS = (500, 5_000, 15_000), (500, 5_000)
FULL = Sizes(nodes=5_000, pods=5_000, pairs=3, stream_seconds=15.0)
QUICK = Sizes(nodes=500, pods=1_000, pairs=1, stream_seconds=5.0)
TASKS, QUICK_TASKS = 1_000_000, 20_000
PARTS = ["decisions", "simulator", "match", "startup"]
PROFILED = "rosella"  # the default policy


def main(arguments: Sequence[str]) -> int:
    """Measure, print, write build/bench/report.json. Returns 0 whatever the figures are."""
    options = _options(arguments)
    OUTPUT.mkdir(parents=True, exist_ok=True)
    sizes = _sizes(options)
    if options.profile:
        return _profile(sizes)
    wanted = [options.only] if options.only else PARTS
    node_counts = QUICK_NODE_COUNTS if options.quick else NODE_COUNTS
    costs = _measure_decisions(node_counts) if "decisions" in wanted else []
    tasks = options.tasks or (QUICK_TASKS if options.quick else TASKS)
    simulated = _measure_simulator(tasks) if "simulator" in wanted else None
    result = None
    if "match" in wanted:
        print(f"\n{sizes.pods:,} pods on {sizes.nodes:,} nodes, {sizes.pairs} pairs", flush=True)
        result = match.run_match(sizes)
        print("\n" + "\n".join(comparison_table(compare(result))))
    if "startup" in wanted:
        print("\n" + "\n".join(startup.lines(startup.measure(1 if options.quick else 5))), flush=True)
    file = OUTPUT / "report.json"
    file.write_bytes(orjson.dumps(report(sizes, costs, result, simulated), option=orjson.OPT_INDENT_2))
    print(f"\nwritten: {file}")
    return 0


def _measure_decisions(node_counts: Sequence[int]) -> list[DecisionCost]:
    with Progress("decisions") as progress:
        costs: list[DecisionCost] = []
        for policy in PLACE:
            progress.update(policy)
            costs += decisions.measure(policy, node_counts)
    print("\n".join(decisions_table(costs)), flush=True)
    return costs


def _measure_simulator(tasks: int) -> SimulatorCost:
    with Progress("simulator") as progress:
        progress.update(f"{tasks:,} tasks")
        cost = simulator.measure(tasks)
    print("\n".join(simulator.lines(cost)), flush=True)
    return cost


def _profile(sizes: Sizes) -> int:
    file = OUTPUT / "profile-decisions.txt"
    decisions.profile(PROFILED, sizes.nodes, file)
    simulated = OUTPUT / "profile-simulator.txt"
    simulator.profile(simulated)
    print(f"written: {file}\nwritten: {simulated}\nwritten: {match.profile(sizes)}")
    return 0


def _sizes(options: argparse.Namespace) -> Sizes:
    base = QUICK if options.quick else FULL
    return Sizes(
        nodes=options.nodes or base.nodes,
        pods=options.pods or base.pods,
        pairs=options.pairs or base.pairs,
        stream_seconds=base.stream_seconds,
    )


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("eclectus_bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, to check that it runs: a minute")
    parser.add_argument("--only", choices=PARTS, help="measure one part (all: about ten minutes)")
    parser.add_argument("--nodes", type=_positive, help=f"nodes of the match; {FULL.nodes:,} by default")
    parser.add_argument("--pods", type=_positive, help=f"pods of a backlog; {FULL.pods:,} by default")
    parser.add_argument(
        "--pairs", type=_positive, help=f"number of drains and of streams; {FULL.pairs} by default"
    )
    parser.add_argument("--tasks", type=_positive, help=f"tasks of the simulator; {TASKS:,} by default")
    parser.add_argument(
        "--profile", action="store_true", help="do not measure, but profile Eclectus: where its time goes"
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
