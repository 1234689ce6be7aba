"""`python -m eclectus_bench.profiled FILE ARGUMENT...`: the `eclectus` program under cProfile.

CPU time, because on a busy machine wall time mostly shows waiting for a core.
"""

import cProfile
import pstats
import sys
import time
from pathlib import Path

from eclectus.cli.main import main


def profiled(file: Path) -> None:
    """Run the program with the rest of the command line; write its time by function to FILE."""
    clock = cProfile.Profile(time.thread_time)
    clock.enable()
    try:
        main()
    finally:
        clock.disable()
        with file.open("w") as out:
            stats = pstats.Stats(clock, stream=out)
            stats.sort_stats("tottime").print_stats(60)
            stats.sort_stats("cumtime").print_stats("eclectus/")


if __name__ == "__main__":
    target = Path(sys.argv.pop(1))
    profiled(target)
