"""`make bench`: the cost of decisions, steps and simulated tasks, and comparisons with kube-scheduler."""

import argparse
import sys
from collections.abc import Sequence

import msgspec

from eclectus.policies.table import PLACE
from eclectus_bench import (
    decisions,
    engine,
    many_pools,
    match,
    plans,
    preemption,
    questions,
    requests,
    simulator,
    startup,
    starved,
)
from eclectus_bench.contest import plan as contest_plan
from eclectus_bench.contest import report as contest_report
from eclectus_bench.contest import run as contest
from eclectus_bench.contest.reckoning import Played
from eclectus_bench.course import options as command_line
from eclectus_bench.course.sizes import Course
from eclectus_bench.dags import plan as dags_plan
from eclectus_bench.dags import report as dags_report
from eclectus_bench.dags import run as dags
from eclectus_bench.dags.reckoning import Run as GraphsRun
from eclectus_bench.decisions import DecisionCost
from eclectus_bench.engine import EngineCost
from eclectus_bench.match import OUTPUT, Result, Sizes, print_run
from eclectus_bench.plans import PlanCost
from eclectus_bench.report import (
    FLAT_MOST,
    ceiling_lines,
    compare,
    comparison_table,
    decisions_head,
    decisions_lines,
    head,
    report,
)
from eclectus_bench.rules import measure as rules
from eclectus_bench.rules.measure import RuleCost
from eclectus_bench.simulator import SimulatorCost
from eclectus_bench.workloads import prebind, site
from eclectus_bench.workloads import report as workload_report
from eclectus_bench.workloads import run as workloads
from eclectus_bench.workloads.table import Workload
from eclectus_e2e.errors import E2EError
from eclectus_e2e.progress import Progress
from eclectus_e2e.testbed.controlplane.build import CONTROL_PLANE, built

PROFILED = "rosella"  # the default policy
NOT_BUILT = (
    f"{{part}}: left out. It needs a control plane, and compiling one takes {CONTROL_PLANE.build_time};\n"
    "  `make bench BENCH='--quick --only {part}'` does it"
)


def main(arguments: Sequence[str]) -> int:
    """Measure, print, write build/bench/report.json.

    Returns 1 if a workload could not be measured, otherwise 0 whatever the figures are.
    """
    options = command_line.parse(__doc__, arguments)
    OUTPUT.mkdir(parents=True, exist_ok=True)
    course = command_line.course_of(options)
    print(head(), flush=True)
    if options.profile:
        return _profile(course, options)
    costs = _measure_decisions(course.decisions) if options.only in (None, "decisions") else []
    steps = _measure_engine(course.engine) if options.only in (None, "engine") else []
    ruled = _measure_rules(course.rules) if options.only in (None, "rules") else []
    planned = _measure_plans(course.plans) if options.only in (None, "plans") else []
    simulated = _measure_simulator(course) if options.only in (None, "simulator") else None
    if options.only in (None, "requests"):
        print("\n" + "\n".join(requests.lines(requests.measure(course.requests))), flush=True)
    result = _measure_match(course.match) if _wants_plane(options, "match") else None
    rows = _measure_workloads(options.rows, course.workloads) if _wants_plane(options, "workloads") else []
    if _wants_plane(options, "preemption"):
        _measure_preemption(course.preemption)
    if _wants_plane(options, "prebind"):
        _measure_prebind(course.prebind)
    if _wants_plane(options, "startup"):
        print("\n" + "\n".join(startup.lines(startup.measure(course.starts))), flush=True)
    if options.only == "starved":
        _measure_starved(course.starved)
    if options.only == "questions":
        _measure_questions(course.questions)
    if options.only == "pools":
        print("\n" + "\n".join(many_pools.lines(many_pools.measure(course.pools))), flush=True)
    # Only by name: these compile other projects, and take long.
    played = _measure_tenants(course.tenants) if options.only == "tenants" else []
    graphs = _measure_dags(course.dags) if options.only == "dags" else []
    file = OUTPUT / "report.json"
    content = report(course.match, costs, steps, result, simulated=simulated, planned=planned)
    content |= {"rules": rules.content(ruled), "workloads": workload_report.content(rows)}
    content |= {"tenants": contest_report.content(played), "dags": dags_report.content(graphs)}
    file.write_bytes(msgspec.json.format(msgspec.json.encode(content)))
    print(f"\nwritten: {file}")
    return int(any(row.measured.problem for row in rows))


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


def _measure_rules(course: rules.Course) -> list[list[RuleCost]]:
    """Measure every rule, and print its line as soon as it is known."""
    found: list[list[RuleCost]] = []
    print("\n" + rules.head(course.node_counts), flush=True)
    for of_rule in rules.measure(course):
        print(rules.line(of_rule), flush=True)
        found.append(of_rule)
    return found


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
    print("\n".join(ceiling_lines(result.drains)))
    return result


def _measure_workloads(chosen: Sequence[Workload], sizes: site.Sizes) -> list[workload_report.Row]:
    print(f"\n{len(chosen)} workloads on {sizes.nodes:,} nodes, pairs: {sizes.pairs}", flush=True)
    measured = workloads.measure(chosen, sizes)
    rows = [
        workload_report.row(each, found, sizes.nodes) for each, found in zip(chosen, measured, strict=True)
    ]
    print("\n" + "\n".join(workload_report.table(rows)), flush=True)
    return rows


def _measure_preemption(sizes: preemption.Sizes) -> None:
    low = sizes.nodes * preemption.PODS_ON_A_NODE
    print(f"\n{sizes.preemptors:,} preemptors on {sizes.nodes:,} nodes full of {low:,} pods", flush=True)
    print("\n".join(preemption.lines(preemption.measure(sizes))), flush=True)


def _measure_starved(sizes: starved.Sizes) -> None:
    loops = ", ".join(map(str, sizes.loops))
    print(f"\nload {starved.LOAD} on one core beside {loops} loops, pairs of each: {sizes.pairs}", flush=True)
    runs = []
    for run in starved.measure(sizes):
        runs.append(run)
        text = f"{run.loops} loops, pair {run.pair + 1}, {run.scheduler}"
        print(f"  {text}: mean {run.mean_seconds:.2f} s, {run.writes:.2f} writes a pod", flush=True)
    print("\n".join(starved.lines(runs)), flush=True)


def _measure_questions(sizes: questions.Sizes) -> None:
    print(
        f"\n{sizes.pods_per_second:g} pods/s for {sizes.seconds:g} s on {sizes.nodes:,} nodes, "
        f"{questions.RATE:g} questions/s, pairs: {sizes.pairs}",
        flush=True,
    )
    print("\n".join(questions.lines(questions.measure(sizes))), flush=True)


def _measure_prebind(sizes: prebind.Sizes) -> None:
    print(
        f"\n{sizes.pods:,} pods on {sizes.nodes:,} nodes, without and beside {sizes.waiting} that wait "
        f"{sizes.provision_seconds:g} s for volumes, pairs: {sizes.pairs}",
        flush=True,
    )
    print("\n".join(prebind.lines(prebind.measure(sizes))), flush=True)


def _measure_tenants(sizes: contest_plan.Sizes) -> list[Played]:
    """Play all runs, and print what each tenant held as soon as a run is over."""
    played: list[Played] = []
    print(
        f"\nthree tenants on {sizes.nodes} nodes, {sizes.ends:g} s, runs of each: {sizes.pairs}", flush=True
    )
    for run in contest.play(sizes):
        print_run(f"tenants {run.pair + 1}, {run.contestant}", run)
        print("\n".join(contest_report.shares(run)), flush=True)
        played.append(run)
    print("\n" + "\n".join(contest_report.table(played)), flush=True)
    return played


def _measure_dags(sizes: dags_plan.Sizes) -> list[GraphsRun]:
    """Run everything, and print what each run has written as soon as it is over."""
    runs: list[GraphsRun] = []
    print(
        f"\n{sizes.graphs} graphs of {len(sizes.steps)} steps on {sizes.nodes} nodes, pairs: {sizes.pairs}",
        flush=True,
    )
    for run in dags.measure(sizes):
        print_run(f"dags {run.pair + 1}, {run.contestant}: {run.steps / run.seconds:.1f} steps/s", run)
        print(f"    writes a step: {dags_report.of_writes(run)}", flush=True)
        runs.append(run)
    print("\n" + "\n".join(dags_report.table(runs)), flush=True)
    return runs


def _profile(course: Course, options: argparse.Namespace) -> int:
    if options.only == "workloads":
        for workload in options.rows:
            print(f"written: {workloads.profile(workload, course.workloads)}", flush=True)
        return 0
    file = OUTPUT / "profile-decisions.txt"
    decisions.profile(PROFILED, course.match.nodes, file)
    simulated = OUTPUT / "profile-simulator.txt"
    simulator.profile(simulated)
    print(f"written: {file}\nwritten: {simulated}\nwritten: {match.profile(course.match)}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except E2EError as problem:
        print(f"error: {problem}", file=sys.stderr)
        sys.exit(1)
