"""The comparison with kube-scheduler, small: every pod bound, every event written, nothing left behind."""

import asyncio

import pytest

from eclectus_bench import match
from eclectus_bench.load import Binds
from eclectus_bench.match import Sizes, run_match
from eclectus_e2e.errors import StartError
from eclectus_e2e.testbed import clusters


def test_a_scheduler_that_has_ended_is_not_waited_for():
    gone = 2**22 + 1  # beyond the kernel's largest pid
    with pytest.raises(StartError, match="ended with 0 of 3 pods bound"):
        asyncio.run(Binds().wait_for(3, gone, lambda text: None))


@pytest.mark.live
def test_a_small_match(tmp_path, monkeypatch):
    if clusters.choice():
        pytest.skip("the bench builds its control plane itself")
    monkeypatch.setattr(match, "OUTPUT", tmp_path)
    result = run_match(Sizes(nodes=20, pods=60, pairs=1, stream_seconds=1.0))
    assert [run.scheduler for run in result.drains] == ["kube-scheduler", "eclectus", "ceiling"]
    for run in result.drains:
        assert run.events == run.pods == 60
        assert run.reported_per_second <= run.pods_per_second
        assert run.scheduler_cpu_ms_from_start >= run.scheduler_cpu_ms > 0
    kube, ours = result.streams
    assert kube.pods == ours.pods > 0  # the same stream for both
    assert 0 < ours.p50_seconds <= ours.p99_seconds
    assert not (tmp_path / "cluster").exists()
    assert (tmp_path / "logs" / "eclectus.log").exists()
