"""Turnaround: the mean of what slots are held beside runs, robust, by namespace and workload, bounded."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

import numpy as np
import pytest

from eclectus.maths.turnaround import (
    EVERY,
    LEAST,
    NAMESPACES_MOST,
    SAMPLES,
    WORKLOADS_MOST,
    Turnaround,
    Turnarounds,
    with_turnaround,
)


def learned(samples: Iterable[float]) -> Turnaround:
    found = Turnaround()
    for seconds in samples:
        found.observe(seconds)
    return found


def taught(*work: tuple[str, str, Iterable[float]]) -> Turnarounds:
    found = Turnarounds()
    for namespace, workload, samples in work:
        for seconds in samples:
            found.observe(namespace, workload, seconds)
    return found


# -- rates ---------------------------------------------------------------------------------------


def test_a_slot_serves_one_task_in_the_time_of_its_run_and_turnaround() -> None:
    assert with_turnaround(4.0, 0.75) == 1.0
    assert with_turnaround(0.0, 0.75) == 0.0


def test_without_turnaround_rates_are_the_same_to_the_last_bit() -> None:
    rates = np.random.default_rng(1).lognormal(0.0, 5.0, 1000)
    assert (with_turnaround(rates, 0.0) == rates).all()


# -- one kind of work ----------------------------------------------------------------------------


def test_it_is_unknown_before_the_first_samples() -> None:
    assert learned([1.0] * (EVERY - 1)).seconds == 0.0
    assert learned([1.0] * EVERY).seconds == 1.0


def test_it_is_the_mean_of_the_newest_samples() -> None:
    assert learned([5.0] * 96 + [0.2, 0.4] * (SAMPLES // 2)).seconds == pytest.approx(0.3)


def test_of_exponential_times_it_is_nearly_the_mean() -> None:
    random = Random(1)
    found = [learned(random.expovariate(1.0) for _ in range(SAMPLES)).seconds for _ in range(400)]
    assert sum(found) / len(found) == pytest.approx(0.94, abs=0.03)


def test_pods_that_hang_at_their_start_count_little() -> None:
    assert learned(([0.2] * 7 + [3600.0]) * 6).seconds < 0.3


def test_coarse_clocks_make_nothing_of_nothing() -> None:
    random = Random(1)
    assert learned(random.uniform(-1.0, 1.0) for _ in range(800)).seconds < 0.1


def test_less_than_a_quarter_of_it_is_no_change() -> None:
    found = learned([1.0] * SAMPLES + [1.2] * SAMPLES)
    assert found.seconds == 1.0
    found = learned([1.0] * SAMPLES + [1.3] * SAMPLES)
    assert found.seconds == pytest.approx(1.3, rel=0.05)


def test_on_a_quiet_cluster_it_becomes_0_again_but_for_a_trifle() -> None:
    assert learned([5.0] * SAMPLES + [0.0] * SAMPLES).seconds < LEAST


# -- workloads and namespaces --------------------------------------------------------------------


def test_a_workload_with_few_samples_has_that_of_its_namespace() -> None:
    found = taught(("a", "a/w", [0.3] * 40), ("a", "a/x", [9.0]))
    assert found.of("a", "a/x") == found.of("a", "a/new") == pytest.approx(0.3)


def test_a_workload_that_certainly_differs_has_its_own() -> None:
    """Its image is large."""
    found = taught(("a", "a/w", [0.2, 0.4] * 40), ("a", "a/large", [8.0, 9.0] * 8))
    assert found.of("a", "a/large") == pytest.approx(8.5)


def test_a_workload_that_differs_by_chance_has_that_of_its_namespace() -> None:
    found = taught(("a", "a/w", [0.1, 0.1, 0.7] * 30), ("a", "a/x", [0.7, 0.1] * 4))
    assert found.of("a", "a/x") == found.of("a", "a/w")


def test_what_others_run_changes_nothing_of_a_namespace_that_knows() -> None:
    found = taught(("a", "a/w", [0.3] * 40))
    for other in range(5):
        for _ in range(500):
            found.observe(f"evil-{other}", f"evil-{other}/w", 1e6)
    assert found.of("a", "a/w") == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("others", "believed"),
    [([], 0.0), ([1e6], 0.0), ([0.3, 1e6], 0.3), ([0.2, 0.3, 1e6], 0.2), ([0.2, 0.3, 0.4, 1e6], 0.3)],
)
def test_a_newcomer_believes_what_others_agree_on(others: list[float], believed: float) -> None:
    found = taught(*((f"n{at}", f"n{at}/w", [seconds] * EVERY) for at, seconds in enumerate(others)))
    assert found.of("new", "new/w") == pytest.approx(believed)


def test_shared_classes_have_no_vote() -> None:
    found = taught(("", "shared", [1e6] * EVERY), ("a", "a/w", [1e6] * EVERY))
    assert found.of("new", "new/w") == 0.0


def test_a_tenant_with_many_workloads_displaces_its_own_only() -> None:
    found = taught(("a", "a/w", [0.2] * 40), ("a", "a/large", [8.0] * 16))
    for at in range(3 * WORKLOADS_MOST):
        found.observe("evil", f"evil/{at}", 1.0)
    assert found.of("a", "a/large") == 8.0


def test_the_namespace_without_samples_for_longest_is_forgotten() -> None:
    found = taught(("a", "a/w", [8.0] * 40), ("b", "b/w", [2.0] * 40))
    found.observe("a", "a/w", 8.0)
    for at in range(NAMESPACES_MOST - 1):
        found.observe(f"n{at}", "w", 1.0)
    assert (found.of("a", "a/w"), found.of("b", "b/w")) == (8.0, 0.0)
