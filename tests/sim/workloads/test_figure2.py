"""Worked examples of Carbyne (C1, C2) as simulated scenarios: response times of each job under each order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from checked_worlds import run_checked
from eclectus.model.events import JobGone, JobSeen
from eclectus.sim.runs import build_world
from eclectus.sim.scenario import Scenario, load, shipped_scenarios
from short_scenarios import scenario
from staged_jobs import written

SEEDS = (1, 2, 3)  # of the order in which the two jobs arrive


def responses(read: Scenario, profile: str, seed: int = 1) -> dict[str, float]:
    """By job, seconds rounded to a millisecond."""
    chosen = next(each for each in read.profiles if each.name == profile)
    found = run_checked(read, chosen, seed)
    assert found.faults == 0
    assert found.dags is not None
    return {job.name: round(job.response, 3) for job in found.dags.jobs}


# -- Figure 2 of the paper -----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("profile", ["drf", "srtf", "sjf"])
def test_work_conserving_orders_take_1_55_s_on_average_in_figure_2(profile: str, seed: int) -> None:
    found = responses(load(shipped_scenarios()["figure2"]), profile, seed)
    assert found in ({"J1": 2.1, "J2": 1.0}, {"J1": 1.1, "J2": 2.0})


@pytest.mark.parametrize("seed", SEEDS)
def test_strict_sharing_takes_2_05_s_and_carbyne_1_55_without_delaying_a_job(seed: int) -> None:
    figure = load(shipped_scenarios()["figure2"])
    assert responses(figure, "strict", seed) == {"J1": 2.1, "J2": 2.0}
    assert responses(figure, "carbyne", seed) == {"J1": 2.1, "J2": 1.0}


# -- why starts above a share are bounded --------------------------------------------------------------

LAG: list[dict[str, Any]] = [
    {
        "name": "J1",
        "stages": [
            {"name": "x", "seconds": 2, "requests": {"cpu": "500m"}},
            {"name": "y", "seconds": 1, "requests": {"cpu": "500m"}},
            {"name": "z", "seconds": 1, "requests": {"cpu": 1}, "parents": ["x", "y"]},
        ],
    },
    {
        "name": "J2",
        "stages": [{"name": "a", "tasks": 3, "seconds": 10, "requests": {"cpu": "500m"}}],
    },
]


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ({"altruism": 0, "leftover": "none"}, {"J1": 3.0, "J2": 13.0}),  # alone, J2 is entitled to all
        ({"overhang": "free"}, {"J1": 11.0, "J2": 11.0}),  # J2's third task takes the room of y until 11
        ({"overhang": "bounded"}, {"J1": 3.0, "J2": 13.0}),
    ],
    ids=["strict", "free", "bounded"],
)
def test_a_long_task_above_its_share_would_delay_another_job(
    order: dict[str, Any], expected: dict[str, float], tmp_path: Path
) -> None:
    profile = {"schedulerName": "it", "order": {"policy": "carbyne", **order}, "waitLimit": None}
    read = scenario(
        workload={"dags": written(tmp_path, *LAG)},
        cluster={"groups": [{"resources": {"cpu": 2}}]},
        profiles=[profile | {"place": {"policy": "best-fit"}, "learn": {"policy": "none"}}],
        measure={},
    )
    assert responses(read, "it") == expected


# -- what the engine gets ------------------------------------------------------------------------------


def job_events(profile: str) -> list[str]:
    read = load(shipped_scenarios()["figure2"])
    world = build_world(read, next(each for each in read.profiles if each.name == profile), 1)
    found: list[str] = []
    world.on_step = lambda now, events, commands: found.extend(
        f"{now:g} {type(event).__name__}" for event in events if isinstance(event, JobSeen | JobGone)
    )
    world.run()
    return found


def test_jobs_are_shown_only_to_policies_that_ask_for_them() -> None:
    assert job_events("drf") == []
    seen = job_events("carbyne")
    assert seen[:2] == ["0 JobSeen", "0 JobSeen"]
    assert seen[-1] == "2.1 JobGone"
    assert len([each for each in seen if each.endswith("Gone")]) == 2
