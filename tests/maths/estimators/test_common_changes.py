"""What makes a common change, and which samples it outdates."""

from __future__ import annotations

import numpy as np

from eclectus.maths.service_rates import ROWS_AT_ONCE, SAMPLES_PER_NODE, CommonChanges

NODES = 12
KNOWN = np.arange(NODES)


def test_a_third_of_the_nodes_makes_a_common_change_and_each_node_counts_once() -> None:
    changes = CommonChanges()
    assert not any(changes.alarm(row, 10.0 + row, KNOWN) for row in (0, 1, 2, 2, 1, 0))
    assert changes.alarm(3, 13.0, KNOWN)


def test_the_samples_of_the_other_nodes_are_dropped_from_before_the_latest_change() -> None:
    changes = CommonChanges()
    for row, since in enumerate((11.0, 14.0, 12.0, 13.0)):
        changes.alarm(row, since, KNOWN)
    assert dict(changes.take_outdated()) == dict.fromkeys(range(4, NODES), 14.0)
    assert not list(changes.take_outdated())


def test_alarms_that_are_far_apart_make_no_common_change() -> None:
    changes = CommonChanges()
    for row in range(NODES):
        assert not changes.alarm(row, float(row), KNOWN)
        changes.samples += SAMPLES_PER_NODE * NODES // 3


def test_two_nodes_make_no_common_change() -> None:
    changes = CommonChanges()
    assert not changes.alarm(0, 1.0, np.arange(2))
    assert not changes.alarm(1, 1.0, np.arange(2))


def test_a_node_that_is_gone_has_no_outdated_samples_and_makes_no_common_change() -> None:
    changes = CommonChanges()
    for row in range(3):
        changes.alarm(row, 1.0, KNOWN)
    changes.forget(0)
    assert not changes.alarm(3, 1.0, KNOWN)
    assert changes.alarm(4, 1.0, KNOWN)
    changes.forget(NODES - 1)
    assert NODES - 1 not in dict(changes.take_outdated())


def test_on_a_large_cluster_few_nodes_are_looked_at_in_a_fit() -> None:
    changes, known = CommonChanges(), np.arange(3 * ROWS_AT_ONCE)
    assert [changes.alarm(row, 1.0, known) for row in range(ROWS_AT_ONCE)][-1]
    assert [len(list(changes.take_outdated())) for _ in range(3)] == [ROWS_AT_ONCE, ROWS_AT_ONCE, 0]
