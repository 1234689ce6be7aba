"""Jobs whose tasks start together: whole or not at all, with and without pools, evictions and failures."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from checked_worlds import build_checked
from eclectus.model.commands import Bind, Evict
from eclectus.model.errors import SettingsError
from eclectus.model.events import GangGone, GangSeen
from short_scenarios import scenario

FOUR: dict[str, Any] = {"name": "train", "tasksPerJob": 4, "gang": 4, "size": {"mean": "10s"}}
ONE: dict[str, Any] = {"name": "web", "share": 4, "size": {"mean": "2s"}}


def world(policy: str = "best-fit", *classes: dict[str, Any], rate: float = 1.0, **fields: Any) -> Any:
    """A run of two nodes of five slots, so that no gang of four fits beside two others of its kind."""
    profile = {"schedulerName": "it", "place": {"policy": policy}, "learn": {"policy": "none"}}
    profile |= {name: fields.pop(name) for name in ("order", "relieve") if name in fields}
    return scenario(
        cluster={"groups": [{"slots": 5, "count": 2}]},
        workload={"poisson": {"rate": rate, "classes": list(classes or (FOUR, ONE))}},
        profiles=[profile],
        measure={"tasks": 150, "warmUp": 0.0},
        allowUnstable=True,
        **fields,
    )


def starts(of: Any, seed: int = 1) -> tuple[dict[str, list[float]], list[Any]]:
    """When the tasks of each job of the class `train` were bound, by job; and all events about PodGroups."""
    built, found, seen = build_checked(of, of.profiles[0], seed), dict[str, list[float]](), list[Any]()

    def note(now: float, events: Any, commands: Any) -> None:
        seen.extend(each for each in events if isinstance(each, GangSeen | GangGone))
        groups = {each.gang.key.name for each in seen if isinstance(each, GangSeen)}
        for each in commands:
            job = "-".join(each.name.split("-")[:2]) if isinstance(each, Bind) else ""
            if job in groups:
                found.setdefault(job, []).append(now)

    built.on_step = note
    assert built.run()
    assert not built.fault_count, built.first_fault
    return found, seen


@pytest.mark.parametrize("policy", ["best-fit", "kube", "uniform", "sparrow", "rosella"])
def test_all_tasks_of_a_gang_start_in_one_step(policy: str) -> None:
    found, _ = starts(world(policy))
    assert len(found) > 8
    assert all(len(moments) == 4 and len(set(moments)) == 1 for moments in found.values())


def test_without_gang_they_start_as_there_is_room() -> None:
    """Otherwise the test above could not fail."""
    alone = {**FOUR, "gang": 0}
    built, when = (
        build_checked(world("best-fit", alone, ONE), world("best-fit", alone, ONE).profiles[0], 1),
        Counter[str](),
    )
    moments: dict[str, set[float]] = {}

    def note(now: float, _: Any, commands: Any) -> None:
        for each in commands:
            if isinstance(each, Bind):
                job = "-".join(each.name.split("-")[:2])
                when[job] += 1
                moments.setdefault(job, set()).add(now)

    built.on_step = note
    assert built.run()
    assert any(when[job] == 4 and len(moments[job]) > 1 for job in when)


def test_a_quorum_starts_together_and_the_others_as_there_is_room() -> None:
    found, _ = starts(world("best-fit", {**FOUR, "tasksPerJob": 9, "gang": 3}, ONE))
    assert all(len(moments) == 9 for moments in found.values())
    assert all(Counter(moments)[min(moments)] >= 3 for moments in found.values())
    assert any(len(set(moments)) > 1 for moments in found.values())


def test_a_group_exists_before_its_pods_and_is_gone_with_the_last() -> None:
    _, seen = starts(world())
    last = {each.key if isinstance(each, GangGone) else each.gang.key: each for each in seen}
    gone = [each for each in last.values() if isinstance(each, GangGone)]
    assert len(gone) >= len(last) - 1, "the events of the last step are not shown"


POOLS = [
    {"name": "a", "preemption": {"fairShareSeconds": "1s", "fairShareThreshold": 1.0}},
    {"name": "b", "weight": 2, "preemption": {"fairShareSeconds": "1s", "fairShareThreshold": 1.0}},
]


def test_a_gang_never_takes_its_pool_beyond_its_limit() -> None:
    limited = [{"name": "a", "maxShare": {"amounts": {"cpu": 6}}}]
    of = world("best-fit", {**FOUR, "pool": "a"}, ONE, pools=limited, order={"policy": "pools"})
    found, _ = starts(of)
    assert all(len(set(moments)) == 1 for moments in found.values())
    built, most = build_checked(of, of.profiles[0], 2), [0]

    def note(*_: Any) -> None:
        running = [run for each in built.machines.values() for run in each.running.values()]
        most.append(sum(run.task.asked_pool == "a" for run in running))

    built.on_step = note
    assert built.run()
    assert 4 <= max(most) <= 6


def test_gangs_that_reclaim_evicts_start_again_and_all_tasks_end() -> None:
    classes = [{**FOUR, "pool": "a"}, {**FOUR, "name": "late", "pool": "b", "begins": "20s", "gang": 2}]
    of = world(
        "best-fit",
        *classes,
        rate=2.0,
        pools=POOLS,
        order={"policy": "pools"},
        relieve=[{"policy": "reclaim"}],
    )
    built = build_checked(of, of.profiles[0], 1)
    evicted = list[Evict]()
    built.on_step = lambda _now, _events, commands: evicted.extend(
        each for each in commands if isinstance(each, Evict)
    )
    assert built.run()
    assert evicted
    assert built.record.in_system == 0


def test_a_job_of_which_some_tasks_have_ended_does_not_wait_for_them_after_a_failure() -> None:
    events = [
        {"at": "20s", "action": "fail", "group": "g0", "count": 1},
        {"at": "40s", "action": "recover", "group": "g0"},
    ]
    unequal = {**FOUR, "size": {"law": "exponential", "mean": "10s"}}
    of = world("best-fit", unequal, ONE, events=events)
    _, seen = starts(of)
    assert any(isinstance(each, GangSeen) and each.gang.min_count < 4 for each in seen)


def test_more_than_a_job_has_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"classes\[0\]\.gang: is more than tasksPerJob, 4"):
        world("best-fit", {**FOUR, "gang": 5})


def test_equal_seeds_give_equal_runs() -> None:
    assert starts(world())[0] == starts(world())[0]
