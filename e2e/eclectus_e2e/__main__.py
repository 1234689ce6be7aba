"""`python -m eclectus_e2e COMMAND ...`: the table of commands."""

import sys

from eclectus_e2e.commands import Commands, main

COMMANDS: Commands = {
    "up": ("testbed.command", "up", "start a control plane and its fake nodes"),
    "down": ("testbed.command", "down", "end it and remove its files"),
    "status": ("testbed.command", "status", "say what runs"),
    "kubelet": ("testbed.kubelet.command", "kubelet", "play the kubelets of all nodes of a file"),
    "nodes": ("testbed.kubelet.command", "nodes", "print the default set of nodes, with their true speeds"),
    "demo": (
        "demo.command",
        "demo",
        "Eclectus, kube-scheduler and a uniform baseline on the same stream of pods; then changes of speed",
    ),
}

if __name__ == "__main__":
    sys.exit(main("eclectus_e2e", COMMANDS, sys.argv[1:]))
