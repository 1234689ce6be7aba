"""The measurement of false alarms and of delays, on few nodes."""

from __future__ import annotations

import pytest

from eclectus_bench.learner.alarms import CHANGE_AT, NEVER, SIZES, STARTS, delay, events, false_alarm

FEW = range(3)
EXPONENTIAL = SIZES["exponential"]


@pytest.mark.parametrize("starts", STARTS)
def test_tasks_take_their_time_by_the_speed_of_their_node(starts: str) -> None:
    plain, changed = (events(starts, lambda rng: 1.0, 2, 1, factor) for factor in (1.0, 4.0))
    for sequence, factor in ((plain, 1.0), (changed, 4.0)):
        for each in sequence:
            if each.has_ended:
                late = each.node == 0 and each.began >= CHANGE_AT
                assert each.at - each.began == pytest.approx(1.0 / factor if late else 1.0) or (
                    each.node == 0 and each.began < CHANGE_AT < each.at
                )
    assert [each for each in plain if each.node] == [each for each in changed if each.node]


@pytest.mark.parametrize("starts", ["bursts", "batches of 15"])
def test_false_alarms_of_tasks_that_overlap_are_fewer_with_what_running_ones_have_shown(starts: str) -> None:
    alone, with_running = (false_alarm(starts, EXPONENTIAL, each, FEW) for each in (False, True))
    assert with_running > 2 * alone


@pytest.mark.parametrize("factor", [0.25, 4.0])
def test_a_change_is_found_by_either(factor: float) -> None:
    for counts_running in (False, True):
        assert delay("one by one", EXPONENTIAL, factor, counts_running, FEW) < NEVER / 2
