"""Which source files run: a count of how far a reader must go to follow one thing through the code."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


@contextmanager
def executed_files(root: str) -> Iterator[list[str]]:
    """The files below `root` of which a function runs meanwhile, in the order of their first call.

    Of this thread and its coroutines. What runs while a module is imported does not count.
    """
    found: dict[str, None] = {}

    def note(frame: FrameType, event: str, _argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_name != "<module>" and root in code.co_filename:
            found[code.co_filename.rpartition(root)[2]] = None

    files: list[str] = []
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield files
    finally:
        sys.setprofile(before)
        files.extend(found)
