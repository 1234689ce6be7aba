"""What is learned of how much longer tasks take away from their data."""

from __future__ import annotations

from random import Random

import pytest

from eclectus.maths.data_gain import (
    LEAST_SAMPLES,
    NAMESPACES_MOST,
    WORKLOADS_MOST,
    DataGain,
    DataGains,
)


def gain(near: list[float], far: list[float]) -> DataGain:
    gains = DataGains()
    for is_far, times in ((False, near), (True, far)):
        for seconds in times:
            gains.end("a", "w", seconds, is_far=is_far)
    found = gains.of("a", "w")
    assert found is not None
    return found


def test_too_few_samples_say_nothing() -> None:
    enough = [10.0] * LEAST_SAMPLES
    assert gain(enough, enough[1:]).ratio is None
    assert gain(enough[1:], enough).ratio is None
    assert gain(enough, enough).ratio == 1.0


@pytest.mark.parametrize(
    ("near", "far", "expected"),
    # log(20/10) = .6931; C^2 = .01 at least, so d = sqrt(.01 (1/20 + 1/20)) = .0316; exp(.6931 - .0632)
    [(10.0, 20.0, 1.877), (20.0, 10.0, 0.5327), (10.0, 10.5, 1.0)],
)
def test_golden_drawn_to_1_by_two_deviations(near: float, far: float, expected: float) -> None:
    assert gain([near] * 20, [far] * 20).ratio == pytest.approx(expected, rel=1e-3)


def test_equal_times_that_vary_much_are_hardly_ever_believed_to_differ() -> None:
    wrong = 0
    for seed in range(200):
        draw = Random(seed).expovariate
        ratio = gain([draw(0.1) for _ in range(300)], [draw(0.1) for _ in range(40)]).ratio
        wrong += ratio is not None and ratio >= 1.05
    assert wrong <= 8


def test_of_ten_starts_one_is_a_trial_until_enough_have_ended_far() -> None:
    gains, far = DataGains(), 0
    for at in range(1, 401):
        found = gains.of("a", "w")
        is_far = found is not None and found.wants_trial
        far += is_far
        gains.start("a", "w", is_far=is_far)
        gains.end("a", "w", 20.0 if is_far else 10.0, is_far=is_far)
        assert at > 10 or not far
    assert far == LEAST_SAMPLES


def test_trials_that_never_end_get_rare() -> None:
    gains, far = DataGains(), 0
    for _ in range(10_000):
        found = gains.of("a", "w")
        is_far = found is not None and found.wants_trial
        far += is_far
        gains.start("a", "w", is_far=is_far)
    assert 40 < far <= 100


def test_a_namespace_learns_by_its_own_tasks() -> None:
    gains = DataGains()
    gains.end("a", "w", 1.0, is_far=True)
    assert gains.of("b", "w") is None


def test_bounded_what_was_used_last_is_kept() -> None:
    gains = DataGains()
    for at in range(3 * WORKLOADS_MOST):
        gains.start("many", f"w{at}", is_far=False)
        gains.start("many", "w0", is_far=False)
    assert gains.of("many", "w0") is not None
    assert gains.of("many", f"w{WORKLOADS_MOST}") is None
    assert sum(gains.of("many", f"w{at}") is not None for at in range(3 * WORKLOADS_MOST)) == WORKLOADS_MOST
    for at in range(2 * NAMESPACES_MOST):
        gains.start(f"n{at}", "w", is_far=False)
    assert gains.of("many", "w0") is None
    assert sum(gains.of(f"n{at}", "w") is not None for at in range(2 * NAMESPACES_MOST)) == NAMESPACES_MOST


def test_for_metrics_the_works_with_the_most_samples() -> None:
    gains = DataGains()
    for name, samples in (("few", 19), ("some", 20), ("most", 30)):
        for _ in range(samples):
            gains.end("a", name, 10.0, is_far=False)
            gains.end("a", name, 10.0, is_far=True)
    assert gains.best_known(9) == [("most", 1.0), ("some", 1.0)]
    assert gains.best_known(1) == [("most", 1.0)]
