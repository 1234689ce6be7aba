"""Copies do the work of another pod: they go first, displace nobody, and count as no task of a job."""

from __future__ import annotations

from msgspec.structs import replace

from builders import make_engine, make_node, make_spec, make_task
from eclectus.accounts.known_jobs import KnownJobs
from eclectus.model.job import Job, JobStage
from eclectus.policies.place.fit import BestFit
from eclectus.policies.relieve.preemption import Preemption
from pod_objects import task as seen
from pool_worlds import AFTER_60, cores, mine, pods, world_of
from worlds import World


def test_preemption_takes_a_copy_before_a_younger_pod_of_the_same_priority() -> None:
    world = World(make_engine(BestFit(), relieve=Preemption()), make_node(cpu=2))
    world.add(make_task("copy", copy_of="uid-elsewhere"))
    world.sleep(10.0)
    world.add(make_task("young"))
    world.add(make_task("important", priority=1))
    world.sleep(10.0)
    assert world.victims() == ["copy"]


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
