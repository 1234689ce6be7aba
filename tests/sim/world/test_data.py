"""Data in the simulator: tasks take longer away from them, and a policy that waits finds them."""

from __future__ import annotations

from statistics import fmean
from typing import Any

import pytest

from checked_worlds import run_checked
from eclectus.maths.student import half_width
from eclectus.model.errors import SettingsError
from eclectus.sim.base.results import RunResult
from eclectus.sim.scenario import Scenario
from short_scenarios import scenario

DELAY: dict[str, Any] = {"policy": "delay", "nodeWait": "5s"}


def world(hold: dict[str, Any] | None = None, **fields: Any) -> Scenario:
    """Twelve nodes of two slots; jobs of four tasks of about 20 s."""
    profile: dict[str, Any] = {"schedulerName": "it", "place": {"policy": "best-fit"}}
    work = {"name": "w", "tasksPerJob": 4, "size": {"law": "gamma", "shape": 20, "mean": "20s"}}
    given: dict[str, Any] = {
        "cluster": {"groups": [{"name": "node", "count": 12, "slots": 2}]},
        "workload": {"poisson": {"load": 0.4, "classes": [work]}},
        "profiles": [profile | ({"hold": hold} if hold else {})],
        "data": {"copies": 3, "remote": 2},
        "measure": {"tasks": 400},
    }
    return scenario(**given | fields)


def ran(of: Scenario) -> RunResult:
    """The run, with every check of the world."""
    result = run_checked(of, of.profiles[0], 1)
    assert result.faults == 0
    return result


def test_who_waits_for_data_finds_them_and_ends_sooner() -> None:
    without, waiting = ran(world()), ran(world(DELAY))
    assert without.locality is not None
    assert waiting.locality is not None
    assert without.locality < 0.5
    assert waiting.locality > 0.9
    assert waiting.response.mean < 0.8 * without.response.mean


def test_away_from_its_data_a_task_takes_as_many_times_as_long() -> None:
    far, near = ran(world(data={"copies": 1, "remote": 3})), ran(world(data={"copies": 12, "remote": 3}))
    assert near.locality == 1.0
    assert far.locality is not None
    assert far.locality < 0.3
    assert far.response.mean > 2 * near.response.mean


def test_where_elsewhere_is_as_fast_nobody_waits_once_that_is_known() -> None:
    same: dict[str, Any] = {"data": {"copies": 3, "remote": 1}, "measure": {"tasks": 1000, "warmUp": 0.4}}
    without, published = ran(world(**same)), ran(world(DELAY | {"leastGain": None}, **same))
    learned = ran(world(DELAY, **same))
    assert learned.response.mean == pytest.approx(without.response.mean, rel=0.01)
    assert published.response.mean > 1.01 * without.response.mean


def one_slot(hold: dict[str, Any] | None, seed: int) -> RunResult:
    """Twelve nodes of one slot, tasks of five minutes, elsewhere 1.2 times as long."""
    work = {"name": "w", "tasksPerJob": 4, "size": {"law": "gamma", "shape": 20, "mean": "300s"}}
    of = world(
        hold,
        cluster={"groups": [{"name": "node", "count": 12, "slots": 1}]},
        workload={"poisson": {"load": 0.5, "classes": [work]}},
        data={"copies": 3, "remote": 1.2},
        measure={"tasks": 600, "warmUp": 0.2},
    )
    return run_checked(of, of.profiles[0], seed)


@pytest.mark.slow
def test_for_slots_that_are_not_expected_soon_nobody_waits() -> None:
    minute: dict[str, Any] = {"policy": "delay", "nodeWait": "60s"}
    saved = []
    for seed in range(1, 6):
        as_set, reckoned = one_slot(minute | {"leastGain": None}, seed), one_slot(minute, seed)
        saved.append(as_set.response.mean - reckoned.response.mean)
    error = half_width(saved)
    assert error is not None
    assert fmean(saved) > error


def test_without_data_there_is_no_locality() -> None:
    assert ran(world(data=None)).locality is None


def test_hot_data_are_those_of_a_share_of_the_tasks_on_the_same_nodes() -> None:
    spread, hot = (ran(world(DELAY, data={"copies": 1, "remote": 2, "hot": share})) for share in (0.0, 1.0))
    assert spread.locality is not None
    assert hot.locality is not None
    assert spread.locality > 0.8
    assert hot.locality < 0.5


RACKS = {
    "groups": [
        {"name": f"rack{at}", "count": 4, "slots": 2, "labels": {"rack": f"r{at}"}, "speed": 1.0}
        for at in range(3)
    ]
}
BY_BYTES = {"copies": 1, "remote": 1, "near": 1, "label": "rack", "gigabytes": 5, "nearSeconds": 1}


def test_reading_takes_time_by_bytes_and_they_are_counted_by_rack() -> None:
    far, free = (
        ran(world(cluster=RACKS, data={**BY_BYTES, "remoteSeconds": seconds, "nearSeconds": near}))
        for seconds, near in ((4, 1), (0, 0))
    )
    # Of 400 tasks of 5 GB some eight of twelve start in another rack, and read for 20 s.
    assert far.across_gigabytes is not None
    assert 900 < far.across_gigabytes < 1900
    assert 10 < far.response.mean - free.response.mean < 25
    assert ran(world(data={"copies": 1, "remote": 1})).across_gigabytes is None


def test_where_every_node_has_the_data_nothing_moves() -> None:
    everywhere = {**BY_BYTES, "copies": 12}
    assert ran(world(cluster=RACKS, data=everywhere)).across_gigabytes == 0.0


def test_seconds_within_a_rack_need_racks() -> None:
    with pytest.raises(SettingsError, match="nearSeconds: needs near and label"):
        world(data={"nearSeconds": 1})


@pytest.mark.parametrize("data", [{"near": 1.5}, {"label": "rack"}])
def test_near_needs_a_label(data: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match=r"data\.label: belongs to near"):
        world(data=data)
