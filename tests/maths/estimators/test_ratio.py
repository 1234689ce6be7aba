"""The rate estimator against a plain computation, and against the true rates."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eclectus.framework import Completion
from eclectus.maths.service_rates import SWEEPS, RatioMatrix, confidence, confidences, relative_error
from eclectus.policies.rosella import RosellaLearn


class PlainRates:
    """The same formulas, sample by sample, one cell at a time."""

    def __init__(self, k: float, workloads: int, rows: int) -> None:
        self.k, self.workloads, self.rows = k, range(workloads), range(rows)
        self.samples: dict[tuple[int, int], list[float]] = defaultdict(list)
        self.size = [1.0] * workloads
        self.factor = [1.0] * rows

    def add(self, c: int, i: int, seconds: float) -> None:
        first = not any(self.samples[c, row] for row in self.rows)
        self.samples[c, i].append(seconds)
        if first:
            self.size[c] = seconds * self.factor[i]
        self._fit_factor(i)

    def refresh(self) -> None:
        for _ in range(SWEEPS):
            known = [i for i in self.rows if any(self.samples[c, i] for c in self.workloads)]
            for i in known:
                self._fit_factor(i)
            mean = np.exp(np.mean([np.log(self.factor[i]) for i in known]))
            for i in self.rows:
                self.factor[i] = self.factor[i] / mean if i in known else 1.0
            for c in self.workloads:
                samples = [(s, i) for i in self.rows for s in self.samples[c, i]]
                if samples:
                    self.size[c] = sum(s * self.factor[i] for s, i in samples) / len(samples)

    def rate(self, c: int, i: int) -> float:
        samples = self.samples[c, i]
        return (self.k + len(samples)) / (self.k * self.size[c] / self.factor[i] + sum(samples))

    def _fit_factor(self, i: int) -> None:
        samples = [(s, c) for c in self.workloads for s in self.samples[c, i]]
        self.factor[i] = (self.k + len(samples)) / (self.k + sum(s / self.size[c] for s, c in samples))


SAMPLES = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 3), st.floats(0.01, 1000)), min_size=1, max_size=40
)


@given(SAMPLES)
@settings(deadline=None)
def test_the_matrix_equals_a_plain_computation(samples: list[tuple[int, int, float]]) -> None:
    matrix, plain = RatioMatrix(2.0, rows=4), PlainRates(2.0, 3, 4)
    for _ in range(3):
        matrix.open_workload()
    for at, (workload, row, seconds) in enumerate(samples):
        matrix.add(workload, row, 1, seconds)
        plain.add(workload, row, seconds)
        assert matrix.factor[row] == pytest.approx(plain.factor[row])
        if at % 7 == 6:
            matrix.refresh()
            plain.refresh()
    matrix.refresh()
    plain.refresh()
    expected = [[plain.rate(c, i) for i in range(4)] for c in range(3)]
    assert matrix.rate == pytest.approx(np.array(expected))


def taught(
    speeds: np.ndarray, sizes: np.ndarray, samples: int, *, seed: int = 1, special: np.ndarray | None = None
) -> RatioMatrix:
    """A matrix with `samples` exponential service times for each cell."""
    rng, matrix = np.random.default_rng(seed), RatioMatrix(2.0, rows=len(speeds))
    mean = sizes[:, None] / speeds * (1 if special is None else special)
    for workload in range(len(sizes)):
        matrix.open_workload()
        for row in range(len(speeds)):
            for seconds in rng.exponential(mean[workload, row], samples):
                matrix.add(workload, row, 1, float(seconds))
    matrix.refresh()
    return matrix


GROUPS = np.repeat([1.0, 2.0, 4.0, 8.0], [8, 8, 7, 7])
SIZES = np.array([0.5, 10.0, 300.0])


@pytest.mark.parametrize("seed", range(5))
def test_with_64_samples_nine_cells_in_ten_are_within_a_third(seed: int) -> None:
    learned = taught(GROUPS, SIZES, 64, seed=seed).rate
    truth = GROUPS / SIZES[:, None]
    off = np.abs(learned / truth - 1)
    assert np.mean(off <= 1 / 3) >= 0.9


@pytest.mark.parametrize("seed", range(5))
def test_the_same_holds_where_some_nodes_suit_some_workloads(seed: int) -> None:
    special = np.where(np.arange(30) % 5 == 0, 4.0, 1.0) ** np.array([[1], [0], [0]])
    learned = taught(GROUPS, SIZES, 64, seed=seed, special=special).rate
    truth = GROUPS / SIZES[:, None] / special
    assert np.mean(np.abs(learned / truth - 1) <= 1 / 3) >= 0.9


def test_a_cell_without_samples_is_node_factor_over_size() -> None:
    matrix = RatioMatrix(2.0, rows=3)
    for workload, row, seconds in [(0, 0, 10.0), (0, 1, 5.0), (1, 0, 40.0)] * 50:
        while len(matrix.size) <= workload:
            matrix.open_workload()
        matrix.add(workload, row, 1, seconds)
    matrix.refresh()
    assert matrix.rate[1, 1] == pytest.approx(matrix.factor[1] / matrix.size[1])
    assert matrix.rate[1, 1] == pytest.approx(1 / 20, rel=0.1)
    assert matrix.rate[0, 2] == pytest.approx(1.0 / matrix.size[0])


def test_only_ratios_matter_the_unit_of_time_does_not() -> None:
    samples = np.random.default_rng(3).exponential(1.0, 200)
    rates = []
    for unit in (1.0, 1000.0):
        matrix = RatioMatrix(2.0, rows=4)
        matrix.open_workload()
        for at, seconds in enumerate(samples):
            matrix.add(0, at % 4, 1, float(seconds) * unit)
        matrix.refresh()
        rates.append(matrix.rate * unit)
    assert rates[0] == pytest.approx(rates[1])


def test_factors_are_scaled_to_a_geometric_mean_of_one() -> None:
    matrix = taught(GROUPS, SIZES, 20)
    assert np.exp(np.log(matrix.factor).mean()) == pytest.approx(1.0)


def test_without_samples_all_nodes_have_the_same_rate() -> None:
    matrix = RatioMatrix(2.0, rows=5)
    matrix.open_workload()
    matrix.refresh()
    assert np.all(matrix.rate == 1.0)


def test_removed_samples_leave_no_trace() -> None:
    matrix, clean = RatioMatrix(2.0, rows=2), RatioMatrix(2.0, rows=2)
    for each in (matrix, clean):
        each.open_workload()
        each.add(0, 0, 1, 4.0)
        each.add(0, 1, 1, 2.0)
    matrix.add(0, 1, 1, 64.0)
    matrix.add(0, 1, -1, -64.0)
    for each in (matrix, clean):
        each.refresh()
    assert np.array_equal(matrix.rate, clean.rate)


# -- the learner around it -------------------------------------------------------------------------


def learner(rows: int = 4, **settings_: float) -> RosellaLearn:
    learn = RosellaLearn(**settings_)  # type: ignore[arg-type]
    for row in range(rows):
        learn.add_node(row, f"n{row}", rows)
    return learn


def teach(learn: RosellaLearn, row: int, seconds: float, at: float, workload: str = "w") -> None:
    learn.observe(Completion(row, workload, seconds, at))


def test_the_window_drops_exactly_the_older_samples() -> None:
    long, short = learner(window=8, shrink=False), learner(window=8, shrink=False)
    for at in range(100):
        teach(long, 0, 1000.0 if at < 92 else 2.0, at)
        teach(long, 1, 4.0, at)
    for at in range(92, 100):
        teach(short, 0, 2.0, at)
        teach(short, 1, 4.0, at)
    for each in (long, short):
        for at in range(100, 130):  # sizes and factors converge
            teach(each, 2, 4.0, at)
    assert long.speeds("w").rate == pytest.approx(short.speeds("w").rate, rel=1e-3)
    assert [cell.samples for cell in long.learned_cells()] == [8, 8, 8]


def test_a_node_that_becomes_slow_is_learned_within_one_window() -> None:
    learn = learner(window=16)
    for at in range(64):
        for row in range(4):
            teach(learn, row, 1.0, at)
    for at in range(64, 80):
        for row in range(4):
            teach(learn, row, 8.0 if row == 0 else 1.0, at)
    rate = learn.speeds("w").rate
    assert rate[0] / rate[1] == pytest.approx(1 / 8, rel=1 / 3)


def test_the_first_sample_of_a_workload_moves_all_nodes_together() -> None:
    learn = learner()
    for row in range(4):
        teach(learn, row, 1.0, 0.1 * row)
    teach(learn, 0, 300.0, 0.5, workload="long")
    rate = learn.speeds("long").rate
    assert rate[1:] == pytest.approx(rate[0] / 2)  # untried there


def test_no_rate_exceeds_the_bound_between_two_fits() -> None:
    learn = learner()
    for row in range(4):
        teach(learn, row, 100.0, 0.0)
    for at in range(50):
        teach(learn, 0, 5.0, 0.01 * at)
    for workload in ("w", "never seen"):
        speeds = learn.speeds(workload)
        assert speeds.rate.max() <= speeds.most


def test_a_node_that_returns_is_unknown() -> None:
    learn = learner()
    for at in range(50):
        for row in range(4):
            teach(learn, row, 100.0 if row == 0 else 1.0, at)
    learn.remove_node(0)
    learn.add_node(0, "again", 4)
    rate = learn.speeds("w").rate
    assert 0.3 < rate[0] / rate[1] < 3
    assert {cell.node for cell in learn.learned_cells()} == {"n1", "n2", "n3"}


def test_an_unknown_workload_uses_the_speeds_over_all_workloads() -> None:
    learn = learner()
    for at in range(50):
        for row in range(4):
            teach(learn, row, 8.0 / 2**row, at)
    rate = learn.speeds("never seen").rate
    assert rate[3] / rate[0] == pytest.approx(8, rel=0.2)


def test_confidences_of_an_array_equal_those_one_by_one() -> None:
    samples = np.array([1e-9, 0.5, 1.0, 8.0, 64.0, 4096.0])
    one_by_one = [confidence(relative_error(1.3, each)) for each in samples.tolist()]
    assert confidences(1.3, samples) == pytest.approx(one_by_one, abs=2e-5)
    assert confidences(0.0, samples).tolist() == [1.0] * len(samples)


def test_workloads_and_rows_that_come_in_turn_keep_what_is_known() -> None:
    matrix, known = RatioMatrix(prior_samples=1.0), {}
    for number in range(20):
        matrix.open_rows(2 * number + 1)
        workload = matrix.open_workload()
        matrix.add(workload, 2 * number, 3.0, 6.0 + number)
        known[workload, 2 * number] = matrix.rate.item(workload, 2 * number)
    for (workload, row), rate in known.items():
        assert matrix.rate.item(workload, row) == rate
        assert matrix.tried[workload].nonzero()[0].tolist() == [row]
        assert (matrix.count[workload].sum(), matrix.seconds[workload].sum()) == (3.0, 6.0 + row / 2)
