"""The bench of a busy machine: what it reckons from its runs."""

import os

from eclectus_bench import starved
from eclectus_bench.starved import Run, lines, written
from eclectus_e2e.demo.schedulers import ECLECTUS, KUBE_SCHEDULER

METRICS = """
# TYPE apiserver_request_total counter
apiserver_request_total{code="201",resource="pods",subresource="binding",verb="POST"} 7
apiserver_request_total{code="200",resource="pods",subresource="status",verb="PATCH"} 1.5e+01
apiserver_request_total{code="200",resource="leases",subresource="",verb="PUT"} 900
apiserver_request_total{code="200",resource="pods",subresource="",verb="LIST"} 80
apiserver_request_terminations_total{code="504",verb="POST"} 3
"""


def run(scheduler: str, pair: int, mean: float, **fields: float) -> Run:
    found = {"pods_per_second": 1.0, "writes": 8.0, "lost": 0, "leaders": 0, **fields}
    return Run(scheduler=scheduler, loops=2, pair=pair, mean_seconds=mean, **found)


def test_writes_are_counted_and_those_of_leases_are_not() -> None:
    assert written(METRICS) == 22


def test_the_table_has_means_ratios_within_pairs_and_what_was_lost() -> None:
    means = (10.0, 20.0, 10.0, 20.0, 15.0)
    theirs = [run(KUBE_SCHEDULER, pair, mean) for pair, mean in enumerate(means)]
    ours = [run(ECLECTUS, pair, mean / 2, lost=pair) for pair, mean in reversed([*enumerate(means)])]
    table = lines([*theirs, *ours])
    assert " ".join(table[1].split()) == "mean response, s 15.00 7.50 0.50 (0.50 to 0.50): won"
    assert table[2].endswith("equal")
    assert table[4] == "  pods lost: 0, 10"


def test_four_pairs_decide_nothing() -> None:
    runs = [
        run(name, pair, mean) for name, mean in ((KUBE_SCHEDULER, 10.0), (ECLECTUS, 5.0)) for pair in range(4)
    ]
    assert lines(runs)[1].endswith("0.50 (0.50 to 0.50): too few pairs")


def test_loops_run_in_sessions_of_their_own_and_end_with_the_block() -> None:
    with starved._loops(2) as pids:
        assert len({os.getsid(pid) for pid in pids} - {os.getsid(0)}) == 2
    for pid in pids:
        assert not os.path.exists(f"/proc/{pid}")
