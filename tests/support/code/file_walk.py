"""Counts how often a run of a program comes back to a file that it had left, which a reader has to do too."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from types import FrameType
from typing import Any

COMPREHENSIONS = ("<lambda>", "<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>", "<module>")


class FileWalk:
    """The calls from file to file below `root`; `visits`: the files in the order in which they are entered.

    A call from one place of the code to one function counts once, however often a loop repeats it. The end of
    a function is no step, and reading a property is none: neither makes a reader look for another page.
    """

    def __init__(self, root: Path) -> None:
        self._root = str(root)
        self.visits: list[str] = []
        self.calls: list[str] = []
        self._known: set[tuple[Any, ...]] = set()
        self._frames: list[FrameType] = []  # kept: a coroutine that goes on is no new call

    def follow(self, work: Callable[[], object]) -> FileWalk:
        """Run the work and note its calls."""
        before = sys.getprofile()
        sys.setprofile(self._notice)
        try:
            work()
        finally:
            sys.setprofile(before)
        return self

    @property
    def returns(self) -> list[str]:
        """The calls that enter a file which was entered before and has been left since."""
        return [call for at, call in enumerate(self.calls) if self.visits[at] in self.visits[:at]]

    def _notice(self, frame: FrameType, event: str, _: object) -> None:
        if event != "call" or not self._is_step(frame):
            return
        caller = frame.f_back
        while caller is not None and not self._is_here(caller):
            caller = caller.f_back
        if caller is None:
            self._enter(frame, "start")
        elif caller.f_code.co_filename != frame.f_code.co_filename:
            key = (caller.f_code, caller.f_lineno, frame.f_code)
            if key not in self._known:
                self._known.add(key)
                self._enter(frame, f"{self._name(caller)}:{caller.f_code.co_name}")

    def _is_step(self, frame: FrameType) -> bool:
        if not self._is_here(frame) or frame.f_code.co_name in COMPREHENSIONS or frame in self._frames:
            return False
        self._frames.append(frame)
        owner = type(frame.f_locals.get("self"))
        found = inspect.getattr_static(owner, frame.f_code.co_name, None)
        return not isinstance(found, property | cached_property)

    def _is_here(self, frame: FrameType) -> bool:
        return frame.f_code.co_filename.startswith(self._root)

    def _enter(self, frame: FrameType, origin: str) -> None:
        self.visits.append(self._name(frame))
        self.calls.append(f"{origin} -> {self._name(frame)}:{frame.f_code.co_name}")

    def _name(self, frame: FrameType) -> str:
        return frame.f_code.co_filename.removeprefix(self._root).lstrip("/")
