"""What the engine counts for policies that need it: what groups hold, and the work left of jobs."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest

from builders import make_cluster, make_engine, make_node, make_task
from eclectus.accounts.accounts import JobWork
from eclectus.accounts.group_shares import GroupShares
from eclectus.framework import Order, OrderTraits
from eclectus.model.objects import Task
from eclectus.policies.order.drf import DominantShare
from eclectus.policies.order.fifo import FifoOrder
from eclectus.policies.order.srtf import LeastWorkLeft
from eclectus.policies.place.allocation import LeastAllocated
from random_stories import Story
from worlds import World

GIB = 2**30


def world_of(order: Order, *nodes: Any) -> World:
    return World(make_engine(LeastAllocated(), order=order), *(nodes or [make_node(cpu=8, memory=32)]))


def held(world: World, group: str) -> dict[str, int]:
    (usage,) = world.engine._state.view.shares_by_policy.values()
    return dict(usage.held(group))


def share(world: World, group: str) -> float:
    (usage,) = world.engine._state.view.shares_by_policy.values()
    return usage.dominant_share(group)


# -- shares ----------------------------------------------------------------------------------------


def test_nothing_is_counted_without_a_policy_that_needs_it() -> None:
    state = make_engine(LeastAllocated())._state
    assert (state.view.shares_by_policy, state.accounts.job_work) == ({}, None)


def test_pods_of_every_scheduler_count_for_their_group() -> None:
    world = world_of(DominantShare())
    world.add(make_task("a", cpu=2, memory=8))
    world.add(make_task("foreign", cpu=1, profile="other", node="n"))
    assert held(world, "default") == {"cpu": 3000, "memory": 8 * GIB, "pods": 2}
    assert share(world, "default") == 3 / 8
    world.end("a")
    assert held(world, "default") == {"cpu": 1000, "memory": 0, "pods": 1}
    world.delete("foreign")
    assert (held(world, "default"), share(world, "default")) == ({}, 0.0)


def test_a_refused_bind_is_no_longer_counted() -> None:
    world = world_of(DominantShare())
    world.refuse = lambda bind: "conflict"
    world.add(make_task("a"))
    assert held(world, "default") == {}


def test_a_pod_counts_for_another_group_when_its_labels_change() -> None:
    world = world_of(DominantShare(by="label", label="team"))
    world.add(make_task("a", labels=(("team", "x"),)))
    world.put(make_task("a", labels=(("team", "y"),), node="n"))
    assert (held(world, "x"), held(world, "y")["cpu"]) == ({}, 1000)
    world.end("a")
    assert held(world, "y") == {}


@pytest.mark.parametrize(
    "change", [{"labels": (("team", "y"),)}, {"deleting": True}, {"started": 3.0}, {"job": "j"}], ids=str
)
def test_policies_see_a_pod_on_a_node_as_it_was_seen_last(change: dict[str, Any]) -> None:
    world = world_of(FifoOrder())
    world.add(make_task("a", device_milli=0))
    seen = make_task("a", node="n", **change)
    world.put(seen)
    ((placed, _),) = world.engine._state.view.placed.on_row(0)
    assert placed == seen


def test_a_share_is_of_the_present_total_of_all_nodes() -> None:
    world = world_of(DominantShare(), make_node("n0", cpu=4), make_node("n1", cpu=12))
    world.add(make_task("a", cpu=4))
    assert share(world, "default") == 4 / 16
    world.drop_node("n1" if world.node_of("a") == "n0" else "n0")
    assert share(world, "default") == (1.0 if world.node_of("a") == "n0" else 4 / 12)


def test_a_resource_that_no_node_offers_any_more_is_left_out() -> None:
    world = world_of(DominantShare(), make_node("n0", gpus=1), make_node("n1"))
    world.add(make_task("a", cpu=0, gpus=1))
    assert share(world, "default") == 1.0
    world.drop_node("n0")
    assert share(world, "default") == 1 / 110  # its share of `pods`


def test_an_order_whose_grouping_fails_is_a_fault_and_stops_no_other() -> None:
    class Broken(FifoOrder):
        traits = OrderTraits(needs=frozenset({"shares"}))

        def counted_by(self, task: Task) -> str:
            return {}[task.name]  # type: ignore[no-any-return]

    world = world_of(Broken())
    world.add(make_task("a"))
    assert world.placed() == {"a": "n"}
    assert [fault.policy for fault in world.faults] == ["Broken"]
    assert held(world, "")["pods"] == 1


@pytest.mark.parametrize("seed", range(3))
def test_shares_are_always_the_sum_over_the_pods_on_nodes(seed: int) -> None:
    order = DominantShare(by="job")
    engine = make_engine(LeastAllocated(), order=order)
    Story(engine, seed).run(120)
    state = engine._state
    expected: dict[str, dict[str, int]] = {}
    for task in (placed.task for placed in state.placed._placed.values()):
        group = expected.setdefault(order.group(task), {})
        for name, amount in (*task.holding, ("pods", 1)):
            group[name] = group.get(name, 0) + amount
    shares = state.view.shares(order)
    assert {name: {k: v for k, v in shares.held(name).items() if v} for name in shares._held} == expected


# -- work left ---------------------------------------------------------------------------------------


class Asked(LeastWorkLeft):
    """Remembers what it saw whenever it was asked."""

    def __init__(self) -> None:
        object.__setattr__(self, "seen", [])

    def rank(self, view: Any, group: str, head: Task) -> tuple[float, ...]:
        rank = super().rank(view, group, head)
        self.seen.append((head.name, rank[1]))
        return rank


def test_work_left_falls_when_pods_of_the_job_start_and_rises_when_a_bind_is_refused() -> None:
    order = Asked()
    world = world_of(order, make_node(cpu=2))
    world.refuse = lambda bind: "conflict" if bind.name == "t1" and len(world.binds) == 2 else ""
    tasks = [make_task(f"t{at}", job="j", created=at, estimate=3.0, job_work=20.0) for at in range(3)]
    world.add(*tasks, make_task("large", cpu=9, estimate=99.0))  # a second class queue, to be ranked
    seen = [each for each in dict.fromkeys(order.seen) if each[0] != "large"]
    assert seen[:3] == [("t0", 20.0), ("t1", 17.0), ("t2", 14.0)]
    accounts = world.engine._state.accounts
    assert accounts.job_work.left(world.tasks["t1"]) == 14.0  # t2 took its room, and it waits


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ([(1, 20.0), (2, 12.0)], 12.0),  # that of the youngest pod
        ([(2, 12.0), (1, 20.0)], 12.0),  # in any order
        ([(1, 20.0), (1, 20.0), (5, 20.0)], 20.0),  # pods of one template
        ([(1, 1.0), (1, 2.0)], 2.0),  # two lost at once
        ([(1, None), (1, None)], 6.0),  # estimates only
        ([(1, 20.0), (2, None)], 20.0),  # the figure includes the pod without one
    ],
)
def test_which_figure_of_the_jobs_pods_counts(said: list[tuple[float, float | None]], left: float) -> None:
    work = JobWork()
    for at, (created, figure) in enumerate(said):
        work.add(make_task(f"t{at}", job="j", created=created, estimate=3.0, job_work=figure))
    assert work.left(make_task("t0", job="j")) == left


def test_a_repeated_figure_does_not_undo_what_has_started() -> None:
    work = JobWork()
    first, second = (
        make_task(n, job="j", estimate=3.0, job_work=20.0, created=t) for n, t in (("a", 1), ("b", 9))
    )
    work.add(first)
    work.start(first)
    work.add(second)
    assert work.left(second) == 17.0


def test_a_job_without_estimates_has_infinite_work_left() -> None:
    work = JobWork()
    work.add(make_task("a", job="j"))
    assert work.left(make_task("a", job="j")) == inf
    assert work.left(make_task("stranger")) == inf


def test_a_pod_that_changes_its_job_leaves_the_one_before() -> None:
    world = world_of(LeastWorkLeft(), make_node(cpu=0))
    world.add(make_task("a", job="j", estimate=3.0))
    world.put(make_task("a", job="k", estimate=3.0))
    world.delete("a")
    assert world.engine._state.accounts.job_work._jobs == {}


@pytest.mark.parametrize("seed", range(3))
def test_work_left_is_always_counted_for_pending_pods_only(seed: int) -> None:
    engine = make_engine(LeastAllocated(), order=LeastWorkLeft())
    Story(engine, seed).run(120)
    state = engine._state
    assert state.accounts.job_work is not None
    assert sorted(state.accounts.job_work._job_of) == sorted(state.pending)


# -- groups that are paths ---------------------------------------------------------------------------


def _paths() -> GroupShares:
    return GroupShares(
        make_cluster(make_node("n")), lambda task: f"{task.namespace}/{task.job}", print, by_path=True
    )


def test_every_prefix_of_a_path_has_an_account() -> None:
    shares = _paths()
    shares.hold(make_task("a", cpu=1, job="j"))
    shares.hold(make_task("b", cpu=2, job="k"))
    assert [shares.held(path)["cpu"] for path in ("default/j", "default/k", "default", "")] == [
        1000,
        2000,
        3000,
        3000,
    ]
    shares.release("uid-b")
    assert shares.held("default/k") == {}
    assert shares.held("default") == {"cpu": 1000, "pods": 1}


def test_the_largest_part_of_what_is_requested_is_of_the_present_totals() -> None:
    cluster = make_cluster(make_node("n", cpu=4, memory=64), make_node("m", cpu=28, memory=64))
    shares, task = GroupShares(cluster, lambda task: "g", print), make_task("a", cpu=2, memory=16)
    shares.hold(task)
    assert shares.share_of_dominant("g", task.spec.requests) == 16 / 128, "memory"
    cluster.drop_node("m")
    assert shares.share_of_dominant("g", task.spec.requests) == 2 / 4, "cpu"


def test_what_waits_counts_until_it_holds_room_and_again_if_its_bind_is_refused() -> None:
    shares, task = _paths(), make_task("a", cpu=1, job="j")
    shares.wait(task)
    shares.wait(task)
    assert shares.waiting("default") == {"cpu": 1000, "pods": 1}
    shares.hold(task)
    assert shares.waiting("default/j") == {}
    shares.release(task.uid)
    assert shares.waiting("default/j") == {"cpu": 1000, "pods": 1}
    shares.leave(task.uid)
    shares.leave(task.uid)
    assert shares.waiting("") == {}
