"""Carbyne where there are Pools: shares are the tree's, and so is who lends."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from msgspec.structs import replace

from builders import make_engine, make_node
from dag_world import DagWorld, job, stage
from eclectus.model.events import JobSeen, NamespaceSeen, PoolGone, PoolSeen, TaskSeen
from eclectus.model.job import Job, JobStage
from eclectus.model.objects import Spec
from eclectus.model.pool import Pool, PoolAmounts
from eclectus.policies.carbyne import Carbyne
from eclectus.policies.place.fit import BestFit
from worlds import World, numbered

GPU = "gpu"
SYSTEM = 2_000_001_000


def pool(name: str, **fields: Any) -> Pool:
    """A pool that the namespace of all these jobs may use."""
    return Pool(name, namespaces=("default",), **fields)


class Run(DagWorld):
    """Nodes of ten cores in all, these Pools, and Carbyne."""

    def __init__(self, *pools: Pool, cpu: float = 10, **settings: Any) -> None:
        self.order = Carbyne(**settings)
        super().__init__(make_engine(BestFit(), order=self.order), [make_node("n", cpu=cpu)])
        self.step(*map(PoolSeen, pools))

    def shares(self) -> dict[str, float]:
        """Cores by job."""
        return {each.known.job.name: each.share[0] / 1000 for each in self.order._planner.jobs.values()}

    def started(self) -> Counter[str]:
        """Tasks that have started, by the first letter of their job's name."""
        return Counter(name[0] for _, name, _ in self.starts)


def wide(name: str, asked: str = "", tasks: int = 100, **fields: Any) -> Job:
    return job(name, stage("s", tasks, 1000, 10.0), pool=asked, **fields)


def test_weights_of_pools_show_in_shares_level_by_level() -> None:
    run = Run(pool("a", weight=4), Pool("b"), pool("b1", parent="b", weight=3), pool("b2", parent="b"))
    run.submit(wide("x", "a"), wide("y", "b1"), wide("z", "b2"))
    assert run.shares() == pytest.approx({"x": 8, "y": 1.5, "z": 0.5})
    assert run.started() == {"x": 8, "y": 2} or run.started() == {"x": 8, "y": 1, "z": 1}


def test_a_second_job_of_a_pool_takes_half_of_its_share_and_nothing_of_others() -> None:
    """P9, of Hadoop's own tests: weights 1, 2 and .5 on four slots."""
    run = Run(pool("a"), pool("b", weight=2), pool("c", weight=0.5), cpu=4)
    run.submit(wide("x", "a"), wide("y", "b"), wide("z", "c"))
    assert run.shares() == pytest.approx({"x": 1.1429, "y": 2.2857, "z": 0.5714}, abs=1e-4)
    run.submit(wide("w", "c", created=1.0))
    assert run.shares() == pytest.approx({"x": 1.1429, "y": 2.2857, "z": 0.2857, "w": 0.2857}, abs=1e-4)


def test_a_minimum_comes_first_and_a_maximum_is_kept_and_what_it_leaves_is_the_others() -> None:
    run = Run(
        pool("a", min_share=PoolAmounts((("cpu", 7000),))),
        pool("b", max_share=PoolAmounts((("cpu", 1000),))),
        pool("c"),
    )
    run.submit(wide("x", "a"), wide("y", "b"), wide("z", "c"))
    assert run.shares() == pytest.approx({"x": 7, "y": 1, "z": 2})


def test_a_pool_of_complementary_jobs_counts_once_for_each_resource() -> None:
    """C4 (a) and (b): each resource is divided on its own, so no pool pays for what its sibling uses."""

    def of(name: str, asked: str, resource: str) -> Job:
        spec = Spec(requests=((resource, 1 if resource == GPU else 1000),))
        return job(name, JobStage("s", 100, spec, seconds=9.0), pool=asked)

    def shares(pools: list[Pool], *jobs: Job) -> dict[str, tuple[float, ...]]:
        run = DagWorld(
            make_engine(BestFit(), order=Carbyne()), [make_node("n", cpu=12, gpus=12)], pools=pools
        )
        run.submit(*jobs)
        return {name: dict(plans[0].share) for name, plans in run.plans.items()}  # type: ignore[misc]

    inner = [Pool("n"), pool("nc", parent="n"), pool("ng", parent="n")]
    found = shares([pool("n1"), *inner], of("x", "n1", GPU), of("c", "nc", "cpu"), of("g", "ng", GPU))
    assert found == {"x": {GPU: 6}, "c": {"cpu": 12000}, "g": {GPU: 6}}
    others = [pool("n1"), pool("n2"), pool("n4")]
    jobs = of("c1", "n1", "cpu"), of("c2", "n2", "cpu"), of("c", "nc", "cpu"), of("g", "ng", GPU)
    found = shares([*others, *inner], *jobs, of("x", "n4", GPU))
    assert found == {
        "c1": {"cpu": 4000},
        "c2": {"cpu": 4000},
        "c": {"cpu": 4000},
        "g": {GPU: 6},
        "x": {GPU: 6},
    }


def test_jobs_of_one_pool_share_by_their_weights_with_its_other_pods() -> None:
    run = Run(pool("a"), pool("b"))
    run.submit(wide("x", "a", weight=3), wide("y", "b"))
    run.step(*(TaskSeen(replace(each, asked_pool="a")) for each in numbered(99, cpu=1)))
    assert run.shares() == pytest.approx({"x": 3.75, "y": 5})
    assert run.order._planner.plain.by_path[":a/"].share[0] == pytest.approx(1250)


@pytest.mark.parametrize("tasks", [1, 3])
def test_weights_show_where_a_share_is_less_than_a_task_for_each_job(tasks: int) -> None:
    """Forty jobs in each pool, and thirty cores: else a task of each would be due, fifteen a pool."""
    run = Run(pool("a", weight=2), pool("b"), cpu=30)
    run.submit(*(wide(f"{name}{at}", name, tasks, created=float(at)) for at in range(40) for name in "ba"))
    assert run.started() == {"a": 20, "b": 10}
    run.run(until=15.0)
    assert run.started() == {"a": 40, "b": 20}


@pytest.mark.parametrize("pools", [20, 80])
def test_a_stage_that_ends_costs_its_own_pool_alone_where_nobody_gets_another_share(pools: int) -> None:
    run = Run(*(pool(f"p{at}") for at in range(pools)), cpu=2 * pools)
    stages = stage("one", 1, 1000, 5.0), stage("next", 1, 1000, 50.0, 0), stage("wide", 2, 1000, 26.0)
    short = (
        job(f"j{at}", stage("one", 1, 1000, 4.0 + at / 2), *stages[1:], pool=f"p{at}") for at in range(2)
    )
    run.submit(*short, *(job(f"j{at}", *stages, pool=f"p{at}") for at in range(2, pools)))
    run.run(until=4.2)  # all have started something since the first shares
    kept = run.order._planner.by_pool
    assert kept is not None
    before, ranks, divided = kept.pools_divided, run.order._planner.changes.head, kept._division.divided
    run.run(until=4.7)
    assert run.done == {("j0", "one"): 1, ("j1", "one"): 1}
    assert kept.pools_divided - before <= 4
    assert kept._division.divided - divided <= 2 * pools  # one level, of the cores
    assert run.order._planner.changes.head - ranks <= 12


def test_a_pool_whose_share_is_less_than_a_task_starts_one_all_the_same() -> None:
    run = Run(pool("a", weight=99), pool("b"), altruism=0.0, leftover="none")
    run.submit(wide("b0", "b"), wide("b1", "b", created=1.0), wide("a0", "a"))
    assert run.started()["b"] == 1


def test_a_job_shares_in_the_pool_in_which_its_pods_are() -> None:
    """By the label of its pods, by its own field, by its namespace's label, or by its namespace."""
    labelled = job("x", stage("s", 100, 1000, 10.0, asked_pool="a"), pool="b")
    run = Run(pool("a", weight=5), pool("b", weight=3), Pool("theirs", weight=99), Pool("c"))
    run.step(NamespaceSeen("team", (), "c"))
    run.submit(
        labelled,
        wide("y", "b"),
        wide("z", "theirs", namespace="other"),  # does not admit it: its namespace's own
        wide("w", namespace="team"),
    )
    planner = run.order._planner
    state = run.engine._state
    pods = {task.job: task.pool for task in (*state.pending.values(), *state.placed.tasks())}
    assert {each.known.job.uid: each.pool for each in planner.jobs.values()} == pods
    assert pods == {"uid-x": "a", "uid-y": "b", "uid-z": "default/other", "uid-w": "c"}
    assert run.shares() == pytest.approx({"x": 5, "y": 3, "z": 1, "w": 1})


def test_shares_follow_the_tree() -> None:
    run = Run(pool("a"), pool("b"))
    run.submit(wide("x", "a"), wide("y", "b"))
    assert run.shares() == pytest.approx({"x": 5, "y": 5})
    run.step(PoolSeen(pool("a", weight=4)))
    assert run.shares() == pytest.approx({"x": 8, "y": 2})
    run.step(PoolGone("b"))
    assert run.shares() == pytest.approx({"x": 8, "y": 2})  # `default`, of weight 1
    run.step(PoolGone("a"))
    assert run.shares() == pytest.approx({"x": 5, "y": 5})
    run.step(PoolSeen(Pool("c", weight=3)), NamespaceSeen("default", (), "c"))
    run.step(JobSeen(wide("z", namespace="other")))
    assert run.shares() == pytest.approx({"x": 3.75, "y": 3.75, "z": 2.5})


def test_with_by_job_all_jobs_have_equal_shares_whatever_pool_they_are_in() -> None:
    run = Run(pool("a", weight=4), pool("b"), by="job")
    run.submit(wide("x", "a"), wide("y", "b"))
    assert run.shares() == pytest.approx({"x": 5, "y": 5})


def test_without_a_pool_a_job_of_another_pool_of_the_namespace_shares_as_before() -> None:
    run = Run()
    run.submit(wide("x", "a"), wide("y", "b"), wide("z", "b"))
    assert run.shares() == pytest.approx({"x": 5, "y": 2.5, "z": 2.5})


def gets_room(*pools: Pool) -> bool:
    """Whether a short job gets room that a long one, whose stage can wait, does not need yet."""
    run = Run(*pools, cpu=4)
    long = job("x", stage("chain", 1, 1000, 60.0), stage("wait", 1, 1000, 50.0), pool="a")
    run.submit(long, wide("y", "b", 3))
    return run.started()["y"] == 3


def test_a_pool_lends_as_its_altruism_says_and_no_more_than_that_of_the_pool_above() -> None:
    assert gets_room(pool("a"), pool("b"))
    assert not gets_room(pool("a", altruism=0.0), pool("b"))
    assert not gets_room(Pool("top", altruism=0.0), pool("a", parent="top"), pool("b"))


def starts(run: Run, *given: tuple[str, str, int]) -> list[str]:
    """The names of the pods of one core that start; given are pool, name and priority of each."""
    tasks = [
        replace(each, name=name, uid=name, asked_pool=asked, priority=priority)
        for each, (asked, name, priority) in zip(numbered(len(given)), given, strict=True)
    ]
    world = World(run.engine)
    world.add(*tasks)
    return sorted(world.placed())


def test_priorities_take_nobodys_share_and_count_inside_it() -> None:
    """Four cores: a has two of them, whatever priority b's pods have."""
    run = Run(pool("a"), pool("b"), cpu=4)
    of_b = [("b", f"b{at}", 1_000) for at in range(9)]
    found = starts(run, *of_b, ("a", "a0", 0), ("a", "a1", 0), ("a", "a2", 7))
    assert [name for name in found if name[0] == "a"] == ["a0", "a2"]


def test_a_pod_of_the_systems_priority_stands_above_all_shares() -> None:
    run = Run(pool("a"), cpu=2)
    given = [("a", f"a{at}", 1_000) for at in range(4)] + [("", f"s{at}", SYSTEM) for at in range(2)]
    assert starts(run, *given) == ["s0", "s1"]


def test_a_restart_gives_the_same_shares() -> None:
    run = Run(pool("a", weight=2), pool("b"), cpu=30)
    run.submit(*(wide(f"{name}{at}", name, 3, created=float(at)) for at in range(40) for name in "ba"))
    before = run.shares()
    order = Carbyne()
    run.restart(make_engine(BestFit(), order=order))
    run.order = order
    run.step(PoolSeen(pool("a", weight=2)), PoolSeen(pool("b")))
    assert run.shares() == pytest.approx(before)
