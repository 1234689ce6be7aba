"""Runs a program that consists of a table of commands: `eclectus_e2e`, `eclectus_hack`.

The module of a command is imported only when the command runs.
"""

import importlib
import sys

from eclectus_e2e.errors import E2EError

Commands = dict[str, tuple[str, str, str]]
"""Command name: (module below the package, function, description)."""


def main(package: str, commands: Commands, arguments: list[str]) -> int:
    """Run the command that `arguments` starts with; returns its exit code.

    An E2EError is printed without a traceback, with exit code 1.
    """
    if not arguments or arguments[0] not in commands:
        lines = [f"  {name:<14}{text}" for name, (_, _, text) in commands.items()]
        print("\n".join([f"usage: python -m {package} COMMAND", *lines]), file=sys.stderr)
        return 0 if arguments[:1] in (["--help"], ["-h"], ["help"]) else 2
    module, function, _ = commands[arguments[0]]
    run = getattr(importlib.import_module(f"{package}.{module}"), function)
    try:
        return int(run(arguments[1:]))
    except E2EError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:  # context managers have stopped what was started
        print("interrupted", file=sys.stderr)
        return 130
