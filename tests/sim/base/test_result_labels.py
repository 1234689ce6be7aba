"""The grouping of results, and that it does not change the run."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import asdict

from eclectus.model.objects import Preference, Requirement, Spec, Term, Toleration
from eclectus.sim.base.results import Grouping, RunResult, sorted_groups
from eclectus.sim.base.work import Arrival, Dag, Stage, WorkClass
from eclectus.sim.runs import run
from short_scenarios import runs, scenario

PLAIN = WorkClass("plain", Spec())
PICKY = WorkClass("picky", Spec(node_selector=(("disk", "ssd"),)))
CLASSES = [
    {"name": "web", "tasksPerJob": 3, "size": {"mean": 1}},
    {"name": "ssd", "nodeSelector": {"disk": "ssd"}, "size": {"mean": 4}},
]
MIXED = {
    "cluster": {"groups": [{"count": 3, "slots": 2}, {"count": 2, "slots": 2, "labels": {"disk": "ssd"}}]},
    "workload": {"poisson": {"rate": 3, "classes": CLASSES}},
}


def result(*groups: str, **fields: Any) -> RunResult:
    (found,) = runs(scenario(**MIXED, measure={"tasks": 400, "groups": list(groups), **fields}), [1])
    return found


def test_a_job_is_short_if_its_mean_task_size_is_below_the_cut_off() -> None:
    by_length = Grouping(("length",), cut_off=3.0)
    assert by_length.length(Arrival(0.0, PLAIN, (1.0, 4.9))) == "short"
    assert by_length.length(Arrival(0.0, PLAIN, (1.0, 5.0))) == "long"
    assert by_length.length(Arrival(0.0, PLAIN, (float("inf"),))) == "long"


def test_estimates_do_not_matter_for_the_length() -> None:
    by_length = Grouping(("length",), cut_off=3.0)
    assert by_length.length(Arrival(0.0, PLAIN, (9.0,), estimate=1.0)) == "long"


ZONES = Term((Requirement("zone", "In", ("a", "b")), Requirement("gpu", "Exists")))
PREFERS = (Preference(1, ZONES),)


@pytest.mark.parametrize(
    ("spec", "label", "constraints"),
    [
        (Spec(), "free", "free"),
        (Spec(requests=(("cpu", 4000),)), "free", "free"),
        (Spec(preferences=PREFERS), "preferring", "preferring"),
        (PICKY.spec, "constrained", "disk=ssd"),
        (Spec(node_selector=(("disk", "ssd"), ("isa", "arm"))), "constrained", "disk=ssd+isa=arm"),
        (Spec(node_selector=(("disk", "ssd"),), preferences=PREFERS), "constrained", "disk=ssd"),
        (
            Spec(affinity=(ZONES, ZONES)),
            "constrained",
            "zone In a|b and gpu Exists or zone In a|b and gpu Exists",
        ),
        (Spec(affinity=()), "constrained", "nowhere"),
        (
            Spec(tolerations=(Toleration("gpu"), Toleration())),
            "constrained",
            "tolerates gpu+tolerates everything",
        ),
    ],
)
def test_a_pod_with_hard_constraints_is_constrained_and_the_set_names_them(
    spec: Spec, label: str, constraints: str
) -> None:
    assert Grouping(("constrained", "set")).labels(WorkClass("k", spec), "") == (label, constraints)


def test_preferring_tasks_are_a_group_between_free_and_constrained_ones() -> None:
    assert sorted_groups(["constrained", "free", "preferring"]) == ["free", "preferring", "constrained"]


def test_a_job_of_stages_belongs_to_a_class_only_if_all_of_them_do() -> None:
    def dag(*kinds: WorkClass) -> Arrival:
        stages = tuple(Stage(str(at), kind, 1, 1.0, (), (), 1.0) for at, kind in enumerate(kinds))
        return Arrival(0.0, PLAIN, (1.0,) * len(stages), dag=Dag("j", stages))

    groups = Grouping(("class", "length+constrained"), cut_off=2.0)
    alike, mixed = (
        groups.job_labels(job, groups.length(job)) for job in (dag(PICKY, PICKY), dag(PLAIN, PICKY))
    )
    assert [groups.group_of(name, alike) for name in groups.requested] == ["picky", "short, constrained"]
    assert [groups.group_of(name, mixed) for name in groups.requested] == [None, None]


def test_groups_partition_tasks_and_jobs() -> None:
    found = result("class", "length", "constrained", "length+constrained", cutOff=2)
    assert {name: list(some) for name, some in found.groups.items()} == {
        "class": ["ssd", "web"],
        "length": ["short", "long"],
        "constrained": ["free", "constrained"],
        "length+constrained": ["short, free", "short, constrained", "long, free", "long, constrained"],
    }
    for some in found.groups.values():
        assert sum(group.response.count for group in some.values()) == found.response.count
        assert sum(group.jobs.count for group in some.values()) == found.jobs.count
        total = sum(group.response.mean * group.response.count for group in some.values())
        assert total == pytest.approx(found.response.mean * found.response.count)


def test_a_job_takes_as_long_as_its_last_task() -> None:
    web, ssd = (result("class").groups["class"][name] for name in ("web", "ssd"))
    assert web.response.count == 3 * web.jobs.count
    assert (web.jobs.mean > web.response.mean, web.jobs.largest) == (True, web.response.largest)
    assert ssd.jobs == ssd.response


def test_grouping_does_not_change_the_run() -> None:
    plain, parted = result(), result("class", "length", cutOff=1)
    assert (len(plain.groups), len(parted.groups)) == (0, 2)
    assert (plain.steps, plain.series, plain.learned) == (parted.steps, parted.series, parted.learned)
    assert plain.response.buckets == parted.response.buckets
    assert plain.jobs.buckets == parted.jobs.buckets


def test_sampling_the_learning_error_does_not_change_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = scenario(**MIXED, profiles=[{"schedulerName": "it"}])
    often = asdict(run(asked, asked.profiles[0], 1))
    monkeypatch.setattr("eclectus.sim.world.learning.SAMPLES_MOST", 1)
    monkeypatch.setattr("eclectus.sim.world.learning.SAMPLES_LEAST", 1)
    once = asdict(run(asked, asked.profiles[0], 1))
    assert len(often.pop("learning_errors")) > 10 * len(once.pop("learning_errors")) > 0
    assert often == once
