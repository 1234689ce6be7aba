"""Runs of the demo without a cluster: arrivals, and what the fake kubelet would have recorded of them."""

from dataclasses import replace

from eclectus_e2e.demo.stream.report import Run
from eclectus_e2e.demo.workload.arrivals import CLASSES, Arrival
from eclectus_e2e.demo.workload.pods import pod_name
from eclectus_e2e.testbed.kubelet.nodes import NodeSpec
from eclectus_e2e.testbed.kubelet.pod_times import Counters, PodRecord

NODES = [
    NodeSpec(name="slow", group="1", speed=1.0, labels={"zone": "here"}, allocatable={"cpu": "2"}),
    NodeSpec(name="fast", group="8", speed=8.0, labels={"zone": "there"}, allocatable={"cpu": "2"}),
]
BUILD, TRAIN, INFER = (
    next(kind for kind in CLASSES if kind.name == name) for name in ("build", "train", "infer")
)
CLEAN = Counters(started=0, finished=0, killed=0, vanished=0, refused={}, overcommitted=0, violations=0)
EPOCH = 1000.0


def arrival(number, at=0.0, kind=BUILD, constraint=None):
    """A pod with one second of work."""
    return Arrival(number, at, kind, 1.0, constraint)


def entry(one, node, started, finished, outcome="succeeded"):
    """The kubelet's record of an arrival's pod."""
    return PodRecord(
        "default", pod_name(one), str(one.number), node, one.kind.name, 1.0, started, finished, outcome
    )


def run(arrivals, entries, scheduler="eclectus", load=0.8, **more):
    """A run whose pods were sent exactly on time; `more` replaces fields of it."""
    sent = {pod_name(one): EPOCH + one.at_seconds for one in arrivals}
    given = Run(scheduler, load, 0, 0.0, arrivals, sent, [0.0] * len(arrivals), entries, CLEAN, (), 0.0)
    return replace(given, **more)
