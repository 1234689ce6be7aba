"""A program made of a table of commands; a module is imported only for its own command."""

import importlib
import sys

from eclectus_e2e.errors import E2EError

Commands = dict[str, tuple[str, str, str]]
"""Command: (module below the package, function, what it does)."""


def main(package: str, commands: Commands, arguments: list[str]) -> int:
    """Run one command and return its exit code; an E2EError is printed in one line, without a traceback."""
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
    except KeyboardInterrupt:  # what was started has been ended on the way up
        print("interrupted", file=sys.stderr)
        return 130
