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
    theirs = [run(KUBE_SCHEDULER, pair, mean) for pair, mean in enumerate((10.0, 20.0, 10.0))]
    ours = [run(ECLECTUS, pair, mean, lost=pair) for pair, mean in reversed([*enumerate((5.0, 10.0, 5.0))])]
    table = lines([*theirs, *ours])
    assert table[1].split() == [
        "mean",
        "response,",
        "s",
        "13.33",
        "6.67",
        "0.50",
        "(0.50",
        "to",
        "0.50):",
        "lower",
    ]
    assert table[2].endswith("equal")
    assert table[4] == "  pods lost: 0, 3"


def test_one_pair_decides_nothing() -> None:
    table = lines([run(KUBE_SCHEDULER, 0, 10.0), run(ECLECTUS, 0, 5.0)])
    assert table[1].endswith("0.50: one pair decides nothing")


def test_loops_run_in_sessions_of_their_own_and_end_with_the_block() -> None:
    with starved._loops(2) as pids:
        assert len({os.getsid(pid) for pid in pids} - {os.getsid(0)}) == 2
    for pid in pids:
        assert not os.path.exists(f"/proc/{pid}")
