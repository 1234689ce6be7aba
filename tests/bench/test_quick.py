"""`make bench BENCH=--quick` runs whole: every policy, the simulator and, live, the comparison."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from eclectus.policies.table import PLACE
from eclectus_bench import __main__ as bench
from eclectus_bench import decisions, engine, plans, preemption, startup
from eclectus_bench.course.sizes import QUICK
from eclectus_bench.rules.table import RULES
from eclectus_e2e.testbed import clusters


def quick(output: Path, *arguments: str) -> dict[str, Any]:
    """The report of a quick course."""
    assert bench.main(["--quick", *arguments]) == 0
    report: dict[str, Any] = json.loads((output / "report.json").read_text())
    return report


@pytest.mark.long
@pytest.mark.timeout(600)  # 20 s of CPU, which may take long where other tests run
def test_without_a_control_plane_policies_steps_and_the_simulator_are_measured(
    output: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench, "built", lambda: None)
    report = quick(output)
    measured = {(one["policy"], one["workload"], one["nodes"]) for one in report["decisions"]["costs"]}
    course = decisions.QUICK
    assert measured == {
        (policy, workload, nodes)
        for policy in PLACE
        for workload in decisions.WORKLOADS
        for nodes in course.node_counts
    }
    sizes = engine.QUICK
    of_sizes = 4 * len(sizes.jobs) + 3 * len(sizes.priced) + 2 * (len(sizes.pools) + len(sizes.rounds))
    assert len(report["engine"]) == 10 + of_sizes
    assert len(report["rules"]) == len(RULES) * len(QUICK.rules.node_counts)
    assert [row["jobs"] for row in report["plans"]] == list(plans.QUICK.jobs)
    assert report["simulator"]["tasks"] == QUICK.tasks
    assert report["comparisons"] == report["workloads"] == []
    printed = capsys.readouterr().out
    assert "match: left out" in printed
    assert all(policy in printed for policy in PLACE)


def test_a_policy_that_leaves_pods_is_an_error_with_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decisions, "run", lambda engine, batches: 1)
    with pytest.raises(RuntimeError, match="jiq, burst: only 2 of 21 pods were placed on 3 empty nodes"):
        decisions._once("jiq", "burst", 3, 20)


@pytest.mark.live
def test_on_a_control_plane_both_schedulers_are_compared(output: Path) -> None:
    if clusters.choice():
        pytest.skip("the bench builds its control plane itself")
    report = quick(output, "--only", "match")
    assert report["decisions"]["costs"] == []
    assert [run["scheduler"] for run in report["drains"]] == ["kube-scheduler", "eclectus", "ceiling"]
    for run in report["drains"]:
        assert run["events"] == run["pods"] == QUICK.match.pods
        assert run["reported_per_second"] <= run["pods_per_second"]
        assert run["scheduler_cpu_ms_from_start"] >= run["scheduler_cpu_ms"] > 0
    kube, ours = report["streams"]
    assert kube["pods"] == ours["pods"] > 0, "the same stream for both"
    assert 0 < ours["p50_seconds"] <= ours["p99_seconds"]
    assert not (output / "cluster").exists()
    assert (output / "logs" / "eclectus.log").exists()
    assert all(row["kube_scheduler"] > 0 < row["eclectus"] for row in report["comparisons"])


def test_requests_are_measured_beside_those_of_a_general_client(
    output: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    quick(output, "--only", "requests")
    printed = capsys.readouterr().out
    assert re.search(r"1 in flight: transport \d+, aiohttp \d+\n", printed)
    assert re.search(r"32 in flight: transport \d+, aiohttp \d+\n", printed)


@pytest.mark.live
def test_on_a_control_plane_the_time_to_the_first_bind_is_measured(
    output: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if clusters.choice():
        pytest.skip("the bench builds its control plane itself")
    quick(output, "--only", "startup")
    printed = capsys.readouterr().out
    assert "eclectus: " in printed
    assert all(stage in printed for stage in startup.STAGES)
    assert "times as long; wanted: at most 1.6" in printed
    assert re.search(r"by package, in modules: .*numpy \d+ ms \(\d+\)", printed)


@pytest.mark.live
def test_on_a_control_plane_preemptors_of_both_schedulers_get_their_nodes(
    output: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if clusters.choice():
        pytest.skip("the bench builds its control plane itself")
    quick(output, "--only", "preemption")
    printed = capsys.readouterr().out
    victims = preemption.VICTIMS_OF_ONE * QUICK.preemption.preemptors
    evicted = dict(re.findall(r"^([a-z-]+): .*?(\d+) pods evicted", printed, re.MULTILINE))
    assert int(evicted["eclectus"]) == victims  # as few as needed
    assert (
        int(evicted["kube-scheduler"]) >= victims
    )  # its evictions are asynchronous: some runs have one more


@pytest.mark.live
def test_on_a_control_plane_plain_pods_are_measured_beside_pods_that_wait_for_volumes(
    output: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if clusters.choice():
        pytest.skip("the bench builds its control plane itself")
    quick(output, "--only", "prebind")
    printed = capsys.readouterr().out
    waiting = QUICK.prebind.waiting
    bound = dict(re.findall(rf"1, (\w+): \d+ pods/s, (\d+) of the {waiting} others", printed))
    assert int(bound["without"]) == waiting
    assert int(bound["beside"]) > 0  # provisioned while the plain pods arrived
    assert "CPU time of waiting, over that of plain pods: " in printed


@pytest.mark.live
def test_on_a_control_plane_workloads_of_every_kind_of_surroundings_are_compared(
    output: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if clusters.choice():
        pytest.skip("the bench builds its control plane itself")
    names = ["anti-affinity", "unschedulable", "gated", "churn", "volumes"]
    report = quick(output, "--only", "workloads", "--rows", ",".join(names))
    assert [row["workload"] for row in report["workloads"]] == names
    for row in report["workloads"]:
        assert row["problem"] == ""
        assert [run["scheduler"] for run in row["drains"]] == ["kube-scheduler", "eclectus"]
        assert all(run["events"] >= run["pods"] > 0 for run in row["drains"])
        assert all(each["ratio"] > 0 for each in row["comparisons"])
    assert "not measured" not in capsys.readouterr().out
