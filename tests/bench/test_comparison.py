"""The comparison's table, and the loads that it refuses."""

import pytest
from rich.console import Console

from eclectus_bench.experiments import comparison
from eclectus_bench.experiments.comparison import TARGETS
from eclectus_e2e.demo.command import demo
from eclectus_e2e.demo.stream.report import Run, make_report
from eclectus_e2e.demo.workload.arrivals import Arrival
from eclectus_e2e.demo.workload.mixed import CLASSES, mixed_nodes
from eclectus_e2e.demo.workload.pods import pod_name
from eclectus_e2e.errors import UsageError
from eclectus_e2e.testbed.kubelet.pod_times import Counters, PodRecord

NODES = mixed_nodes(1, seed=1)
CLEAN = Counters(started=0, finished=0, killed=0, vanished=0, refused={}, overcommitted=0, violations=0)
ARRIVAL = Arrival(0, 0.0, CLASSES[0], 1.0, None)


def run(scheduler, load, seconds):
    name = pod_name(ARRIVAL)
    entry = PodRecord(
        "default", name, name, NODES[0].name, "serve", 1.0, 1000.0, 1000.0 + seconds, "succeeded"
    )
    return Run(scheduler, load, 0, 0.0, [ARRIVAL], {name: 1000.0}, [0.0], [entry], CLEAN, (), 0.0)


def printed(ours_seconds):
    took = {"eclectus": ours_seconds, "kube-scheduler": 10.0, "eclectus-pot": 9.0}
    runs = [run(name, 0.5, seconds) for name, seconds in took.items()]
    found = make_report(runs, NODES, seed=1, main_load=0.5, capacity=20.0)
    console = Console(width=120, record=True)
    console.print(comparison._table(found, found, 15.0))
    return console.export_text()


@pytest.mark.parametrize(("seconds", "word"), [(3.0, "met"), (4.0, "missed")])
def test_eclectus_has_targets_and_the_others_only_their_ratios(seconds, word):
    """At load 0.5: .55 of kube-scheduler's mean, .35 of its 99th percentile."""
    lines = printed(seconds).splitlines()
    ours = next(line for line in lines if " eclectus " in line)
    assert word in ours
    assert "0.55, 0.35" in ours
    assert ours.count(f"{seconds / 10:.2f}, {seconds / 10:.2f}") == 2
    assert "0.90, 0.90" in next(line for line in lines if "eclectus-pot" in line)
    assert "target" not in next(line for line in lines if "kube-scheduler" in line)


def test_targets_loosen_with_the_load():
    assert list(TARGETS) == sorted(TARGETS)
    assert list(TARGETS.values()) == sorted(TARGETS.values())


def test_a_load_without_targets_is_refused():
    with pytest.raises(UsageError, match=r"targets for loads 0.5, 0.8, 0.9 only; it was given 0.7, 0.8"):
        demo(["compare", "--loads", "0.7,0.8"])
