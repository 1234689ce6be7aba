"""The command line of `make bench`."""

import argparse
from collections.abc import Sequence
from dataclasses import replace

from eclectus.policies.table import PLACE
from eclectus_bench.course.sizes import FULL, QUICK, Course
from eclectus_bench.workloads.table import WORKLOADS, Workload

PARTS = (
    "decisions",
    "engine",
    "rules",
    "plans",
    "simulator",
    "requests",
    "match",
    "workloads",
    "preemption",
    "prebind",
    "startup",
    "starved",
    "questions",
    "pools",
    "tenants",
    "dags",
)


def parse(description: str | None, arguments: Sequence[str]) -> argparse.Namespace:
    """The options; ends the program with a message where one is wrong."""
    parser = argparse.ArgumentParser("eclectus_bench", description=description)
    parser.add_argument("--quick", action="store_true", help="small sizes, to check that it runs: 2 minutes")
    parser.add_argument(
        "--only",
        choices=PARTS,
        help="measure one part (all but the last five: about 90 minutes on two idle cores; workloads: 50; "
        "starved: 60; tenants: 25; dags: 40; others: up to 10)",
    )
    nodes, pods, pairs = FULL.match.nodes, FULL.match.pods, FULL.match.pairs
    parser.add_argument(
        "--nodes", type=_positive, help=f"nodes of the match and of workloads; {nodes:,} by default"
    )
    parser.add_argument(
        "--pods", type=_positive, help=f"pods of a backlog; {pods:,}, of a workload 1,000 to 3,000 by default"
    )
    parser.add_argument(
        "--pairs",
        type=_positive,
        help=f"of drains, of streams, of runs of a workload: {pairs} by default; "
        f"of starved, questions, tenants and dags {FULL.starved.pairs}",
    )
    parser.add_argument(
        "--place",
        choices=list(PLACE),
        metavar="POLICY",
        help="place policy of Eclectus in the match (default: the chart's)",
    )
    parser.add_argument(
        "--rows",
        type=_workloads,
        default=WORKLOADS,
        metavar="NAME,...",
        help=f"these workloads alone, 2 to 15 minutes each: {', '.join(each.name for each in WORKLOADS)}",
    )
    parser.add_argument("--tasks", type=_positive, help=f"tasks of the simulator; {FULL.tasks:,} by default")
    parser.add_argument(
        "--profile",
        action="store_true",
        help="do not measure, but profile Eclectus: where its time goes; with --only workloads, in each",
    )
    return parser.parse_args(arguments)


def course_of(options: argparse.Namespace) -> Course:
    """How much of each part is measured."""
    base = QUICK if options.quick else FULL
    given = {name: number for name in ("nodes", "pods", "pairs") if (number := getattr(options, name))}
    return replace(
        base,
        tasks=options.tasks or base.tasks,
        match=replace(base.match, **given, place=options.place),
        starved=replace(base.starved, pairs=options.pairs or base.starved.pairs),
        questions=replace(base.questions, pairs=options.pairs or base.questions.pairs),
        workloads=replace(base.workloads, **given),
        pools=replace(base.pools, **given),
        tenants=replace(base.tenants, pairs=options.pairs or base.tenants.pairs),
        dags=replace(base.dags, pairs=options.pairs or base.dags.pairs),
    )


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number above 0")
    return number


def _workloads(text: str) -> tuple[Workload, ...]:
    """Those of these names, in the table's order."""
    names, known = text.split(","), [each.name for each in WORKLOADS]
    if unknown := [name for name in names if name not in known]:
        raise argparse.ArgumentTypeError(f"no workload {', '.join(map(repr, unknown))}: {', '.join(known)}")
    return tuple(each for each in WORKLOADS if each.name in names)
