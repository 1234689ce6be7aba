"""The contest of tenants: how runs are reckoned up, what contestants are given, and how it is shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from eclectus.api.names import WORK_SECONDS
from eclectus_bench.contest import contestants, kueue, report
from eclectus_bench.contest.plan import FULL, PODS, QUICK, Tenant, job
from eclectus_bench.contest.reckoning import (
    Outcome,
    Played,
    PodRun,
    evicted,
    first_start,
    jain,
    minimum_held,
    outcome,
    rate,
    sample,
)
from eclectus_bench.contest.run import OPTIONS
from eclectus_e2e.pairs import EQUAL, FEW_PAIRS, LOST, WON

# Six slots, of which each tenant has a minimum of two. `greedy` has all of them until `late` comes at second
# 3 and takes two, for which two pods go at second 5; `steady` never comes.
GREEDY = [PodRun("greedy", 0.0, 20.0, True)] * 4 + [PodRun("greedy", 0.0, 5.0, False)] * 2
LATE = [PodRun("late", 5.0, 9.0, True), PodRun("late", 6.0, 30.0, False)]
PLAYED = Played(
    contestant="eclectus",
    pair=0,
    tenants=("greedy", "steady", "late"),
    slots=6,
    minimum=2,
    measured_from=6.0,
    ends=9.0,
    pods_of_a_job=2,
    submitted={"greedy": [0.0] * 4, "steady": [], "late": [3.0, 4.0]},
    pods=[*GREEDY, *LATE],
    burst_starts=[1.0, 2.0, 1.5],
    cpu_seconds={"eclectus": 1.0, "kube-apiserver": 2.0, "etcd": 0.5},
    strangers_cores=0.1,
)


def test_what_tenants_hold_demand_and_are_entitled_to_at_a_moment() -> None:
    at_two, at_seven = sample(PLAYED, 2.0), sample(PLAYED, 7.0)
    assert (at_two.held, at_two.demanded, at_two.entitled) == ((6, 0, 0), (8, 0, 0), (6.0, 0.0, 0.0))
    assert (at_seven.held, at_seven.demanded, at_seven.entitled) == ((4, 0, 2), (8, 0, 4), (3.0, 0.0, 3.0))


def test_a_run_is_reckoned_up() -> None:
    found = outcome(PLAYED)
    assert found.furthest_percent == pytest.approx(100 / 3)
    assert found.astray_percent == pytest.approx(100 / 6)
    assert found.in_use_percent == 100.0
    assert found.jain == pytest.approx(0.9)
    assert (found.first_start_seconds, found.minimum_seconds) == (2.0, 3.0)
    assert (found.evictions, found.lost_seconds) == (2, 10.0)
    assert found.starts_a_second == pytest.approx(1 / 3)
    assert found.burst_a_second == 2.0
    assert (found.scheduler_cpu_seconds, found.plane_cpu_seconds) == (1.0, 2.5)


def test_what_runs_at_the_end_was_not_evicted() -> None:
    assert {each.tenant for each in evicted(PLAYED)} == {"greedy"}


def test_a_tenant_that_starts_nothing_never_holds_its_minimum() -> None:
    never = replace(PLAYED, pods=GREEDY)
    assert (first_start(never), minimum_held(never)) == (None, None)
    one = replace(PLAYED, pods=[*GREEDY, LATE[0]])
    assert (first_start(one), minimum_held(one)) == (2.0, None)


def test_jains_index_is_one_for_equal_parts_and_one_over_their_number_for_one_that_has_all() -> None:
    assert jain([0.5, 0.5, 0.5]) == pytest.approx(1.0)
    assert jain([3.0, 0.0, 0.0]) == pytest.approx(1 / 3)
    assert jain([0.0, 0.0]) == 0.0
    assert rate([0.0, 0.5, 1.0]) == 2.0


def test_all_of_what_tenants_submit_is_more_than_they_are_entitled_to() -> None:
    """Else the contest would end before its time, and no one would wait."""
    assert list(Tenant("x", comes=2.0, at_once=2, a_second=2.0, work=1.0).arrivals(3.5)) == [
        2.0,
        2.0,
        2.5,
        3.0,
        3.5,
    ]
    for sizes in (FULL, QUICK):
        assert sizes.minimum % PODS == 0, "Kueue can give each tenant whole Jobs"
        for tenant in sizes.tenants:
            work = PODS * tenant.work * len(list(tenant.arrivals(sizes.ends)))
            assert work > (sizes.ends - tenant.comes) * sizes.minimum


def test_a_job_is_of_pods_that_may_be_evicted() -> None:
    made = job("j", "eclectus", {"q": "x"}, 6.0)
    assert made["spec"]["parallelism"] == made["spec"]["completions"] == PODS
    assert made["spec"]["podFailurePolicy"]["rules"][0]["action"] == "Ignore"
    assert made["spec"]["template"]["metadata"]["annotations"] == {WORK_SECONDS: "6"}


def test_tenants_have_the_same_minima_and_weights_with_both() -> None:
    pools = {each["metadata"]["name"]: each["spec"] for each in contestants.pools(["a", "b"], 40)}
    objects = kueue.queues(["a", "b"], 40)
    of_kind = {each["metadata"]["name"]: each["spec"] for each in objects if each["kind"] == "ClusterQueue"}
    assert pools.keys() == of_kind.keys() == {"a", "b"}
    for name, spec in of_kind.items():
        (flavor,) = spec["resourceGroups"][0]["flavors"]
        assert flavor["resources"][0]["nominalQuota"] == pools[name]["minShare"]["amounts"]["cpu"] == "40"
        assert float(spec["fairSharing"]["weight"]) == pools[name]["weight"] == 1
        assert spec["preemption"]["reclaimWithinCohort"] == "Any"
    assert [each["metadata"]["namespace"] for each in objects if each["kind"] == "LocalQueue"] == ["a", "b"]


def test_kueues_webhooks_are_served_on_this_machine() -> None:
    hook = {"clientConfig": {"service": {"name": "s", "namespace": "n", "path": "/p"}}}
    made: dict[str, Any] = kueue.local({"kind": "MutatingWebhookConfiguration", "webhooks": [hook]}, 9443)
    assert made["webhooks"][0]["clientConfig"]["service"]["port"] == 9443
    converted = {"conversion": {"webhook": {"clientConfig": {"service": {"name": "s"}}}}}
    crd = kueue.local({"kind": "CustomResourceDefinition", "spec": converted}, 9443)
    assert crd["spec"]["conversion"]["webhook"]["clientConfig"]["service"]["port"] == 9443
    service = kueue.local({"kind": "Service", "metadata": {}, "spec": {"type": "ClusterIP"}}, 9443)
    assert service["spec"] == {"type": "ExternalName", "externalName": "localhost"}
    assert not OPTIONS.routes_to_endpoints, "a route to EndpointSlices refuses such Services"
    role = {"kind": "ClusterRole", "rules": []}
    assert kueue.local(dict(role), 9443) == role


def test_kueue_runs_with_fair_sharing_and_without_a_limit_of_its_client() -> None:
    settings = kueue.configuration(9443, 8081, Path("/certificates"), 5000.0)
    assert settings["fairSharing"]["preemptionStrategies"]
    assert settings["clientConnection"]["qps"] == 5000.0


def of(**changes: float | None) -> Outcome:
    return replace(outcome(PLAYED), **changes)


ROW = report.Row("seconds", lambda each: each.minimum_seconds)
MORE = report.Row("rate", lambda each: each.starts_a_second, more=True)


@pytest.mark.parametrize(
    ("row", "ours", "theirs", "expected"),
    [
        (ROW, [1.0, 1.1, 0.9, 1.0, 1.0], [2.0, 2.2, 2.1, 2.0, 2.0], WON),
        (MORE, [1.0, 1.1, 0.9, 1.0, 1.0], [2.0, 2.2, 2.1, 2.0, 2.0], LOST),
        (ROW, [2.0, 2.2, 2.1, 2.0, 2.0], [1.0, 1.1, 0.9, 1.0, 1.0], LOST),
        (ROW, [1.0, 3.0, 2.0, 2.0, 2.0], [2.0, 2.2, 2.1, 2.0, 2.0], EQUAL),
        (ROW, [1.0] * 5, [1.0] * 5, EQUAL),
        (ROW, [1.0] * 4, [2.0] * 4, FEW_PAIRS),
        (ROW, [1.0] * 5, [None] * 5, WON),
        (ROW, [None] * 5, [1.0] * 5, LOST),
        (ROW, [1.0, None] * 3, [1.0] * 6, report.NOT_COMPARED),
    ],
)
def test_one_is_ahead_only_where_the_interval_of_the_differences_says_so(
    row: report.Row, ours: list[float | None], theirs: list[float | None], expected: str
) -> None:
    assert report.verdict(row, ours, theirs) == expected


def test_a_cell_has_the_interval_and_says_of_how_many_runs() -> None:
    assert report.cell([1.0, 1.0]) == "1.000 ±0.000"
    assert report.cell([3.0]) == "3.0"
    assert report.cell([3.0, None]) == "3.0 (1 of 2)"
    assert report.cell([None, None]) == "never"


def test_the_table_has_a_column_for_each_contestant_and_ours_comes_first() -> None:
    runs = [
        replace(PLAYED, contestant=name, pair=pair) for pair in range(5) for name in ("kueue", "eclectus")
    ]
    head, *rows = report.table(runs)
    assert head.split() == ["eclectus", "kueue", "beside", "kueue"]
    assert len(rows) == len(report.ROWS)
    assert all(row.endswith(EQUAL) for row in rows)
    lines = list(report.shares(replace(PLAYED, ends=20.0)))
    assert lines[1].split() == ["greedy", "4", "4", "3"]
    (first, *_) = report.content(runs)
    assert (first["scheduler"], first["evictions"]) == ("kueue", 2)
