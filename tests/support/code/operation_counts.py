"""How much work a call does, as a count that is the same on every machine and under every load."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def operations(call: Callable[[], object]) -> int:
    """The bytecodes that Python executes in the call; what numpy does in one of them counts as one."""
    count = 0

    def trace(frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal count
        if event == "call":
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
        elif event == "opcode":
            count += 1
        return trace

    before, collects = sys.gettrace(), gc.isenabled()
    # A collection runs what others have left: finalizers, and Hypothesis' callback once it has been used.
    gc.disable()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
        if collects:
            gc.enable()
    return count
