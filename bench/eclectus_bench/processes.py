"""The same function of many cases, in several processes."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import TypeVar

Case = TypeVar("Case")
Found = TypeVar("Found")


def in_processes(
    work: Callable[[Case], Found], cases: Sequence[Case], jobs: int, say: Callable[[str], None]
) -> list[Found]:
    """What `work` finds of each case, in their order; `say` gets how many are done.

    The later cases begin first: they are the larger ones, of which none should begin when the others end.
    """
    if jobs == 1:
        return [work(case) for case in cases]
    context = multiprocessing.get_context("spawn")  # a new process inherits no state
    with ProcessPoolExecutor(min(jobs, len(cases)), context) as pool:
        begun = [pool.submit(work, case) for case in reversed(cases)]
        for done, future in enumerate(as_completed(begun), start=1):
            future.result()  # an error ends everything at once
            say(f"{done} of {len(cases)}")
    return [future.result() for future in reversed(begun)]
