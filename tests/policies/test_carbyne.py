"""Carbyne against worked examples: the paper's Figure 2 (C1), and what bounding overhangs prevents (C2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from builders import make_engine, make_node, make_task
from carbyne_cases import planner_of
from dag_world import DagWorld, job, stage
from eclectus.accounts.known_jobs import KnownJob
from eclectus.framework import Place
from eclectus.maths.stage_rank_rules import STAGE_ORDERS
from eclectus.model.events import JobSeen
from eclectus.model.job import Job
from eclectus.model.objects import Spec
from eclectus.model.pool import Pool
from eclectus.policies.carbyne import Carbyne
from eclectus.policies.carbyne.planned_job import (
    PROBES,
    PlannedJob,
    PodsOfNamespace,
    path_of,
    set_shares,
    time_left,
)
from eclectus.policies.place.fit import BestFit
from worlds import numbered, small_world

BY_PATH = STAGE_ORDERS["cp"]


def world(
    capacity: float = 1.0, place: Place | None = None, pools: list[Pool] | None = None, **settings: object
) -> DagWorld:
    order = Carbyne(**settings)  # type: ignore[arg-type]
    engine = make_engine(place or BestFit(), order=order)
    return DagWorld(engine, [make_node("n", cpu=capacity)], pools=pools or [])


IN_POOLS = pytest.mark.parametrize("in_pools", [False, True], ids=["", "pools"])


def one_pool_each(jobs: Sequence[Job], *, in_pools: bool) -> tuple[list[Pool], Sequence[Job]]:
    """Pools of equal weight with a job each; or none, and the jobs as they are."""
    if not in_pools:
        return [], jobs
    pools = [Pool(f"of-{each.name.lower()}", namespaces=("default",)) for each in jobs]
    return pools, [replace(each, pool=pool.name) for each, pool in zip(jobs, pools, strict=True)]


def figure_2() -> tuple[Job, Job]:
    first = job("J1", stage("S0", 2, 80, 0.5), stage("S1", 3, 210, 1.0), stage("S2", 1, 100, 0.1, 0, 1))
    return first, job("J2", stage("S0", 2, 290, 1.0))


@pytest.mark.parametrize(
    ("settings", "ends"),
    [
        ({}, {"J1": 2.1, "J2": 1.0}),
        ({"overhang": "bounded"}, {"J1": 2.1, "J2": 1.0}),
        ({"intra": "dagps"}, {"J1": 2.1, "J2": 1.0}),
        ({"intra": "tetris"}, {"J1": 2.1, "J2": 1.0}),
        ({"altruism": 0.0, "leftover": "none"}, {"J1": 2.1, "J2": 2.0}),
    ],
    ids=["carbyne", "bounded", "dagps", "tetris", "strict shares"],
)
@IN_POOLS
def test_figure_2(settings: dict[str, object], ends: dict[str, float], in_pools: bool) -> None:
    pools, jobs = one_pool_each(figure_2(), in_pools=in_pools)
    run = world(pools=pools, **settings)
    run.submit(*jobs)
    assert run.run().ends == pytest.approx(ends)


@pytest.mark.parametrize("until", [0.0, 0.5, 1.0, 1.5, 2.0])
@IN_POOLS
def test_figure_2_ends_as_if_there_had_been_no_restart(until: float, in_pools: bool) -> None:
    """C13."""
    pools, jobs = one_pool_each(figure_2(), in_pools=in_pools)
    run = world(pools=pools)
    run.submit(*jobs)
    run.run(until)
    run.restart(make_engine(BestFit(), order=Carbyne()))
    assert run.run().ends == pytest.approx({"J1": 2.1, "J2": 1.0})


def test_a_job_plans_first_what_its_setting_says() -> None:
    """The share holds two tasks at a time. b first, as bfs lets stages without parents start, is too long."""
    first = job("J1", stage("a", 1, 500, 3.0), stage("b", 1, 500, 1.0), stage("c", 2, 500, 2.0))
    finish = {}
    for intra in ("cp", "bfs", "dagps", "tetris"):
        run = world(2.0, intra=intra)
        run.submit(first, job("J2", stage("s", 9, 500, 1.0)))
        finish[intra] = run.plans["J1"][0].finish_seconds
    assert finish == pytest.approx({"cp": 4.0, "bfs": 5.0, "dagps": 4.0, "tetris": 4.0})


@pytest.mark.parametrize("overhang", ["free", "bounded"])
@pytest.mark.parametrize("altruism", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("intra", ["cp", "bfs", "dagps", "tetris"])
@IN_POOLS
def test_a_lone_job_ends_when_its_plan_says(
    intra: str, altruism: float, overhang: str, in_pools: bool
) -> None:
    """Two cores: b and c last 11 s one after the other, and the ten tasks of a fit beside them."""
    stages = stage("a", 10, 1000, 1.0), stage("b", 1, 1000, 1.0), stage("c", 1, 1000, 10.0, 1)
    pools, jobs = one_pool_each([job("j", *stages)], in_pools=in_pools)
    run = world(2.0, pools=pools, intra=intra, altruism=altruism, overhang=overhang)
    run.submit(*jobs)
    assert run.plans["j"][0].finish_seconds == pytest.approx(11.0)
    assert run.run().ends == pytest.approx({"j": 11.0})


def test_figure_2_step_by_step() -> None:
    run = world()
    run.submit(*figure_2())
    assert [each[1:] for each in run.starts] == [("J2", "S0"), ("J1", "S1"), ("J2", "S0"), ("J1", "S1")]
    plans = {name: plans[0] for name, plans in run.plans.items()}
    assert {name: plan.finish_seconds for name, plan in plans.items()} == pytest.approx(
        {"J1": 2.1, "J2": 2.0}
    )
    assert (plans["J1"].lent, plans["J1"].borrowed) == ((("cpu", 80),), ())
    assert (plans["J2"].lent, plans["J2"].borrowed) == ((), (("cpu", 80),))
    run.run(until=1.0)
    assert [each for each in run.starts if each[0]] == [
        (1.0, "J1", "S1"),
        (1.0, "J1", "S0"),
        (1.0, "J1", "S0"),
    ]


def test_time_that_a_job_has_gained_with_room_of_others_is_lent() -> None:
    """Up to 2 s `wide` has 7 of the 8 places, and gains 1.5 s. At 2 s it can wait, and `late` takes all."""
    run = world(8.0)
    wide = job("wide", stage("s", 40, 1000, 1.0))
    run.submit(wide, job("late", stage("x", 1, 1000, 2.0), stage("y", 8, 1000, 1.0, 0)))
    run.run()
    assert [name for at, name, _ in run.starts if at == 2.0] == ["late"] * 8
    assert run.ends == pytest.approx({"late": 3.0, "wide": 7.0})
    deadlines = [plan.deadline for plan in run.plans["wide"] if plan.deadline is not None]
    assert deadlines == sorted(deadlines, reverse=True)


def test_a_deadline_follows_the_dominant_share_and_not_another_resource() -> None:
    known = KnownJob(job("j", stage("s", 8, 1000, 1.0)))
    two_resources = (8000.0, 8000.0)
    planned = PlannedJob(known, two_resources, lambda amounts: (float(dict(amounts)["cpu"]), 1.0), BY_PATH)
    for now, share, deadline in (
        (0.0, (2000.0, 100.0), 4.0),
        (0.5, (2000.0, 400.0), 4.0),  # four times as much of what the job needs least
        (1.0, (4000.0, 400.0), 2.5),  # twice the dominant share: half of the time that is left
    ):
        planned.share = share
        planned.replan(now, lambda _: None, work_lost=False)
        assert planned.deadline.at == deadline
        known.stages[0].succeed(f"early-{now}")
        known.stages[0].succeed(f"early-too-{now}")
        planned.counts = planned.count()


def test_the_last_of_ten_jobs_keeps_the_time_that_it_has_gained() -> None:
    """As above, beside eight small jobs: at 2 s `late` does not get all places."""
    run = world(8.1)
    wide = job("wide", stage("s", 40, 1000, 1.0))
    chain = [stage("s", 1, 1, 1.0), stage("t", 1, 1, 1.0, 0), stage("u", 1, 1, 1.0, 1)]
    small = [job(f"small-{at}", *chain) for at in range(8)]
    run.submit(wide, job("late", stage("x", 1, 1000, 2.0), stage("y", 8, 1000, 1.0, 0)), *small)
    planner = run.engine._state.profiles["eclectus"].order._planner  # type: ignore[attr-defined]
    assert [uid for uid, each in planner.jobs.items() if not each.lends_gains] == ["uid-wide"]
    run.run()
    assert {"late", "wide"} < {name for at, name, _ in run.starts if at == 2.0}


@pytest.mark.parametrize(("now", "left"), [(0.0, 5.0), (4.8, 0.2), (5.0, 0.0), (5.1, 0.5), (9.0, 0.5)])
def test_a_running_task_ends_as_estimated_until_it_has_not(now: float, left: float) -> None:
    assert time_left(5.0, now, 0.0) == pytest.approx(left)


def delay() -> tuple[Job, Job]:
    first = job("J1", stage("x", 1, 500, 2.0), stage("y", 1, 500, 1.0), stage("z", 1, 1000, 1.0, 0, 1))
    return first, job("J2", stage("S0", 3, 500, 10.0))


@pytest.mark.parametrize(
    ("overhang", "ends"), [("free", {"J1": 11.0, "J2": 11.0}), ("bounded", {"J1": 3.0, "J2": 13.0})]
)
@IN_POOLS
def test_a_long_task_above_its_share_must_end_before_another_job_needs_the_room(
    overhang: str, ends: dict[str, float], in_pools: bool
) -> None:
    """C2."""
    pools, jobs = one_pool_each(delay(), in_pools=in_pools)
    run = world(2.0, pools=pools, overhang=overhang)
    run.submit(*jobs)
    assert run.run().ends == pytest.approx(ends)


def test_what_is_withheld_says_why() -> None:
    run = world(2.0, overhang="bounded")
    run.submit(*delay())
    run.run(until=2.5)
    assert [(each.reason, each.message) for each in run.reports] == [
        (
            "WaitingForNode",
            "the room is needed again before this pod would end: by its own job, or by others",
        )
    ]


def test_a_pod_with_the_label_of_probes_that_asks_for_room_shares_as_the_others_of_its_namespace() -> None:
    assert path_of(make_task("t", probe=True)) == "default/"
    assert path_of(make_task("t", spec=Spec(requests=(("pods", 1),), probe=True))) == PROBES


@pytest.mark.parametrize(
    ("services", "own_jobs", "shares"),
    [
        (0.0, 0, {"plain": 50, "a": 50, "b": 0}),
        (70.0, 0, {"plain": 70, "a": 30, "b": 0}),
        (20.0, 1, {"plain": 25, "a": 50, "b": 25}),
        (40.0, 1, {"plain": 40, "a": 50, "b": 10}),
        (70.0, 1, {"plain": 70, "a": 30, "b": 0}),
    ],
)
def test_services_have_what_they_hold_from_the_share_of_their_namespace_first(
    services: float, own_jobs: int, shares: dict[str, int]
) -> None:
    """Namespace b has pods that ask for all and hold services; a has two jobs, b another one or none."""
    jobs = {}
    for at, namespace in enumerate(["a", "a"] + ["b"] * own_jobs):
        known = KnownJob(job(f"j{at}", stage("s", 100, 1000, 1.0), namespace=namespace))
        jobs[f"j{at}"] = PlannedJob(known, (100.0,), lambda _: (1.0,), BY_PATH)
    plain = {"b/": PodsOfNamespace((100.0 - services,), (services,), (services,), (0.0,))}
    set_shares(jobs, plain, (100.0,), by_namespace=True)
    found = {"plain": plain["b/"].share[0], "a": 0.0, "b": 0.0}
    for each in jobs.values():
        found[each.known.job.namespace] += each.share[0]
    assert {name: round(amount) for name, amount in found.items()} == shares


@pytest.mark.parametrize("long_running", [False, True], ids=["Never", "Always"])
def test_a_namespace_gets_its_share_whether_its_pods_say_that_they_end_or_not(long_running: bool) -> None:
    """Two namespaces share twenty cores: ten each, whatever the second says of its pods."""
    run = small_world(make_engine(BestFit(), order=Carbyne(leftover="none")), cpu=20)
    older = numbered(20, prefix="a")
    newer = [replace(each, namespace="b") for each in numbered(40, prefix="b", long_running=long_running)]
    run.add(*older, *newer)
    assert Counter(name[0] for name in run.placed()) == {"a": 10, "b": 10}


def test_what_services_have_got_of_room_that_was_left_over_is_not_in_the_share_of_a_job() -> None:
    """Of twenty cores the job can use two at first. Services of another namespace take the rest."""
    order = Carbyne()
    run = small_world(make_engine(BestFit(), order=order), cpu=20)
    run.step(JobSeen(job("chain", stage("s", 2, 1000, 9.0), stage("t", 20, 1000, 9.0, 0))))
    services = [replace(each, namespace="b") for each in numbered(20, long_running=True)]
    run.add(*numbered(2, prefix="s", job="uid-chain", stage="s", estimate=9.0), *services)
    run.sleep(5.0)
    planner = order._planner
    assert dict(planner.offered.amounts(planner.jobs["uid-chain"].share)) == {"cpu": 2000}


def test_who_lends_is_asked_of_each_job_once_where_none_wants_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """All tasks of the jobs run when another job comes, so shares are computed and nobody is a rival."""
    asked = Counter[str]()
    wants_more = PlannedJob.wants_more.fget
    assert wants_more is not None

    def counted(planned: PlannedJob) -> bool:
        asked["all"] += 1
        return wants_more(planned)

    monkeypatch.setattr(PlannedJob, "wants_more", property(counted))

    def asked_beside(jobs: int) -> int:
        run = world(1000.0)
        run.submit(*(job(f"J{at}", stage("s", 1, 1000, 9.0)) for at in range(jobs)))
        asked.clear()
        run.submit(job("last", stage("s", 1, 1000, 9.0)))
        return asked["all"]

    assert asked_beside(80) < 3 * asked_beside(40)


@pytest.mark.parametrize("limits", [{"max_parallel": 1}, {}], ids=["of the stage", "of the job"])
@IN_POOLS
def test_a_job_does_not_lend_the_time_that_its_limit_takes(limits: dict[str, int], in_pools: bool) -> None:
    """Ten tasks one after another take 100 s, so the first of them cannot wait for what b takes, 50 s."""
    stages = stage("b", 1, 100, 50), stage("a", 10, 100, 10, **limits)
    slow = job("J1", *stages, **({} if limits else {"max_parallel": 2}))
    pools, jobs = one_pool_each([slow, job("J2", stage("s", 40, 250, 10))], in_pools=in_pools)
    run = world(pools=pools)
    run.submit(*jobs)
    in_time = 100.0 if limits else 80.0
    assert run.plans["J1"][0].finish_seconds == pytest.approx(in_time)
    assert run.run().ends["J1"] <= in_time + 10.0, "one task of J2 may be in the way"


def test_a_job_is_entitled_to_no_more_than_may_run_at_a_time() -> None:
    run = world(4.0)
    run.submit(job("J1", stage("a", 10, 500, 10, max_parallel=2)), job("J2", stage("s", 40, 500, 10)))
    assert dict(run.plans["J1"][0].share) == {"cpu": 1000}
    assert dict(run.plans["J2"][0].share) == {"cpu": 3000}
    assert not run.plans["J1"][-1].lent


def test_a_limit_that_is_lowered_moves_the_deadline() -> None:
    """It is no delay by what was lent: without it all that is left would be due at once."""
    run = world(1.0)
    whole = job("J1", stage("a", 8, 500, 10))
    run.submit(whole)
    planned = planner_of(run).jobs["uid-J1"]
    assert planned.deadline.at == pytest.approx(40.0)
    run.step(JobSeen(replace(whole, max_parallel=1)))
    assert (planned.deadline.at, planned.deadline.slips) == (pytest.approx(70.0), 1)
