"""Copies do the work of another pod: they go first, displace nobody, and count as no task of a job."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from builders import make_engine, make_node, make_spec, make_task
from eclectus.accounts.known_jobs import KnownJobs
from eclectus.model.job import Job, JobStage
from eclectus.model.objects import Node, Task
from eclectus.policies.place.fit import BestFit
from eclectus.policies.relieve.preemption import Preemption
from eclectus.policies.speculate.late import Late
from pod_objects import task as seen
from pool_worlds import AFTER_60, cores, held, mine, pods, world_of
from worlds import World


def test_preemption_takes_a_copy_before_a_younger_pod_of_the_same_priority() -> None:
    world = World(make_engine(BestFit(), relieve=Preemption()), make_node(cpu=2))
    world.add(make_task("copy", copy_of="uid-elsewhere"))
    world.sleep(10.0)
    world.add(make_task("young"))
    world.add(make_task("important", priority=1))
    world.sleep(10.0)
    assert world.victims() == ["copy"]


def copy(name: str, **fields: Any) -> Task:
    return make_task(name, copy_of=f"uid-of-{name}", **fields)


def preempting(*nodes: Node, **settings: int) -> World:
    """Nodes whose pods others place; a search looks at few of them."""
    relieve = Preemption(
        **{"min_candidate_nodes_absolute": 1, "min_candidate_nodes_percentage": 0} | settings
    )
    return World(make_engine(BestFit(), relieve=relieve, speculate=Late()), *nodes)


def test_a_copy_goes_before_pods_of_lower_priority_on_its_node() -> None:
    world = preempting(make_node("n0", cpu=2))
    world.add(copy("copy", node="n0", priority=5), make_task("low", node="n0"))
    world.add(make_task("important", priority=9))
    assert world.victims() == ["copy"]


def test_a_node_on_which_copies_alone_go_is_best_whatever_their_priority_and_number() -> None:
    world = preempting(make_node("n0", cpu=2), make_node("n1", cpu=2), min_candidate_nodes_absolute=2)
    world.add(*(copy(f"copy{at}", node="n0", priority=5) for at in range(2)))
    world.add(make_task("low", node="n1", cpu=2, priority=-5))
    world.add(make_task("important", cpu=2, priority=9))
    assert sorted(world.victims()) == ["copy0", "copy1"]


def test_a_copy_is_found_on_whichever_of_many_nodes_it_is() -> None:
    """The search ends with the first node on which an eviction helps."""
    world = preempting(*(make_node(f"n{at}", cpu=1) for at in range(20)))
    world.add(*(make_task(f"low{at}", node=f"n{at}") for at in range(20) if at != 13))
    world.add(copy("copy", node="n13", priority=5))
    world.add(make_task("important", priority=9))
    assert world.victims() == ["copy"]


def test_what_is_on_its_way_out_makes_room_before_a_copy_goes() -> None:
    world = preempting(make_node("n0", cpu=2))
    world.add(copy("copy", node="n0"), make_task("going", node="n0", priority=5, deleting=True))
    world.add(make_task("important", priority=9))
    assert world.victims() == []


def test_a_copy_goes_for_pods_of_higher_priority_alone() -> None:
    world = preempting(make_node("n0", cpu=1))
    world.add(copy("copy", node="n0", priority=5))
    world.add(make_task("equal", priority=5))
    assert world.victims() == []


def test_reclaim_takes_copies_wherever_they_are_before_other_pods() -> None:
    """Two copies on the last of 20 nodes, where others would be one victim each."""
    world = world_of(
        mine("a", min_share=cores(2), preemption=AFTER_60), mine("b"), nodes=(2,) * 20, speculate=Late()
    )
    world.add(*(replace(pods("b", 1, cpu=2, first=at)[0], node=f"n{at}") for at in range(19)))
    copies = pods("b", 2, first=19)
    world.add(*(replace(each, node="n19", copy_of=f"uid-of-{each.name}") for each in copies))
    world.add(*pods("a", 1, cpu=2))
    world.sleep(70.0)
    assert sorted(world.victims()) == ["b19", "b20"]


def test_a_pod_is_spared_where_a_copy_goes_anyway() -> None:
    """For 3 cores the copy of one goes with the pod of two, and not the pod of one that is younger."""
    world = world_of(mine("a", min_share=cores(3), preemption=AFTER_60), mine("b"), nodes=(4,))
    world.add(replace(pods("b", 1)[0], copy_of="uid-elsewhere"), *pods("b", 1, cpu=2, first=1))
    world.sleep(10.0)
    world.add(*pods("b", 1, first=2))
    world.add(*pods("a", 1, cpu=3))
    world.sleep(70.0)
    assert sorted(world.victims()) == ["b0", "b1"]


def test_a_copy_counts_in_the_share_and_in_the_limit_of_its_pool() -> None:
    """Of equal pools the one with a copy more gets a core less; and with a limit, none beyond it."""
    world = world_of(mine("a"), mine("b"), mine("c", max_share=cores(2)), nodes=(6,), speculate=Late())
    own = replace(pods("a", 1)[0], copy_of="uid-elsewhere")
    world.add(own, *pods("c", 1), replace(pods("c", 1, first=1)[0], copy_of="uid-elsewhere-too"))
    world.add(*pods("a", 4, first=1), *pods("b", 4), *pods("c", 4, first=2))
    assert (held(world, "a"), held(world, "b"), held(world, "c")) == (2, 2, 2)


def test_reclaim_takes_a_copy_before_a_younger_pod() -> None:
    world = world_of(mine("a", min_share=cores(1), preemption=AFTER_60), mine("b"), nodes=(4,))
    world.add(replace(pods("b", 1)[0], copy_of="uid-elsewhere"))
    world.sleep(10.0)
    world.add(*pods("b", 3, first=1))
    world.add(*pods("a", 1))
    world.sleep(70.0)
    assert world.victims() == ["b0"]


def test_a_copy_evicts_nobody_whatever_its_priority() -> None:
    assert seen().preempts
    assert not seen(labels={"eclectus.dev/copy-of": "uid-0"}).preempts


def test_a_copy_is_no_task_of_its_stage_that_is_started_and_a_task_succeeds_once() -> None:
    jobs = KnownJobs()
    jobs.see(Job("uid-j", "default", "j", (JobStage("map", 3, make_spec(1)),)))
    (stage,) = jobs["uid-j"].stages
    original = make_task("a", job="uid-j", stage="map")
    copy = replace(original, uid="uid-a-copy", name="a-copy", copy_of=original.uid)
    jobs.hold(original)
    jobs.wait(copy)
    jobs.hold(copy)
    assert (stage.counts.to_start, stage.counts.on_nodes) == (2, 1)
    jobs.succeed(copy)
    jobs.release(copy.uid)
    jobs.succeed(original)
    jobs.release(original.uid)
    assert (stage.counts.to_start, stage.counts.succeeded, stage.counts.lost) == (2, 1, 0)
    jobs.release("uid-a-copy")


def test_an_original_that_is_deleted_after_its_copy_has_won_is_no_loss() -> None:
    jobs = KnownJobs()
    jobs.see(Job("uid-j", "default", "j", (JobStage("map", 1, make_spec(1)),)))
    (stage,) = jobs["uid-j"].stages
    original = make_task("a", job="uid-j", stage="map")
    jobs.hold(original)
    jobs.succeed(replace(original, uid="uid-a-copy", copy_of=original.uid))
    jobs.release(original.uid)
    assert (stage.counts.lost, stage.counts.is_done) == (0, True)
