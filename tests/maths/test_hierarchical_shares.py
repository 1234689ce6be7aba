"""C4, shares in a tree of pools: the two examples of the paper, weights, bounds, and flat trees."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from eclectus.maths.fair_shares import Path, dominant_shares, hierarchical_shares, pool_tree

Floats = NDArray[np.float64]
CPU, GPU = (1.0, 0.0), (0.0, 1.0)
ONE_EACH = np.ones(2)
ROOT: Path = ()


def floats(*rows: object) -> Floats:
    return np.array(rows, dtype=float)


def shares(
    jobs: list[tuple[Path, tuple[float, ...]]],
    capacity: Floats = ONE_EACH,
    weights: dict[Path, float] | None = None,
    most: Floats | None = None,
) -> list[list[float]]:
    tree = pool_tree([path for path, _ in jobs], weights or {})
    demands = floats(*(demand for _, demand in jobs))
    return hierarchical_shares(demands, np.ones(len(jobs)), capacity, tree, most).tolist()


def test_a_pool_of_complementary_jobs_counts_once() -> None:
    """The job beside it gets half of the GPUs, although the pool uses all CPUs and half of the GPUs."""
    found = shares([(ROOT, GPU), (("n2",), CPU), (("n2",), GPU)])
    assert found == [[0, 0.5], [1, 0], [0, 0.5]]


def test_what_is_used_up_counts_no_more_in_a_pool() -> None:
    """CPUs in thirds; of the GPUs n3's job and n4 get a half each, not two thirds and one."""
    found = shares([(("n1",), CPU), (("n2",), CPU), (("n3",), CPU), (("n3",), GPU), (("n4",), GPU)])
    assert np.array(found) == pytest.approx(floats((1 / 3, 0), (1 / 3, 0), (1 / 3, 0), (0, 0.5), (0, 0.5)))


def test_many_jobs_get_no_more_than_one_in_the_pool_beside() -> None:
    found = shares([(("a",), CPU)] * 3 + [(("b",), CPU)])
    assert np.array(found)[:, 0] == pytest.approx([1 / 6, 1 / 6, 1 / 6, 1 / 2])


def test_weights_count_among_siblings() -> None:
    jobs = [(("a", "x"), CPU), (("a", "y"), CPU), (("b",), CPU)]
    found = shares(jobs, weights={("a",): 3.0, ("a", "x"): 2.0})
    assert np.array(found)[:, 0] == pytest.approx([1 / 2, 1 / 4, 1 / 4])


def test_what_a_job_leaves_goes_to_its_own_pool() -> None:
    most = floats((0.1, 1), (1, 1), (1, 1))
    found = shares([(("a",), CPU), (("a",), CPU), (("b",), CPU)], most=most)
    assert np.array(found)[:, 0] == pytest.approx([0.1, 0.4, 0.5])


def test_what_jobs_leave_in_the_last_step_is_shared_too() -> None:
    """Both bounds are met within the step that would use up the CPUs; the third job gets what they leave."""
    most = floats((0.325, 1), (0.33, 1), (1, 1))
    found = shares([(("a",), CPU), (("b",), CPU), (("c",), CPU)], most=most)
    assert np.array(found)[:, 0] == pytest.approx([0.325, 0.33, 0.345])


def test_what_a_pool_leaves_goes_to_the_others() -> None:
    found = shares([(("a",), CPU), (("b",), CPU)], most=floats((0.1, 1), (1, 1)))
    assert np.array(found)[:, 0] == pytest.approx([0.1, 0.9])


def test_a_pool_without_demands_takes_nothing() -> None:
    assert shares([(("a",), (0.0, 0.0)), (("b",), CPU)]) == [[0, 0], [1, 0]]
    empty = hierarchical_shares(np.zeros((0, 2)), np.zeros(0), ONE_EACH, pool_tree([], {}))
    assert empty.shape == (0, 2)


def test_a_weight_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="pool a/b"):
        pool_tree([("a", "b")], {("a", "b"): 0.0})


@st.composite
def cases(draw: st.DrawFn) -> tuple[Floats, Floats, list[Path]]:
    jobs, resources = draw(st.integers(1, 8)), draw(st.integers(1, 3))
    amounts = st.one_of(st.just(0.0), st.floats(0.01, 10.0))
    demands = floats(*(draw(st.lists(amounts, min_size=resources, max_size=resources)) for _ in range(jobs)))
    assume((demands.max(axis=1) > 0.0).all())
    names = st.lists(st.sampled_from("ab"), max_size=3).map(tuple)
    capacity = floats(*draw(st.lists(st.floats(0.5, 50.0), min_size=resources, max_size=resources)))
    return demands, capacity, [draw(names) for _ in range(jobs)]


@settings(deadline=None, max_examples=50)
@given(cases())
def test_jobs_of_one_pool_share_as_without_a_tree(
    case: tuple[Floats, Floats, list[Path]],
) -> None:
    demands, capacity, paths = case
    weights, tree = np.ones(len(demands)), pool_tree([()] * len(paths), {})
    found = hierarchical_shares(demands, weights, capacity, tree)
    assert found == pytest.approx(dominant_shares(demands, weights, capacity))
    together = pool_tree([("a",)] * len(paths), {})
    assert hierarchical_shares(demands, weights, capacity, together) == pytest.approx(found)


@settings(deadline=None, max_examples=50)
@given(cases())
def test_nobody_can_get_more_without_taking_it(case: tuple[Floats, Floats, list[Path]]) -> None:
    demands, capacity, paths = case
    found = hierarchical_shares(demands, np.ones(len(demands)), capacity, pool_tree(paths, {}))
    used_up = found.sum(axis=0) >= capacity * (1 - 1e-9)
    assert (found.sum(axis=0) <= capacity * (1 + 1e-9)).all()
    assert ((demands > 0.0) & used_up).any(axis=1).all()


@settings(deadline=None, max_examples=50)
@given(cases())
def test_each_pool_below_the_root_gets_its_part_of_some_resource(
    case: tuple[Floats, Floats, list[Path]],
) -> None:
    """Sharing incentive of pools: what splitting every resource would give it, of one resource at least."""
    demands, capacity, paths = case
    found = hierarchical_shares(demands, np.ones(len(demands)), capacity, pool_tree(paths, {}))
    siblings = {path[:1] or at for at, path in enumerate(paths)}
    for pool in {path[:1] for path in paths if path}:
        members = [at for at, path in enumerate(paths) if path[:1] == pool]
        assert (found[members].sum(axis=0) / capacity).max() >= 1 / len(siblings) - 1e-9


@settings(deadline=None, max_examples=50)
@given(cases(), st.integers(0, 2**32 - 1))
def test_bounds_are_kept_and_what_is_left_is_useful_to_nobody(
    case: tuple[Floats, Floats, list[Path]], seed: int
) -> None:
    demands, capacity, paths = case
    most = np.random.default_rng(seed).uniform(0.0, 20.0, demands.shape)
    found = hierarchical_shares(demands, np.ones(len(demands)), capacity, pool_tree(paths, {}), most)
    assert (found <= most).all()
    assert (found.sum(axis=0) <= capacity * (1 + 1e-9)).all()
    full = found >= np.where(demands > 0.0, most, 0.0) * (1 - 1e-9)
    used_up = found.sum(axis=0) >= capacity * (1 - 1e-9)
    assert (full.all(axis=1) | ((demands > 0.0) & used_up & ~full).any(axis=1)).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    "holds",
    [
        test_jobs_of_one_pool_share_as_without_a_tree,
        test_nobody_can_get_more_without_taking_it,
        test_each_pool_below_the_root_gets_its_part_of_some_resource,
    ],
)
def test_it_holds_in_more_cases(holds: Any) -> None:
    settings(max_examples=200)(given(cases())(holds.hypothesis.inner_test))()
