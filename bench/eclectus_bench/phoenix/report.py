"""`make phoenix`: measures all sections and writes docs/results/phoenix.md; `--quick` prints them, short."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from functools import partial

from eclectus import __version__
from eclectus_bench.phoenix.cases import SECTIONS
from eclectus_bench.phoenix.measure import Size, measure
from eclectus_bench.phoenix.page import Facts, page
from eclectus_e2e.paths import CHECKOUT
from eclectus_e2e.progress import Progress

FILE = CHECKOUT / "docs" / "results" / "phoenix.md"
QUICK = Size(tasks=400, seeds=2)


def main(arguments: Sequence[str] = ()) -> int:
    """Measure and write; a part (`--only`) or a short version (`--quick`) is printed instead."""
    parser = argparse.ArgumentParser(prog="make phoenix", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few tasks, to check that it runs: a minute")
    parser.add_argument("--only", choices=[each.name for each in SECTIONS], help="one section")
    parser.add_argument(
        "--seeds", type=int, default=Size.seeds, help="runs of each case (default: %(default)s)"
    )
    parser.add_argument("--tasks", type=int, default=Size.tasks, help="tasks a run (default: %(default)s)")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: %(default)s)"
    )
    options = parser.parse_args(arguments)
    size = QUICK if options.quick else Size(options.tasks, options.seeds)
    sections = [each for each in SECTIONS if options.only in (None, each.name)]
    tables = []
    expected = "a minute" if options.quick else "25 minutes on two idle cores"
    with Progress("phoenix", expected=expected) as progress:
        for at, section in enumerate(sections, start=1):
            say = partial(_say, progress, f"{section.name}, {at} of {len(sections)}")
            tables.append((section, measure(section, size, options.jobs, say)))
    text = page(Facts(__version__, size), tables)
    if options.quick or options.only:
        print(text)
    else:
        FILE.write_text(text, encoding="utf-8")
        print(f"written: {FILE}")
    return 0


def _say(progress: Progress, head: str, done: str) -> None:
    progress.update(f"{head}: {done}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
