"""Preferences with a gain: tasks run faster where their preferences are met, and results say how often."""

from __future__ import annotations

from typing import Any

import pytest

from eclectus.model.errors import SettingsError
from eclectus.sim.base.results import RunResult
from short_scenarios import place, runs, scenario

SSD = [{"key": "disk", "values": ["ssd"], "weight": 3}]
ZONE = [{"key": "zone", "values": ["a"], "weight": 1}]


def cluster(*labels: dict[str, str]) -> dict[str, Any]:
    return {"groups": [{"count": 2, "speed": 2, "labels": each} for each in labels]}


def result(*labels: dict[str, str], **fields: Any) -> RunResult:
    classes = [{"size": {"law": "deterministic", "mean": 3}, **fields}]
    asked = scenario(
        cluster=cluster(*labels),
        workload={"poisson": {"rate": 0.01, "classes": classes}},
        profiles=place("least-allocated"),
        measure={"tasks": 60, "groups": ["constrained"]},
    )
    return runs(asked, [1], checked=True)[0]


def test_a_task_runs_gain_times_faster_on_a_node_that_meets_all_its_preferences() -> None:
    everywhere = result({"disk": "ssd"}, preferences=SSD, gain=1.5)
    assert (everywhere.response.mean, everywhere.met) == (pytest.approx(1.0), 1.0)
    nowhere = result({"disk": "hdd"}, preferences=SSD, gain=1.5)
    assert (nowhere.response.mean, nowhere.met) == (pytest.approx(1.5), 0.0)
    in_part = result({"disk": "ssd", "zone": "b"}, preferences=SSD + ZONE, gain=1.5)
    assert (in_part.response.mean, in_part.met) == (pytest.approx(1.5), pytest.approx(0.75))


def test_preferences_met_are_counted_by_group_and_not_without_preferences() -> None:
    found = result({"disk": "ssd"}, preferences=SSD)
    assert [(name, group.met) for name, group in found.groups["constrained"].items()] == [("preferring", 1.0)]
    plain = result({"disk": "ssd"})
    assert (plain.met, plain.groups["constrained"]["free"].met) == (None, None)


def test_an_oracle_knows_the_gain() -> None:
    classes = [{"name": "plain"}, {"name": "picky", "preferences": SSD, "gain": 3}]
    asked = scenario(
        cluster=cluster({"disk": "ssd"}, {}), workload={"poisson": {"rate": 0.1, "classes": classes}}
    )
    machines = asked.cluster.machines()
    speeds = {name: (machine.speed("plain"), machine.speed("picky")) for name, machine in machines.items()}
    assert speeds == {"g0-0": (2, 6), "g0-1": (2, 6), "g1-0": (2, 2), "g1-1": (2, 2)}


def test_a_gain_does_not_count_in_the_load() -> None:
    classes = [{"name": "plain"}, {"name": "picky", "preferences": SSD, "gain": 3}]
    asked = scenario(
        cluster=cluster({"disk": "ssd"}, {}), workload={"poisson": {"load": 0.5, "classes": classes}}
    )
    assert asked.plan.tasks_a_second == pytest.approx(0.5 * 8)


def test_a_gain_without_preferences_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"classes\[0\].gain: is valid only with preferences"):
        scenario(workload={"poisson": {"rate": 0.1, "classes": [{"gain": 2}]}})
