"""Settings of Rosella's learner, each with unit, bounds and the reason of its default."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from eclectus.framework import Setting

NO_CAP = 1_000_000  # samples: longer than any window
PAPER = {
    "paper": {
        "by": "node",
        "window": NO_CAP,
        "half_life": 1e9,
        "prior_samples": 0.1,
        "untried_share": 1.0,
        "alarm_threshold": 1000.0,
        "spare_share": 0.1,
    }
}


@dataclass(eq=False)
class LearnSettings:
    """The fields of `learn: {policy: rosella}`, described in docs/rosella.md."""

    window: Annotated[
        int,
        Setting(
            "maximum number of samples kept for each node and workload: the newest ones (the cap of L)",
            why="gives an error below a third for tasks of moderate spread; another test detects changes of "
            "speed",
            unit="samples",
            least=4,
            most=NO_CAP,
        ),
    ] = 64
    half_life: Annotated[
        float,
        Setting(
            "age at which a sample has half its weight",
            why="speeds measured hours ago may be wrong; a node that was not used for long is tried again",
            unit="s",
            least=1,
            most=1e9,
        ),
    ] = 3600.0
    prior_samples: Annotated[
        float,
        Setting(
            "weight of the prior, the rate expected from other nodes and workloads",
            why="a single short task must not make a node the fastest of all",
            unit="samples",
            least=0.1,
            most=100,
        ),
    ] = 1.0
    untried_share: Annotated[
        float,
        Setting(
            "effective rate of a node for a workload that it has never run, as a share of the expected rate",
            why="where workloads rank nodes differently, every node would otherwise be tried for each, and a "
            "trial may run long; where they do not, a half costs little (docs/results/rosella.md)",
            least=0.05,
            most=1,
        ),
    ] = 0.5
    alarm_slack: Annotated[
        float,
        Setting(
            "change of a node's speed that raises no alarm, in spreads of the logarithm of its task times",
            why="half of the change to be detected: a factor of 4 is one spread of exponential sizes",
            unit="spreads",
            least=0,
            most=1.5,
        ),
    ] = 0.5
    alarm_threshold: Annotated[
        float,
        Setting(
            "sum of score excesses above which a node's speed counts as changed; older samples are dropped",
            why="one false alarm in about 1,800 samples of a cell, and a fourfold change is detected after "
            "about 10; each 1 more makes false alarms 2.7 times rarer and detection 2 samples later",
            unit="spreads",
            least=1,
            most=1000,
        ),
    ] = 6.0
    capacity: Annotated[
        float | None,
        Setting(
            "guaranteed capacity of all nodes together (mu-bar)",
            why="unset: a low percentile, over an hour, of the sum of their effective rates",
            unit="tasks/s",
            least=1e-9,
        ),
    ] = None
    spare_share: Annotated[
        float,
        Setting(
            "share of the spare capacity for probes, and the most that is lost by not using slow nodes (c0)",
            why="as in the paper",
            least=0.001,
            most=0.5,
        ),
    ] = 0.1
    certainty: Annotated[
        float,
        Setting(
            "x: a healthy node among n counts as dead with probability at most n^-x",
            why="with 2, the probability that any of the n does is below 1/n",
            least=0.5,
            most=10,
        ),
    ] = 2.0
    most_workloads: Annotated[
        int,
        Setting(
            "maximum number of workloads learned at a time, in fair shares of the namespaces; in a namespace "
            "those with the most samples",
            why="limits memory: 64 workloads on 5,000 nodes take 8 MB of rates, and a window for each pair",
            unit="workloads",
            least=1,
            most=4096,
        ),
    ] = 64
    by: Annotated[
        Literal["workload", "node"],
        Setting(
            "whether a rate belongs to a node and a workload, or, as in the paper, to a node",
            why="one rate for each node is wrong where workloads rank nodes differently",
        ),
    ] = "workload"
    mode: Annotated[
        Literal["eclectus", "paper"],
        Setting(
            "paper: one rate for each node, windows of the paper's length, no ageing of samples, no test for "
            "changes of speed",
            why="unset: that of place; the paper's is slow where speeds change: docs/results/ablations.md",
            implies=PAPER,
        ),
    ] = "eclectus"
