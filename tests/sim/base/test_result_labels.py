"""By what results are told apart, and that telling them apart changes nothing."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import asdict

from eclectus.model.objects import Spec, Toleration
from eclectus.sim.base.result_labels import Grouping
from eclectus.sim.base.results import RunResult
from eclectus.sim.base.work import Arrival, Dag, Stage, WorkClass
from eclectus.sim.run import run
from simulated import runs, scenario

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


def told(*groups: str, **fields: Any) -> RunResult:
    (found,) = runs(scenario(**MIXED, measure={"tasks": 400, "groups": list(groups), **fields}), [1])
    return found


def test_a_job_is_short_where_its_tasks_take_less_than_the_cut_off_in_the_mean() -> None:
    by_length = Grouping(("length",), cut_off=3.0)
    assert by_length.length(Arrival(0.0, PLAIN, (1.0, 4.9))) == "short"
    assert by_length.length(Arrival(0.0, PLAIN, (1.0, 5.0))) == "long"
    assert by_length.length(Arrival(0.0, PLAIN, (float("inf"),))) == "long"


def test_what_the_scheduler_is_told_of_lengths_plays_no_part() -> None:
    by_length = Grouping(("length",), cut_off=3.0)
    assert by_length.length(Arrival(0.0, PLAIN, (9.0,), estimate=1.0)) == "long"


@pytest.mark.parametrize(
    ("spec", "label"),
    [
        (Spec(), "free"),
        (Spec(requests=(("cpu", 4000),)), "free"),
        (PICKY.spec, "constrained"),
        (Spec(tolerations=(Toleration("gpu"),)), "constrained"),
        (Spec(affinity=()), "constrained"),
    ],
)
def test_constrained_is_who_says_where_to_run(spec: Spec, label: str) -> None:
    assert Grouping(("constrained",)).labels(WorkClass("k", spec), "") == (label,)


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


def test_groups_part_tasks_and_jobs_without_rest() -> None:
    found = told("class", "length", "constrained", "length+constrained", cutOff=2)
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
    web, ssd = (told("class").groups["class"][name] for name in ("web", "ssd"))
    assert web.response.count == 3 * web.jobs.count
    assert (web.jobs.mean > web.response.mean, web.jobs.largest) == (True, web.response.largest)
    assert ssd.jobs == ssd.response


def test_what_is_measured_changes_nothing_of_what_happens() -> None:
    plain, parted = told(), told("class", "length", cutOff=1)
    assert (len(plain.groups), len(parted.groups)) == (0, 2)
    assert (plain.steps, plain.series, plain.learned) == (parted.steps, parted.series, parted.learned)
    assert plain.response.buckets == parted.response.buckets
    assert plain.jobs.buckets == parted.jobs.buckets


def test_looking_at_what_was_learned_changes_nothing_of_what_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = scenario(**MIXED, profiles=[{"schedulerName": "it"}])
    looked = asdict(run(asked, asked.profiles[0], 1))
    monkeypatch.setattr("eclectus.sim.world.learning_error.LOOKS_MOST", 1)
    monkeypatch.setattr("eclectus.sim.world.learning_error.LOOKS_LEAST", 1)
    once = asdict(run(asked, asked.profiles[0], 1))
    assert len(looked.pop("lessons")) > 10 * len(once.pop("lessons")) > 0
    assert looked == once
