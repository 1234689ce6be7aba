"""Equal nodes are believed to be equal, and different ones to differ."""

from functools import partial
from math import inf, log

import numpy as np
import pytest

from eclectus.maths.shrinkage import (
    MOST_PRIOR,
    Unfinished,
    between_variance,
    estimates,
    node_weights,
    prior_weight,
    untried_share,
)
from eclectus.policies.rosella.rates import MOST_SIZES

SEEDS = range(20)


def times(speeds, samples, seed, variation=1.0):
    """The total of so many gamma times on each node, expected 1 at speed 1."""
    shape = samples / variation
    return np.random.default_rng(seed).gamma(shape, variation, len(speeds)) / np.asarray(speeds)


def believed(speeds, samples, seed, variation=1.0, least=1.0):
    """The speeds after shrinkage."""
    seconds, counts = times(speeds, samples, seed, variation), np.full(len(speeds), float(samples))
    weight, _ = node_weights(counts, seconds, variation, least)
    return (weight + counts) / (weight + seconds)


def spread(speeds):
    return float(np.log(speeds).std())


def test_of_estimates_that_differ_as_their_samples_explain_nothing_is_left():
    found = estimates(np.full(1000, 16.0), times(np.ones(1000), 16, seed=1), 1.0)
    assert between_variance(found, 0.0) == pytest.approx(0.0, abs=0.005)
    assert 0.0 < between_variance(found) < 0.01


def test_the_variance_between_nodes_is_found():
    rng = np.random.default_rng(2)
    speeds = np.exp(rng.normal(0.0, 0.5, 2000))
    found = estimates(np.full(2000, 16.0), times(speeds, 16, seed=3), 1.0)
    assert between_variance(found, 0.0) == pytest.approx(0.25, rel=0.15)


@pytest.mark.parametrize(
    ("nodes", "samples", "share"), [(12, 16, 0.6), (300, 2, 0.4), (300, 16, 0.25), (3000, 16, 0.15)]
)
def test_equal_nodes_come_together(nodes, samples, share):
    """The more of them there are, the closer."""
    raw = [spread(samples / times(np.ones(nodes), samples, seed)) for seed in SEEDS]
    shrunk = [spread(believed(np.ones(nodes), samples, seed)) for seed in SEEDS]
    assert np.mean(shrunk) < share * np.mean(raw)


@pytest.mark.parametrize("samples", [8, 16, 64])
def test_speeds_of_one_to_eight_stay_what_they_are(samples):
    speeds = np.array([1.0, 2.0, 4.0, 8.0] * 3)
    own = [np.log(samples / times(speeds, samples, seed) / speeds).std() for seed in SEEDS]
    shrunk = [np.log(believed(speeds, samples, seed) / speeds).std() for seed in SEEDS]
    assert np.mean(shrunk) < 1.15 * np.mean(own)


@pytest.mark.parametrize("factor", [1 / 8, 8.0])
def test_one_node_that_differs_from_all_others_is_believed(factor):
    speeds = np.ones(300)
    speeds[7] = factor
    for seed in SEEDS:
        found = believed(speeds, 16, seed)
        assert abs(log(found[7] / factor)) < 0.8
        assert spread(np.delete(found, 7)) < 0.12


@pytest.mark.parametrize(("speeds", "samples"), [([1.0] * 300, 10), ([1.0, 2.0, 4.0, 8.0] * 3, 6)])
def test_whether_nodes_differ_is_seen(speeds, samples):
    counts = np.full(len(speeds), float(samples))
    found = [node_weights(counts, times(speeds, samples, seed), 1.0, 1.0)[1] for seed in SEEDS]
    assert sum(found) >= 19 if max(speeds) > 1.0 else sum(found) <= 2


def test_too_few_nodes_say_nothing():
    counts, seconds = np.array([50.0, 50.0, 0.0]), np.array([50.0, 5.0, 0.0])
    weights, is_sure = node_weights(counts, seconds, 1.0, 1.0)
    assert (weights.tolist(), is_sure) == ([1.0, 1.0, 1.0], True)


def test_the_weight_is_between_the_least_and_the_most():
    assert prior_weight(1.0, 0.0, 1.0) == MOST_PRIOR
    assert prior_weight(1.0, 0.25, 1.0) == 4.0
    assert prior_weight(1.0, 100.0, 1.0) == 1.0
    assert prior_weight(0.0, inf, 0.1) == 0.1


def test_untried_nodes_count_less_only_as_far_as_workloads_rank_nodes_differently():
    assert untried_share(0.0, 0.5) == 1.0
    assert 0.8 < untried_share(0.01, 0.5) < 1.0
    assert untried_share(1.0, 0.5) == 0.5


# -- with tasks that still run ---------------------------------------------------------------------------


def renewals(began, draw, until, slots=15):
    """Samples, seconds and what runs at a time, of nodes whose slots have been busy since they began."""
    samples, seconds, rows, ages = np.zeros(len(began)), np.zeros(len(began)), [], []
    for row, since in enumerate(began):
        for _ in range(slots):
            at = since
            while (ends := at + draw(row)) <= until:
                samples[row] += 1
                seconds[row] += ends - at
                at = ends
            rows.append(row)
            ages.append(until - at)
    known = np.array(ages) <= MOST_SIZES
    return (
        samples,
        seconds,
        Unfinished(np.array(rows)[known], np.zeros(known.sum(), int), np.array(ages)[known]),
    )


def are_seen_to_differ(began, draw, variation, until, running=True):
    samples, seconds, unfinished = renewals(began, draw, until)
    if running:
        samples, seconds = unfinished.added_to(samples, seconds, np.array([variation]))
    return node_weights(samples, seconds, variation, 1.0)[1]


SIZES = {
    "exponential": (1.0, lambda rng: rng.exponential()),
    "nearly equal": (0.05, lambda rng: rng.gamma(20.0) / 20.0),
    "gamma": (0.25, lambda rng: rng.gamma(4.0) / 4.0),
}


@pytest.mark.parametrize("law", SIZES)
def test_equal_nodes_that_came_into_use_one_after_the_other_are_not_seen_to_differ(law):
    """The shortest tasks of the newest nodes have ended, and no others."""
    variation, draw = SIZES[law]
    began = np.linspace(0.0, 9.0, 80)
    seen = dict.fromkeys((True, False), 0)
    for with_running in seen:
        for seed in SEEDS:
            sizes = partial(draw, np.random.default_rng(seed))
            seen[with_running] += are_seen_to_differ(
                began, lambda _, next_size=sizes: next_size(), variation, 10.0, with_running
            )
    assert seen[True] <= 2
    assert law != "exponential" or seen[False] == len(SEEDS)


def test_nodes_that_differ_are_seen_to_while_tasks_run():
    speeds = np.array([1.0, 2.0, 4.0, 8.0] * 5)
    for seed in SEEDS:
        sizes = np.random.default_rng(seed)
        assert are_seen_to_differ(
            np.zeros(20), lambda row, of=sizes: of.exponential() / speeds[row], 1.0, 2.0
        )


def test_a_variation_that_seems_small_says_nothing_for_sure():
    """Until several times as long as a task takes has passed, only the shorter ones have ended."""
    counts = np.full(300, 10.0)
    seen = [node_weights(counts, times(np.ones(300), 10, seed), 0.4, 1.0)[1] for seed in SEEDS]
    assert sum(seen) <= 2
