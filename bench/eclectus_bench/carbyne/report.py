"""`make carbyne`: measures sections and writes docs/results/carbyne.md; `--quick` prints them, short."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from functools import partial

from eclectus import __version__
from eclectus_bench.carbyne.cases import SECTIONS, Section
from eclectus_bench.carbyne.data import missing
from eclectus_bench.carbyne.figures import Row, rows_of
from eclectus_bench.carbyne.page import Facts, page
from eclectus_bench.carbyne.runs import Size, run_section
from eclectus_e2e.paths import CHECKOUT
from eclectus_e2e.progress import Progress

FILE = CHECKOUT / "docs" / "results" / "carbyne.md"
QUICK = Size(jobs=12, seeds=1)


def main(arguments: Sequence[str] = ()) -> int:
    """Measure, and write the page after each section; it names what it lacks.

    A part (`--only`) or a short version (`--quick`) is printed instead.
    """
    parser = argparse.ArgumentParser(prog="make carbyne", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few jobs, to check that it runs: two minutes")
    names = [each.name for each in SECTIONS]
    parser.add_argument(
        "--only", choices=names, nargs="+", default=names, help="print these sections alone (default: all)"
    )
    parser.add_argument(
        "--seeds", type=int, default=Size.seeds, help="runs of each case (default: %(default)s)"
    )
    parser.add_argument("--jobs", type=int, default=Size.jobs, help="jobs a run (default: %(default)s)")
    parser.add_argument(
        "--processes", type=int, default=os.cpu_count() or 1, help="at a time (default: %(default)s)"
    )
    options = parser.parse_args(arguments)
    size = QUICK if options.quick else Size(options.jobs, options.seeds)
    is_printed = options.quick or set(options.only) != set(names)
    began = _clocks()
    tables: list[tuple[Section, list[Row]]] = []
    left_out = {each.name: each.title for each in SECTIONS}
    expected = "two minutes" if options.quick else "30 minutes on two idle cores"
    text = ""
    with Progress("carbyne", expected=expected) as progress:
        for section in SECTIONS:
            if section.name not in options.only:
                continue
            if why := missing(section.jobs.files):
                left_out[section.name] += f" ({why})"
                continue
            say = partial(_say, progress, section.name)
            tables.append((section, list(rows_of(run_section(section, size, options.processes, say)))))
            del left_out[section.name]
            minutes = (each - start for each, start in zip(_clocks(), began, strict=True))
            text = page(Facts(__version__, size, *minutes), tables, list(left_out.values()))
            if not is_printed:
                FILE.write_text(text, encoding="utf-8")
    if not tables:
        print(f"nothing to measure: {'; '.join(left_out.values())}", file=sys.stderr)
        return 1
    print(text if is_printed else f"written: {FILE}")
    return 0


def _clocks() -> tuple[float, float]:
    """Time, and processor time of this process and of those that have ended; minutes."""
    used = os.times()
    return time.monotonic() / 60, (used.user + used.system + used.children_user + used.children_system) / 60


def _say(progress: Progress, head: str, done: str) -> None:
    progress.update(f"{head}: {done}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
