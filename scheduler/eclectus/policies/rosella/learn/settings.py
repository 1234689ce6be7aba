"""What an admin may set of the learner: each with its unit, its bounds and why its default is what it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from eclectus.model.settings import Setting

NO_CAP = 1_000_000  # samples: no window is ever so long
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
    """The fields of `learn: {policy: rosella}`, told in docs/rosella.md."""

    window: Annotated[
        int,
        Setting(
            "newest samples kept of each node and workload at most (the cap of L)",
            why="gives a third in accuracy for work of moderate spread; changes of speed have a test of "
            "their own",
            unit="samples",
            least=4,
            most=NO_CAP,
        ),
    ] = 64
    half_life: Annotated[
        float,
        Setting(
            "age at which a sample counts half",
            why="speeds measured hours ago are hearsay; a node not used for long is tried again",
            unit="s",
            least=1,
            most=1e9,
        ),
    ] = 3600.0
    prior_samples: Annotated[
        float,
        Setting(
            "how many samples the expectation from siblings weighs",
            why="one lucky sample must not make a node the fastest of all",
            unit="samples",
            least=0.1,
            most=100,
        ),
    ] = 1.0
    untried_share: Annotated[
        float,
        Setting(
            "share of its speed at other work that a node is believed to have at work it has never done",
            why="where kinds of work rank nodes differently every node would be tried at each, and a trial "
            "may run long; half costs little where they do not (docs/rosella.md)",
            least=0.05,
            most=1,
        ),
    ] = 0.5
    alarm_slack: Annotated[
        float,
        Setting(
            "shift of a node's speed that is let pass, in spreads of the logarithm of its times",
            why="half of the shift to be found: four times the time is one spread of exponential sizes",
            unit="spreads",
            least=0,
            most=1.5,
        ),
    ] = 0.5
    alarm_threshold: Annotated[
        float,
        Setting(
            "sum of shifts beyond which a node's speed counts as changed and older samples are given up",
            why="a false alarm in about 1,800 samples of a cell, a fourfold change found in about 10; "
            "each 1 more makes false alarms 2.7 times rarer and a find 2 samples later",
            unit="spreads",
            least=1,
            most=1000,
        ),
    ] = 6.0
    capacity: Annotated[
        float | None,
        Setting(
            "what all nodes together can surely do (mu-bar)",
            why="unset: a low percentile, over an hour, of what they are believed to do",
            unit="tasks/s",
            least=1e-9,
        ),
    ] = None
    spare_share: Annotated[
        float,
        Setting(
            "share of the spare capacity given to probes, and at most lost with nodes too slow to use (c0)",
            why="the paper's",
            least=0.001,
            most=0.5,
        ),
    ] = 0.1
    certainty: Annotated[
        float,
        Setting(
            "x: a healthy node among n is wrongly judged with a chance of at most n^-x",
            why="2: below one in n even when all n are judged",
            least=0.5,
            most=10,
        ),
    ] = 2.0
    most_workloads: Annotated[
        int,
        Setting(
            "kinds of work learned at a time; the one longest unseen makes way",
            why="bounds memory: 64 kinds on 5,000 nodes are 8 MB of rates and a window each",
            unit="workloads",
            least=1,
            most=4096,
        ),
    ] = 64
    by: Annotated[
        Literal["workload", "node"],
        Setting(
            "what a rate is of: a node at a kind of work, or, as in the paper, a node at all work",
            why="one rate a node is wrong where kinds of work rank nodes differently",
        ),
    ] = "workload"
    mode: Annotated[
        Literal["eclectus", "paper"],
        Setting(
            "paper: one rate a node, windows of the paper's length, and nothing fades or is looked for",
            why="unset, that of place; the paper's learner is late wherever speeds change: docs/ablations.md",
            implies=PAPER,
        ),
    ] = "eclectus"
