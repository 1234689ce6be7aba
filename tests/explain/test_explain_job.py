"""What an explanation says of a job: its pods that wait, in groups of those that are alike."""

from __future__ import annotations

from msgspec.structs import replace

from builders import make_engine, make_task
from eclectus.api.names import DAG_JOB_LABEL, JOB_NAME_LABEL
from eclectus.explain.pod import GROUPS_MOST, job_explanation
from eclectus.model.events import TaskSeen
from eclectus.model.explanation import AlikePods, JobExplanation
from worlds import World, small_world

LABELS = ((JOB_NAME_LABEL, "j"),)


def explain(world: World, name: str = "j", namespace: str = "default") -> JobExplanation:
    labels = [(JOB_NAME_LABEL, name), (DAG_JOB_LABEL, name)]
    return world.engine.read(job_explanation, (namespace, name), labels, world.now)


def test_pods_that_are_alike_are_one_group() -> None:
    world = small_world(make_engine(), cpu=2)
    of_job = {"job": "uid-j", "labels": LABELS}
    world.add(*(make_task(f"run{at}", **of_job) for at in range(2)))
    world.add(
        *(make_task(f"wait{at}", **of_job) for at in range(2)),
        *(make_task(f"large{at}", cpu=9, **of_job) for at in range(3)),
        make_task("gated", gates=("g",), **of_job),
        make_task("other", job="uid-k"),
    )
    found = explain(world)
    assert (found.known, found.waiting_pods, found.placed_pods, found.not_listed) == (True, 6, 2, 0)
    assert found.summary == "6 of its pods wait, and 2 are on nodes"
    large, *others = found.groups
    assert (large.state, large.pods, large.example) == ("unschedulable", 3, "large0")
    assert large.reason == "no node, however empty, could run it"
    assert large.message.startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert [(group.state, group.pods) for group in others][-1] == ("gated", 1)
    assert sum(group.pods for group in found.groups) == 6


def test_a_bind_under_way_counts_as_placed() -> None:
    world = small_world(make_engine())
    world.answers_binds = False
    world.step(TaskSeen(make_task("a", job="uid-j", labels=LABELS)))
    found = explain(world)
    assert (found.waiting_pods, found.placed_pods, found.groups) == (0, 1, ())


def test_of_many_groups_the_largest_are_explained() -> None:
    world = small_world(make_engine(), cpu=1)
    many = GROUPS_MOST + 2
    world.add(*(make_task(f"t{at}", cpu=2 + at, job="uid-j", labels=LABELS) for at in range(many)))
    found = explain(world)
    assert (len(found.groups), found.not_listed) == (GROUPS_MOST, 2)


def test_pods_that_only_a_gate_holds_back() -> None:
    world = small_world(make_engine())
    world.add(make_task("a", gates=("one",), job="uid-j", labels=((DAG_JOB_LABEL, "j"),)))
    assert explain(world).groups == (AlikePods("gated", 1, "it has scheduling gates: one", "", "a"),)


def test_a_job_that_is_not_known() -> None:
    world = small_world(make_engine())
    world.add(make_task("a", labels=LABELS), make_task("b", job="uid-j", labels=LABELS))
    assert not explain(world, "k").known
    assert not explain(world, namespace="elsewhere").known
    assert explain(world).placed_pods == 1, "a pod without a controller is of no job"


def test_a_pod_of_another_namespace_that_names_the_job_is_not_shown() -> None:
    world = small_world(make_engine(), cpu=2)
    world.add(replace(make_task("placed", job="uid-j"), namespace="bank"))
    world.add(*(replace(make_task(name, cpu=9, job="uid-j"), namespace=name) for name in ("bank", "vault")))
    world.add(make_task("own", cpu=9, job="uid-j", labels=LABELS))
    found = explain(world)
    assert (found.waiting_pods, found.placed_pods) == (1, 0)
    assert [group.example for group in found.groups] == ["own"]
