"""The command `sizes`: lists long functions and files.

A hint for reviewers, not a check that fails: a long table is fine, a long function seldom is.
"""

import argparse
import ast
from collections.abc import Iterator

from eclectus_e2e.paths import CHECKOUT

ROOTS = ("scheduler", "operator", "e2e", "hack", "bench", "tests")
FUNCTION_LINES = 50
FILE_LINES = 600


def sizes(arguments: list[str]) -> int:
    """List functions and files that are longer than the limits; always succeeds."""
    argparse.ArgumentParser("eclectus_hack sizes", description=sizes.__doc__).parse_args(arguments)
    files = [path for root in ROOTS for path in sorted((CHECKOUT / root).rglob("*.py"))]
    lines = [f"{path.relative_to(CHECKOUT)}{line}" for path in files for line in findings(path.read_text())]
    for line in lines:
        print(line)
    print(f"sizes: {len(lines)} hint{'' if len(lines) == 1 else 's'} in {len(files)} files")
    return 0


def findings(text: str) -> Iterator[str]:
    """`:line: message` for the file and each function above its limit."""
    count = len(text.splitlines())
    if count > FILE_LINES:
        yield f":1: the file has {count} lines (hint: {FILE_LINES})"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > FUNCTION_LINES:
                yield f":{node.lineno}: {node.name} has {length} lines (hint: {FUNCTION_LINES})"
