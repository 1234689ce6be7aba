"""The table of workloads: its pods, what is wanted, the report, and that a failed one stops no other."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from drains import drained
from eclectus.kube.objects import decode_pod
from eclectus.kube.translate import task_from
from eclectus_bench.course import options
from eclectus_bench.course.sizes import FULL, QUICK
from eclectus_bench.drain import Drain
from eclectus_bench.load import reach
from eclectus_bench.schedulers import ECLECTUS, KUBE_SCHEDULER, SchedulerUnderTest
from eclectus_bench.workloads import gangs, pods, report, run, surroundings
from eclectus_bench.workloads.run import Measured
from eclectus_bench.workloads.site import Run, Site, Sizes
from eclectus_bench.workloads.table import WORKLOADS, Workload
from eclectus_e2e.errors import ApiError, StartError
from eclectus_e2e.progress import Progress

BY_NAME = {each.name: each for each in WORKLOADS}
NAMESPACES = ("standing", "measured")
SIZES = Sizes(nodes=100, pairs=1, pods=None, standing=4_000, waiting=10)


def task_of(workload: Workload) -> Any:
    found = workload.pod_of("pod-000004", "eclectus", NAMESPACES)
    found["metadata"] |= {"namespace": "measured", "uid": "uid"}
    return task_from(decode_pod(msgspec.json.encode(found)))


# -- the rows ------------------------------------------------------------------------------------------


def test_names_are_unique() -> None:
    assert len(BY_NAME) == len(WORKLOADS)


@pytest.mark.parametrize(("nodes", "wanted"), [(4_999, None), (5_000, 1.8), (14_999, 1.8), (15_000, 3.0)])
def test_what_is_wanted_depends_on_the_nodes(nodes: int, wanted: float | None) -> None:
    assert BY_NAME["basic"].ratio_least(nodes) == wanted


def test_on_many_nodes_something_is_wanted_of_every_workload() -> None:
    assert all(each.ratio_least(15_000) for each in WORKLOADS)


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda each: each.name)
def test_eclectus_refuses_no_measured_pod(workload: Workload) -> None:
    assert task_of(workload).spec.unsupported == ()


def test_rules_about_pods_count_those_that_stand_there_and_the_measured_ones() -> None:
    near, apart = task_of(BY_NAME["affinity"]).spec, task_of(BY_NAME["anti-affinity"]).spec
    rather = task_of(BY_NAME["preferred"]).spec
    terms = (*near.affinity_terms, *apart.own_anti_affinity, *(each.term for each in rather.preferred_terms))
    assert [(each.topology_key, set(each.namespaces)) for each in terms] == [
        (pods.ZONE, set(NAMESPACES)),
        (pods.HOSTNAME, set(NAMESPACES)),
        (pods.HOSTNAME, set(NAMESPACES)),
    ]
    assert near.matches_itself


def test_spread_counts_the_measured_pods() -> None:
    spread = task_of(BY_NAME["spread-nodes"]).spec.spread
    assert [(each.topology_key, each.counts_itself) for each in spread] == [
        (pods.ZONE, True),
        (pods.HOSTNAME, True),
    ]


def test_pods_that_need_a_node_each_are_no_more_than_the_nodes_without_one() -> None:
    assert SIZES.standing_pods == 80
    assert BY_NAME["anti-affinity"].count(SIZES) == 20
    assert BY_NAME["affinity"].count(SIZES) == 1_000
    assert BY_NAME["anti-affinity"].count(FULL.workloads) == 1_000
    assert FULL.workloads.standing_pods == 4_000


# -- gangs ----------------------------------------------------------------------------------------------


class SentRequests:
    """Takes the place of Load: what was sent."""

    def __init__(self) -> None:
        self.created: list[Any] = []
        self.deleted: list[str] = []

    async def send(self, _method: str, requests: Iterable[tuple[str, Any]]) -> None:
        self.created += [body for _, body in requests]

    async def delete_protected(self, paths: Sequence[str]) -> None:
        self.deleted += paths


def test_every_pod_of_a_gang_has_a_group_that_starts_with_all_of_its_pods() -> None:
    load: Any = SentRequests()
    site = Site(load, SIZES, gangs.member, NAMESPACES, lambda text: None)
    names = [f"pod-{at:06}" for at in range(7)]

    async def created() -> None:
        async with gangs.pod_groups(Run(site, "measured", "eclectus", names, lambda text: None)):
            assert load.deleted == []

    asyncio.run(created())
    started = {
        each["metadata"]["name"]: each["spec"]["schedulingPolicy"]["gang"]["minCount"]
        for each in load.created
    }
    of_pods = Counter(
        gangs.member(name, "eclectus", NAMESPACES)["spec"]["schedulingGroup"]["podGroupName"]
        for name in names
    )
    assert started == of_pods == {"gang-000000": 3, "gang-000001": 3, "gang-000002": 1}
    assert len(load.deleted) == 3


def test_a_thousand_gangs_are_measured_and_both_schedulers_hold_to_them() -> None:
    assert BY_NAME["gangs"].count(FULL.workloads) == 3_000
    assert [each.name for each in WORKLOADS if each.kube_scheduler_gates] == ["gangs"]
    assert task_of(BY_NAME["gangs"]).gang.name == "gang-000001"


# -- the command line -----------------------------------------------------------------------------------


def test_rows_are_chosen_by_name_and_run_in_the_order_of_the_table() -> None:
    chosen = options.parse(None, ["--rows", "churn,basic"])
    assert [each.name for each in chosen.rows] == ["basic", "churn"]
    assert options.parse(None, []).rows == WORKLOADS


def test_an_unknown_row_is_an_error_that_names_it_and_the_known_ones(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        options.parse(None, ["--rows", "basic,spreads"])
    assert "no workload 'spreads': basic, spread," in capsys.readouterr().err


def test_numbers_given_hold_for_match_and_workloads_and_the_others_stay() -> None:
    course = options.course_of(options.parse(None, ["--quick", "--nodes", "30", "--pairs", "2"]))
    for sizes, base in ((course.match, QUICK.match), (course.workloads, QUICK.workloads)):
        assert (sizes.nodes, sizes.pairs, sizes.pods) == (30, 2, base.pods)
    assert options.course_of(options.parse(None, [])) == FULL


# -- the report ------------------------------------------------------------------------------------------


def measured(name: str, theirs: list[float], ours: list[float], **fields: float) -> Measured:
    runs = [drained(KUBE_SCHEDULER, pair, pace) for pair, pace in enumerate(theirs)]
    return Measured(name, runs + [drained(ECLECTUS, pair, pace, **fields) for pair, pace in enumerate(ours)])


def test_a_row_has_the_ratio_of_pairs_with_its_spread_and_what_is_wanted() -> None:
    found = measured("basic", [100, 200, 400], [300, 400, 400], scheduler_cpu_ms=1.2, peak_mib=100.0)
    row = report.row(BY_NAME["basic"], found, 5_000)
    _, line = report.table([row])
    assert " ".join(line.split()) == (
        "basic 200 400 2.00 1.00 .. 3.00 >= 1.8 met 2.00 0.60 <= 0.5 MISSED 0.50 <= 1 met"
    )
    (content,) = report.content([row])
    assert content["workload"] == "basic"
    assert [each["ratio"] for each in content["comparisons"]] == [2.0, 2.0, 0.6, 0.5]
    assert len(content["drains"]) == 6


def test_nothing_is_wanted_of_a_small_cluster() -> None:
    row = report.row(BY_NAME["basic"], measured("basic", [100], [101]), 100)
    assert {each.met for each in row.comparisons} == {None}


def test_a_workload_that_failed_says_why_instead_of_ratios() -> None:
    found = Measured("churn", [drained(KUBE_SCHEDULER, 0, 100)], "the scheduler has ended")
    row = report.row(BY_NAME["churn"], found, 5_000)
    assert list(report.table([row]))[1].split(maxsplit=1) == [
        "churn",
        "not measured: the scheduler has ended",
    ]


# -- runs ------------------------------------------------------------------------------------------------


def test_a_workload_that_fails_stops_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = []

    @asynccontextmanager
    async def no_nodes(*_: Any) -> AsyncIterator[None]:
        yield

    async def fails_in_spread(
        workload: Workload, site: Any, scheduler: Any, pids: Any, *, pair: int
    ) -> Drain:
        ran.append((workload.name, pair, scheduler.name))
        if workload.name == "spread":
            raise ExceptionGroup(
                "requests", [ApiError("POST", 409, "AlreadyExists", "there"), StartError("x")]
            )
        return drained(scheduler.name, pair, 100)

    def scheduler(name: str) -> Any:
        return lambda plane, *_: SchedulerUnderTest(name, name, lambda: pytest.fail("it is not started"))

    monkeypatch.setattr(run, "with_nodes", no_nodes)
    monkeypatch.setattr(run, "_run", fails_in_spread)
    monkeypatch.setattr(run, "plane_pids", lambda plane: {})
    monkeypatch.setattr(run, "kube_scheduler", scheduler(KUBE_SCHEDULER))
    monkeypatch.setattr(run, "eclectus", scheduler(ECLECTUS))
    rows = [BY_NAME[name] for name in ("spread", "gated")]
    plane: Any = None
    first, second = asyncio.run(run._measure(rows, SIZES, plane, Progress("test")))
    assert first.problem == "POST: 409 AlreadyExists: there; x"
    assert second.problem == ""
    assert [each.scheduler for each in second.drains] == [KUBE_SCHEDULER, ECLECTUS]
    assert ran == [("spread", 0, KUBE_SCHEDULER), ("gated", 0, KUBE_SCHEDULER), ("gated", 0, ECLECTUS)]


@pytest.mark.parametrize(
    ("conditions", "refused"),
    [
        ([], False),
        ([{"type": "PodScheduled", "status": "True"}], False),
        ([{"type": "Ready", "status": "False"}], False),
        ([{"type": "Ready", "status": "True"}, {"type": "PodScheduled", "status": "False"}], True),
    ],
)
def test_a_pod_is_refused_when_its_condition_says_so(conditions: list[Any], refused: bool) -> None:
    raw = {"metadata": {"name": "a"}, "status": {"conditions": conditions}}
    assert surroundings._is_refused(msgspec.convert(raw, surroundings._Pod)) is refused


def test_a_scheduler_that_has_ended_is_named_with_what_it_had_done() -> None:
    gone = 2**22 + 1  # beyond the kernel's largest pid
    with pytest.raises(StartError, match="ended with 2 of 3 pods refused"):
        asyncio.run(reach(3, lambda: 2, "refused", gone, lambda text: None))
