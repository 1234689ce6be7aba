"""The command `differential`."""

import argparse
import asyncio
import os
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from eclectus_e2e.differential.case import read
from eclectus_e2e.differential.run import Comparer, Found
from eclectus_e2e.differential.schedulers import opened
from eclectus_e2e.options import check_positive
from eclectus_e2e.paths import CHECKOUT
from eclectus_e2e.progress import Progress

FOLDER = CHECKOUT / "build" / "differential"
_MINUTES = 30.0
_SHRINK_ATTEMPTS = 150  # about two minutes
_FOUND_MOST = 5


def differential(arguments: list[str]) -> int:
    """Put random clusters and pods to kube-scheduler and to Eclectus, and compare every answer.

    Compared are: whether a pod is placed, the message if it is not, whether each accepts the nodes of the
    other, and, with `place: kube`, whether the node has the greatest sum of kube-scheduler's scores. A
    difference is shrunken, printed and written to a file for --case. Exit code 0 when there is none but the
    known ones, which are counted.
    """
    options = _parsed(arguments)
    if options.case is not None:
        return asyncio.run(_run_case(options.case))
    return asyncio.run(_run(options))


def _parsed(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("eclectus_e2e differential", description=differential.__doc__)
    parser.add_argument(
        "--minutes",
        type=float,
        default=_MINUTES,
        help="how long new clusters are begun (default: %(default)g)",
    )
    parser.add_argument("--clusters", type=int, help="so many clusters, however long they take")
    parser.add_argument(
        "--seed",
        type=int,
        default=1,
        help="of the first cluster; the next has the next (default: %(default)s)",
    )
    parser.add_argument("--case", type=Path, metavar="FILE", help="compare the case of a file alone")
    parser.add_argument(
        "--stop-after", type=int, default=_FOUND_MOST, help="so many differences (default: %(default)s)"
    )
    parser.add_argument("--no-shrink", action="store_true", help="report differences as they are found")
    options = parser.parse_args(arguments)
    check_positive(options, "clusters", "minutes", "stop_after")
    return options


async def _run_case(path: Path) -> int:
    case = read(path)
    async with opened(FOLDER / "cluster") as (cluster, questions):
        difference = await Comparer(cluster, questions).difference(case)
    print("both agree" if difference is None else difference)
    return 0 if difference is None else 1


async def _run(options: argparse.Namespace) -> int:
    reported = 0
    attempts = 0 if options.no_shrink else _SHRINK_ATTEMPTS
    async with opened(FOLDER / "cluster") as (cluster, questions):
        comparer = Comparer(cluster, questions)
        with Progress("comparing") as progress:
            for seed in _seeds(options):
                for found in await comparer.compare_cluster(seed):
                    reported += 1
                    _report(reported, await comparer.shrunken(found, attempts))
                    if reported == options.stop_after:
                        break
                progress.update(f"{comparer.totals.line}, {reported} differences")
                if reported == options.stop_after:
                    break
    print(comparer.totals.text)
    print(f"{reported} differences" if reported else "no difference that is not known")
    return 1 if reported else 0


def _seeds(options: argparse.Namespace) -> Iterator[int]:
    ends_at = time.monotonic() + 60 * options.minutes
    for at in count():
        if at == options.clusters or (options.clusters is None and time.monotonic() > ends_at):
            return
        yield options.seed + at


def _report(number: int, found: Found) -> None:
    path = FOLDER / f"seed-{found.seed}-{number}.json"
    found.case.write(path, str(found.difference))
    print(f"\nseed {found.seed}: {found.difference}")
    print(f"  again: python -m eclectus_e2e differential --case {os.path.relpath(path)}")
