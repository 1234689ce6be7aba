"""`python -m eclectus_e2e COMMAND ...`: the test bed, the demo, and comparisons with kube-scheduler."""

import sys

from eclectus_e2e.commands import Commands, main

COMMANDS: Commands = {
    "up": ("testbed.command", "up", "start a control plane and its nodes"),
    "down": ("testbed.command", "down", "stop it and remove its files"),
    "status": ("testbed.command", "status", "list its processes"),
    "helm": ("testbed.helm", "helm", "run helm, compiled on its first use"),
    "kubelet": ("testbed.kubelet.command", "kubelet", "simulate the kubelets of all nodes of a file"),
    "nodes": ("testbed.kubelet.command", "nodes", "print the default nodes with their true speeds"),
    "demo": (
        "demo.command",
        "demo",
        "Eclectus beside kube-scheduler on the same pods, in pairs with intervals, and other experiments",
    ),
    "differential": (
        "differential.command",
        "differential",
        "random clusters and pods put to kube-scheduler and to Eclectus, every answer compared",
    ),
    "chaos": (
        "chaos.command",
        "chaos",
        "two schedulers and two operators on a simulated API server, network and clock, with faults",
    ),
    "pressure": (
        "chaos.pressure.command",
        "pressure",
        "a search for objects that cost the scheduler more than their number, over all pairs of kinds",
    ),
    "upstream": ("upstream.command", "upstream", "Kubernetes' own scheduling specs against Eclectus"),
    "versions": ("versions.command", "versions", "a smoke run on each supported minor version of Kubernetes"),
}

if __name__ == "__main__":
    sys.exit(main("eclectus_e2e", COMMANDS, sys.argv[1:]))
