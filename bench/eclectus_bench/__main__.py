"""`make bench`: the cost of decisions, steps and simulated tasks, and the comparison with kube-scheduler."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

import orjson

from eclectus.policies.table import PLACE
from eclectus_bench import decisions, engine, match, plans, preemption, simulator, startup
from eclectus_bench.decisions import DecisionCost
from eclectus_bench.engine import EngineCost
from eclectus_bench.match import OUTPUT, Result, Sizes
from eclectus_bench.plans import PlanCost
from eclectus_bench.report import (
    FLAT_MOST,
    compare,
    comparison_table,
    decisions_head,
    decisions_lines,
    report,
)
from eclectus_bench.simulator import SimulatorCost
from eclectus_e2e.errors import E2EError
from eclectus_e2e.progress import Progress
from eclectus_e2e.testbed.controlplane.build import CONTROL_PLANE, built


@dataclass(frozen=True)
class Course:
    """How much of each part is measured."""

    decisions: decisions.Course
    engine: engine.Course
    plans: plans.Course
    tasks: int  # of the simulator
    counted: int  # tasks of which the simulator's bytecodes are counted
    match: Sizes
    preemption: preemption.Sizes
    starts: int  # of each scheduler


FULL = Course(
    decisions=decisions.FULL,
    engine=engine.FULL,
    plans=plans.FULL,
    tasks=1_000_000,
    counted=simulator.COUNTED_TASKS,
    match=Sizes(nodes=5_000, pods=5_000, pairs=3, stream_seconds=15.0),
    preemption=preemption.Sizes(nodes=5_000, preemptors=2_000),
    starts=5,
)
QUICK = Course(
    decisions=decisions.QUICK,
    engine=engine.QUICK,
    plans=plans.QUICK,
    tasks=10_000,
    counted=150,
    match=Sizes(nodes=100, pods=300, pairs=1, stream_seconds=3.0),
    preemption=preemption.Sizes(nodes=50, preemptors=20),
    starts=1,
)
PARTS = ["decisions", "engine", "plans", "simulator", "match", "preemption", "startup"]
PROFILED = "rosella"  # the default policy
NOT_BUILT = (
    f"{{part}}: left out. It needs a control plane, and compiling one takes {CONTROL_PLANE.build_time};\n"
    "  `make bench BENCH='--quick --only {part}'` does it"
)


def main(arguments: Sequence[str]) -> int:
    """Measure, print, write build/bench/report.json. Returns 0 whatever the figures are."""
    options = _options(arguments)
    OUTPUT.mkdir(parents=True, exist_ok=True)
    course = _course(options)
    if options.profile:
        return _profile(course.match)
    costs = _measure_decisions(course.decisions) if options.only in (None, "decisions") else []
    steps = _measure_engine(course.engine) if options.only in (None, "engine") else []
    planned = _measure_plans(course.plans) if options.only in (None, "plans") else []
    simulated = _measure_simulator(course) if options.only in (None, "simulator") else None
    result = _measure_match(course.match) if _wants_plane(options, "match") else None
    if _wants_plane(options, "preemption"):
        _measure_preemption(course.preemption)
    if _wants_plane(options, "startup"):
        print("\n" + "\n".join(startup.lines(startup.measure(course.starts))), flush=True)
    file = OUTPUT / "report.json"
    content = report(course.match, costs, steps, result, simulated=simulated, planned=planned)
    file.write_bytes(orjson.dumps(content, option=orjson.OPT_INDENT_2))
    print(f"\nwritten: {file}")
    return 0


def _measure_decisions(course: decisions.Course) -> list[DecisionCost]:
    """Measure every policy, and print its lines as soon as they are known."""
    costs: list[DecisionCost] = []
    print(decisions_head(course.node_counts), flush=True)
    for at, policy in enumerate(PLACE, start=1):
        with Progress(f"{policy}, policy {at} of {len(PLACE)}"):
            of_policy = list(decisions.measure(policy, course))
        print("\n".join(decisions_lines(of_policy)), flush=True)
        costs += of_policy
    print(f"target: flat <= {FLAT_MOST:g} (largest over smallest)", flush=True)
    return costs


def _measure_engine(course: engine.Course) -> list[EngineCost]:
    """Measure every case, and print its lines as soon as they are known."""
    costs: list[EngineCost] = []
    print(engine.HEAD, flush=True)
    for of_case in engine.measure(course):
        print("\n".join(engine.lines(of_case)), flush=True)
        costs += of_case
    return costs


def _measure_plans(course: plans.Course) -> list[PlanCost]:
    """Measure, and print each line as soon as it is known."""
    costs: list[PlanCost] = []
    print(plans.HEAD, flush=True)
    for cost in plans.measure(course):
        print(plans.line(cost), flush=True)
        costs.append(cost)
    return costs


def _measure_simulator(course: Course) -> SimulatorCost:
    with Progress("simulator") as progress:
        progress.update(f"{course.tasks:,} tasks")
        cost = simulator.measure(course.tasks, course.counted)
    print("\n".join(simulator.lines(cost)), flush=True)
    return cost


def _wants_plane(options: argparse.Namespace, part: str) -> bool:
    """The quick course compiles no control plane, unless a part that needs one is named."""
    if options.only is None and options.quick and built() is None:
        print(NOT_BUILT.format(part=part), flush=True)
        return False
    return options.only in (None, part)


def _measure_match(sizes: Sizes) -> Result:
    print(f"\n{sizes.pods:,} pods on {sizes.nodes:,} nodes, pairs: {sizes.pairs}", flush=True)
    result = match.run_match(sizes)
    print("\n" + "\n".join(comparison_table(compare(result))))
    return result


def _measure_preemption(sizes: preemption.Sizes) -> None:
    low = sizes.nodes * preemption.PODS_ON_A_NODE
    print(f"\n{sizes.preemptors:,} preemptors on {sizes.nodes:,} nodes full of {low:,} pods", flush=True)
    print("\n".join(preemption.lines(preemption.measure(sizes))), flush=True)


def _profile(sizes: Sizes) -> int:
    file = OUTPUT / "profile-decisions.txt"
    decisions.profile(PROFILED, sizes.nodes, file)
    simulated = OUTPUT / "profile-simulator.txt"
    simulator.profile(simulated)
    print(f"written: {file}\nwritten: {simulated}\nwritten: {match.profile(sizes)}")
    return 0


def _course(options: argparse.Namespace) -> Course:
    base = QUICK if options.quick else FULL
    sizes = replace(
        base.match,
        nodes=options.nodes or base.match.nodes,
        pods=options.pods or base.match.pods,
        pairs=options.pairs or base.match.pairs,
    )
    return replace(base, tasks=options.tasks or base.tasks, match=sizes)


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("eclectus_bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, to check that it runs: a minute")
    parser.add_argument(
        "--only", choices=PARTS, help="measure one part (all: about 20 minutes on two idle cores)"
    )
    parser.add_argument(
        "--nodes", type=_positive, help=f"nodes of the match; {FULL.match.nodes:,} by default"
    )
    parser.add_argument("--pods", type=_positive, help=f"pods of a backlog; {FULL.match.pods:,} by default")
    parser.add_argument(
        "--pairs", type=_positive, help=f"number of drains and of streams; {FULL.match.pairs} by default"
    )
    parser.add_argument("--tasks", type=_positive, help=f"tasks of the simulator; {FULL.tasks:,} by default")
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
