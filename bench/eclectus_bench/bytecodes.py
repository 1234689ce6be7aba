"""How many bytecodes a piece of work takes: a cost that no neighbour and no faster machine changes.

Counted by Python's own tracing, which slows the work down some thirty times. What is done in C (numpy, dicts)
is not counted, but how often it is called is part of the bytecodes.
"""

import sys
from collections import Counter
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any


def count(work: Callable[[], object]) -> tuple[Counter[CodeType], Counter[CodeType]]:
    """Bytecodes, and calls, of each function while this is done."""
    bytecodes, calls = Counter[CodeType](), Counter[CodeType]()

    def trace(frame: FrameType, event: str, _: Any) -> Callable[..., Any]:
        if event == "call":
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
            calls[frame.f_code] += 1
        elif event == "opcode":
            bytecodes[frame.f_code] += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return bytecodes, calls
