"""What Carbyne promises of every set of jobs: no delay beyond the fair share, no idle room, no starvation.

Each promise is checked on 200 generated cases without Pools, and on as many in trees of them:
`generated` marks all but the first as slow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import isfinite
from random import Random

import pytest
from msgspec.structs import replace

from builders import make_engine, make_node, make_task
from carbyne_cases import CAPACITY, LEAST_SHARE, Case, alone_in, generated, planner_of, random_jobs
from dag_world import DagWorld, job, stage
from eclectus.model.commands import RecordPlan
from eclectus.model.events import BindConfirmed, BindRefused, JobSeen, NodeSeen, Resumed, TaskSeen
from eclectus.model.job import Job
from eclectus.model.objects import Task
from eclectus.policies.carbyne import Carbyne
from eclectus.policies.place.fit import BestFit
from eclectus.policies.rosella import RosellaLearn

SETTINGS = [{}, {"altruism": 0.5}, {"altruism": 0.0}, {"altruism": 0.0, "leftover": "none"}]
INTRA = "cp", "bfs", "dagps", "tetris"


def ends_in_time(case: Case, jobs: list[Job]) -> None:
    """Each of the jobs, which arrive together, ends when it would alone in its share, or before.

    That is the end of its first plan; the share is the tree's, or an equal part, or what it needs.
    """
    settings, intra = SETTINGS[case.seed % len(SETTINGS)], INTRA[(case.seed + case.seed // 4) % len(INTRA)]
    run = case.world(overhang="bounded", intra=intra, **settings)
    run.submit(*jobs)
    shares = {each.known.job.name: each.share[0] for each in planner_of(run).jobs.values()}
    assert sum(shares.values()) <= CAPACITY + 1e-3
    run.run()
    for each in jobs:
        in_time = run.plans[each.name][0].finish_seconds
        assert in_time == pytest.approx(alone_in(shares[each.name], each, intra))
        assert run.ends[each.name] <= in_time + 1e-6, each.name
        if not case.in_pools:
            assert run.ends[each.name] <= alone_in(CAPACITY / len(jobs), each, intra) + 1e-6, each.name


@generated()
def test_no_job_ends_later_than_in_its_fair_share(case: Case) -> None:
    """C7: of jobs that arrive together, with the bound on overhangs."""
    ends_in_time(case, case.jobs())


@pytest.mark.parametrize("count", [1, 2, 4])
@generated(5)
def test_no_large_job_ends_later_than_in_its_fair_share(case: Case, count: int) -> None:
    """C7: where a list schedule made anew may be longer than the one before."""
    ends_in_time(case, case.large_jobs(count))


@generated()
def test_without_the_bound_a_job_is_late_by_the_pods_in_its_way(case: Case) -> None:
    """C7, `overhang: free`: up to the longest for each of its tasks; all tasks are small beside a node."""
    jobs, run = case.jobs(6), case.world()
    run.submit(*jobs)
    run.run()
    longest = max(of.seconds or 0.0 for each in jobs for of in each.stages)
    for each in jobs:
        late = run.ends[each.name] - (run.plans[each.name][0].finish_seconds or 0.0)
        assert late <= longest * sum(of.tasks for of in each.stages), each.name


@generated(6)
def test_no_node_holds_more_than_it_has(case: Case) -> None:
    """C9: with large jobs on nodes of two cores, in both ways to give what is left over."""
    run = case.world(nodes=4, overhang=("free", "bounded")[case.seed % 2])
    run.submit(*case.large_jobs(3))
    while run.jobs.keys() - run.ends.keys():
        held = Counter[str]()
        for task in run.tasks.values():
            held[task.node] += dict(task.spec.requests)["cpu"]
        assert all(held[node.name] <= 2000 for node in run.nodes)
        run.advance()


@generated(6)
def test_no_room_is_idle_while_a_task_could_use_it(case: Case) -> None:
    """C8: without the bound on overhangs, after each step no runnable task fits on the node."""
    run = case.world()
    run.submit(*case.jobs(6))
    while run.jobs.keys() - run.ends.keys():
        waiting = [task for task in run.tasks.values() if not task.node]
        used = sum(task.spec.requests[0][1] for task in run.tasks.values() if task.node)
        assert all(used + task.spec.requests[0][1] > CAPACITY for task in waiting)
        run.advance()


def starts_by_chance(case: Case, seed: int) -> list[tuple[float, str, str]]:
    run = case.world(altruism=0.5, seed=seed)
    run.submit(*case.jobs(6))
    return run.run().starts


@generated(6)
def test_equal_seeds_decide_alike_where_jobs_lend_by_chance(case: Case) -> None:
    """C10."""
    assert starts_by_chance(case, 1) == starts_by_chance(case, 1)


@pytest.mark.parametrize("in_pools", [False, True])
def test_other_seeds_decide_otherwise_where_jobs_lend_by_chance(in_pools: bool) -> None:
    assert starts_by_chance(Case(3, in_pools), 1) != starts_by_chance(Case(3, in_pools), 2)


@generated(6)
def test_without_altruism_and_hand_out_jobs_are_greedy_in_their_shares(case: Case) -> None:
    """C11: after each step no job is above its share, and none has a task that its share has room for."""
    jobs, run = case.large_jobs(3), case.world(altruism=0.0, leftover="none")
    run.submit(*jobs)
    planner = planner_of(run)
    while run.jobs.keys() - run.ends.keys():
        for each in planner.jobs.values():
            held = sum(_cores(of) for of in run.tasks.values() if of.job == each.known.job.uid and of.node)
            smallest = min((_cores(of) for of in _waiting(run, each.known.job.uid)), default=CAPACITY)
            assert held <= each.share[0] + 1e-3
            assert held + smallest > each.share[0] - 1e-3
        run.advance()


def _cores(task: Task) -> int:
    return task.spec.requests[0][1]


def _waiting(run: DagWorld, uid: str) -> Iterator[Task]:
    return (task for task in run.tasks.values() if task.job == uid and not task.node)


@generated()
def test_strict_shares_keep_a_job_within_the_bound_of_list_scheduling(case: Case) -> None:
    """C11: whenever a task waits, less than one task of the share is free (Garey and Graham, 1975).

    The share is an equal part, or the tree's: what a job needs, or more than the least that any such tree
    gives to one of two jobs of a pool.
    """
    jobs, run = case.jobs(), case.world(altruism=0.0, leftover="none")
    run.submit(*jobs)
    equal = CAPACITY / len(jobs)
    shares = {each.known.job.name: each.share[0] for each in planner_of(run).jobs.values()}
    run.run()
    for each in jobs:
        share = max(shares[each.name], LEAST_SHARE) if case.in_pools else equal
        longest = alone_in(1e9, each)
        demands = [one.spec.requests[0][1] for one in each.stages]
        tasks = zip(each.stages, demands, strict=True)
        work = sum(one.tasks * demand * (one.seconds or 0.0) for one, demand in tasks)
        assert run.ends[each.name] <= longest + work / (share - max(demands)), each.name


@pytest.mark.parametrize("case", [Case(9), Case(9, in_pools=True)], ids=["", "pools"])
@pytest.mark.parametrize(("overhang", "tasks"), [("free", 10_000), ("bounded", 2_000)])
def test_an_arrival_storm_and_failures_and_a_lost_node_leave_nothing_behind(
    overhang: str, tasks: int, case: Case
) -> None:
    """C12: many jobs at once, a stage of many tasks, failed tasks, and a node that is gone."""
    run = case.world(nodes=4, overhang=overhang)
    run.fails_once |= {("j0", "s0"), ("j1", "s0")}
    run.submit(*case.spread([job("wide", stage("s0", tasks, 50, 1.0)), *random_jobs(9, 12)]))
    run.run(until=3.0)
    run.drop_node("n0")
    run.run()
    assert not run.tasks
    planner = planner_of(run)
    assert not planner.jobs
    assert not planner.bookings._changes


@pytest.mark.parametrize("case", [Case(0), Case(0, in_pools=True)], ids=["", "pools"])
@pytest.mark.parametrize("overhang", ["free", "bounded"])
def test_first_tasks_may_exceed_their_shares(overhang: str, case: Case) -> None:
    """C14: ten jobs of tasks of half the cluster; a share holds none of them."""
    run = case.world(altruism=1.0, leftover="none", overhang=overhang)
    run.submit(*case.spread([job(f"j{at}", stage("s", 2, 4000, 1.0)) for at in range(10)]))
    run.run()
    assert max(run.ends.values()) == pytest.approx(10.0)


@generated()
def test_jobs_end_although_no_share_holds_any_of_their_tasks(case: Case) -> None:
    """C14: in no more time than one after the other."""
    random, overhang = Random(case.seed), ("free", "bounded")[case.seed % 2]
    jobs = [
        job(
            f"j{at}",
            stage("s", random.randrange(1, 4), random.choice([3000, 4000, 8000]), 1.0),
            stage("t", random.randrange(1, 4), random.choice([1500, 5000]), 2.0, 0),
        )
        for at in range(9)
    ]
    run = case.world(overhang=overhang, leftover=("srtf", "none")[case.seed // 2 % 2])
    run.submit(*case.spread(jobs))
    run.run()
    assert max(run.ends.values()) <= sum(
        of.tasks * (of.seconds or 0.0) for each in jobs for of in each.stages
    )


@generated()
def test_no_deadline_slips_while_no_share_shrinks_and_no_work_is_lost(case: Case) -> None:
    """C15."""
    run = case.world(overhang=("free", "bounded")[case.seed % 2])
    run.submit(*case.jobs())
    run.run()
    assert {plan.slips for plans in run.plans.values() for plan in plans} == {0}


def test_a_deadline_slips_when_a_share_shrinks() -> None:
    """C15."""
    crowded = Case(6).world()
    crowded.submit(job("first", stage("s", 40, 1000, 5.0)))
    crowded.run(until=10.0)
    crowded.submit(*Case(6).jobs())
    crowded.run()
    assert crowded.plans["first"][-1].slips > 0
    assert crowded.plans["first"][-1].slip_seconds > 0.0


def test_the_deadline_of_a_task_that_fails_slips_and_not_that_of_one_whose_bind_is_refused() -> None:
    task = make_task("t", job="uid-j", stage="s")
    bound = BindConfirmed(task.uid, "n"), TaskSeen(replace(task, node="n"))
    failed = TaskSeen(replace(task, node="n", phase="Failed"))
    slips = []
    for before, event in ((bound, failed), ((), BindRefused(task.uid, "n", "Conflict"))):
        order = Carbyne()
        engine = make_engine(BestFit(), order=order)
        engine.step([Resumed(), NodeSeen(make_node()), JobSeen(job("j", stage("s", 1, 1000, 5.0)))], 0.0)
        engine.step([TaskSeen(task)], 0.0)
        engine.step(before, 0.5)
        engine.step([event], 1.0)
        slips.append(order._planner.jobs["uid-j"].deadline.slips)
    assert slips == [1, 0]


@generated(6)
def test_a_job_of_which_nothing_runs_has_something_due(case: Case) -> None:
    """C16: unless it would end before its deadline."""
    run = case.world()
    run.submit(*case.jobs(5))
    planner = planner_of(run)
    while run.jobs.keys() - run.ends.keys():
        for each in planner.jobs.values():
            ready = [
                at
                for at, of in enumerate(each.known.stages)
                if of.counts.to_start and each.known.is_ready(of)
            ]
            is_ahead = run.now + each.plan.finish_seconds < each.deadline.at - 1e-9
            if ready and not is_ahead and not any(of.on_nodes for of in each.known.stages):
                assert any(each.due(at, run.now) for at in ready), each.path
        run.advance()


def test_a_plan_goes_on_after_a_restart_from_what_was_written() -> None:
    """C13: the deadline and the slips of the status are those of the new process."""
    run = Case(5).world()
    run.submit(*Case(5).jobs())
    first = run.plans["j0"][-1]
    engine = Case(5).world().engine
    known = [Job(**{f: getattr(each, f) for f in each.__struct_fields__}) for each in run.jobs.values()]
    again = DagWorld(engine, [])
    again.now = run.now
    written = job("j0", *known[0].stages, deadline=first.deadline - 0.5, slips=3, slip_seconds=7.0)
    again.submit(written, *known[1:])
    (plan,) = [each.plan for each in again.commands if isinstance(each, RecordPlan) and each.name == "j0"]
    assert (plan.deadline, plan.slips, plan.slip_seconds) == (first.deadline - 0.5, 3, 7.0)


@generated(6)
def test_no_job_ends_later_than_in_its_fair_share_where_the_process_restarts(case: Case) -> None:
    """C13 with C7."""
    jobs, run = case.jobs(), case.world(overhang="bounded")
    run.submit(*jobs)
    in_time = {each.name: run.plans[each.name][0].finish_seconds or 0.0 for each in jobs}
    for until in (1.5, 4.0):
        run.run(until)
        run.restart(case.world(overhang="bounded").engine)
    run.run()
    for each in jobs:
        assert run.ends[each.name] <= in_time[each.name] + 1e-6, each.name


@generated(6)
def test_wrong_estimates_arrivals_and_failures_stop_no_job(case: Case) -> None:
    """C12: true run times are between half and one and a half of the estimates; nothing is not a number."""
    random, jobs = Random(case.seed), case.jobs(9)
    run = case.world(2, overhang=("free", "bounded")[case.seed % 2])
    run.true_seconds = {
        (each.name, of.name): random.uniform(0.5, 1.5) * of.seconds for each in jobs for of in each.stages
    }
    run.fails_once |= {(each.name, "s0") for each in jobs[::3]}
    for at in range(0, 9, 3):
        run.submit(*jobs[at : at + 3])
        run.run(until=3.0 * (at + 1))
    run.drop_node("n1")
    run.run()
    assert run.ends.keys() == {each.name for each in jobs}
    plans = [plan for plans in run.plans.values() for plan in plans]
    numbers = [number for each in plans for number in (each.finish_seconds, each.deadline, each.slip_seconds)]
    assert all(number is None or isfinite(number) for number in numbers)


def test_a_job_without_estimates_lends_nothing_and_ends() -> None:
    run = Case(0).world()
    run.true_seconds = {("unknown", "s"): 2.0}
    run.submit(job("unknown", stage("s", 20, 500, None)), job("known", stage("s", 20, 500, 1.0)))
    run.run(until=0.0)
    started = [name for _, name, _ in run.starts]
    assert (started.count("unknown"), started.count("known")) == (8, 8)
    run.run()
    assert all(plan.finish_seconds is None for plan in run.plans["unknown"])


def test_a_job_may_come_before_the_first_node() -> None:
    """As where an autoscaler adds nodes for it; the learner has no rates then."""
    run = DagWorld(make_engine(BestFit(), RosellaLearn(), order=Carbyne()), [])
    run.submit(job("early", stage("s", 2, 500, 1.0)))
    run.step(NodeSeen(make_node("n", cpu=1)))
    assert run.run().ends == {"early": 1.0}


def test_namespaces_share_equally_and_jobs_within_them() -> None:
    shares = {}
    for by in ("namespace", "job"):
        run = Case(0).world(by=by)
        stages = stage("s", 99, 100, 9.0)
        run.submit(job("a", stages), job("b", stages), job("c", stages, namespace="other"))
        shares[by] = {name: dict(plans[0].share)["cpu"] for name, plans in run.plans.items()}
    assert shares["namespace"] == {"a": 2000, "b": 2000, "c": 4000}
    assert set(shares["job"].values()) == {2666}
