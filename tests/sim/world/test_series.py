"""Series over a run: bounded, equally spaced, and consistent with the totals."""

from __future__ import annotations

from itertools import pairwise

import pytest

from eclectus.sim.world.run_record import Series
from short_scenarios import place, poisson, runs, scenario


@pytest.mark.parametrize("seconds", [3, 50, 1000, 12345])
def test_a_series_is_equally_spaced_and_bounded(seconds: int) -> None:
    series: Series[float] = Series(1.0, most=10)
    while series.due <= seconds:
        series.add(series.due)
    assert len(series.items) < 20
    assert len(series.items) >= min(seconds, 9)
    assert series.items == [series.every * (at + 1) for at in range(len(series.items))]
    assert series.due == series.items[-1] + series.every


def test_a_run_s_series_adds_up_to_its_means() -> None:
    asked = scenario(
        cluster={"groups": [{"count": 4}]}, workload=poisson(0.6), measure={"tasks": 4000, "warmUp": 0}
    )
    (run,) = runs(asked, [1])
    ends = [0.0, *(point.at for point in run.series)]
    lengths = [after - before for before, after in pairwise(ends)]
    seconds = sum(lengths)

    def mean(values: list[float]) -> float:
        return sum(a * b for a, b in zip(lengths, values, strict=True)) / seconds

    assert 240 <= len(run.series) < 480
    assert seconds == pytest.approx(run.seconds, rel=0.01)
    assert mean([point.in_system for point in run.series]) == pytest.approx(run.in_system_mean, rel=0.02)
    assert mean([point.utilisation for point in run.series]) == pytest.approx(run.utilisation, rel=0.02)
    assert mean([point.waiting for point in run.series]) == pytest.approx(
        run.in_system_mean - 4 * run.utilisation, rel=0.05
    )


def test_the_window_begins_after_the_warm_up_and_ends_with_the_last_arrival() -> None:
    asked = scenario(measure={"horizon": 900, "warmUp": 0.5})
    (run,) = runs(asked, [1])
    assert 450 <= run.measured_from < 470
    assert run.measured_from < run.measured_until <= 900
    assert run.series[0].at < 10


def test_the_learning_error_decreases() -> None:
    asked = scenario(
        cluster={"groups": [{"name": "slow", "count": 4}, {"name": "fast", "count": 4, "speed": 3}]},
        workload=poisson(0.7),
        profiles=place("uniform", learn="rosella"),
        measure={"tasks": 2000},
    )
    (run,) = runs(asked, [1])
    first, last = run.learning_errors[:2], run.learning_errors[-2:]
    assert {sample.group for sample in first} == {sample.group for sample in last} == {"slow", "fast"}
    assert max(sample.error for sample in last) < 0.2
    assert max(sample.error for sample in first) > 0.3
    assert [sample.ratio for sample in last] == pytest.approx([1.0, 1.0], abs=0.1)
    assert 20 <= len({sample.at for sample in run.learning_errors}) < 80


def test_a_profile_with_an_oracle_has_no_learning_error() -> None:
    oracle = [{"schedulerName": "it", "place": {"policy": "uniform"}, "learn": {"policy": "truth"}}]
    (run,) = runs(scenario(profiles=oracle), [1])
    assert {sample.error for sample in run.learning_errors} == {0.0}
