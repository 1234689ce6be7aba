"""`sizes`: names functions and files that have grown past one screen and one room.

A hint to read, not a gate: a long table is fine, a long function seldom is.
"""

import argparse
import ast
from collections.abc import Iterator

from eclectus_e2e.paths import CHECKOUT

ROOTS = ("scheduler", "operator", "e2e", "bench", "tests")
FUNCTION_LINES = 50  # one screen
FILE_LINES = 250  # one room


def sizes(arguments: list[str]) -> int:
    """Print one line for each; always succeeds."""
    argparse.ArgumentParser("eclectus_e2e sizes", description=sizes.__doc__).parse_args(arguments)
    files = [path for root in ROOTS for path in sorted((CHECKOUT / root).rglob("*.py"))]
    lines = [f"{path.relative_to(CHECKOUT)}{line}" for path in files for line in long_ones(path.read_text())]
    for line in lines:
        print(line)
    print(f"sizes: {len(lines)} hint{'' if len(lines) == 1 else 's'} in {len(files)} files")
    return 0


def long_ones(text: str) -> Iterator[str]:
    """`:line: what` for each function, and the file, above its limit."""
    count = len(text.splitlines())
    if count > FILE_LINES:
        yield f":1: the file has {count} lines (hint: {FILE_LINES})"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > FUNCTION_LINES:
                yield f":{node.lineno}: {node.name} has {length} lines (hint: {FUNCTION_LINES})"
