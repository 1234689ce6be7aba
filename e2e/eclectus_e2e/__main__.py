"""`python -m eclectus_e2e COMMAND ...`: the table of commands."""

import importlib
import sys

from .errors import E2EError

# Command: (module, function, what it does). A module is imported only for its own command.
COMMANDS = {
    "up": ("up", "up", "start a control plane and its fake nodes"),
    "down": ("up", "down", "end it and remove its files"),
    "status": ("up", "status", "say what runs"),
    "kubelet": ("kubelet.command", "kubelet", "play the kubelets of all nodes of a file"),
    "nodes": ("kubelet.command", "nodes", "print the default set of nodes, with their true speeds"),
    "manifests": ("manifests", "manifests", "write what is derived from the chart and the list of images"),
    "images": ("images.command", "images", "build the images' archives without Docker"),
    "demo": (
        "demo.command",
        "demo",
        "Eclectus, kube-scheduler and a uniform baseline on the same stream of pods; then shocks",
    ),
    "sizes": ("sizes", "sizes", "name functions and files that have grown long (a hint)"),
}


def main(arguments: list[str]) -> int:
    """Run one command; an error these tools know is told in words, without a traceback."""
    if not arguments or arguments[0] not in COMMANDS:
        lines = [f"  {name:<12}{text}" for name, (_, _, text) in COMMANDS.items()]
        print("\n".join(["usage: python -m eclectus_e2e COMMAND", *lines]), file=sys.stderr)
        return 0 if arguments[:1] in (["--help"], ["-h"], ["help"]) else 2
    module, function, _ = COMMANDS[arguments[0]]
    run = getattr(importlib.import_module(f"eclectus_e2e.{module}"), function)
    try:
        return int(run(arguments[1:]))
    except E2EError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:  # what was started has been ended on the way up
        print("interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
