"""Learned speeds against true ones: only ratios count, and rates are weighted by their samples."""

import msgspec
import pytest

from eclectus_e2e.demo import schedulers
from eclectus_e2e.demo.speeds import LearnedRate, compare_speeds, errors_by_speed, learned_share

TRUE = {"a": 1.0, "b": 2.0, "c": 8.0}
SIZES = {"small": 0.5, "large": 20.0}


def rates(speeds=TRUE, scale=1.0, samples=10):
    return [
        LearnedRate(node, work, scale * speed / size, samples)
        for node, speed in speeds.items()
        for work, size in SIZES.items()
    ]


@pytest.mark.parametrize("scale", [1e-3, 1.0, 40.0])
def test_exact_rates_are_exact_on_any_scale(scale):
    found = compare_speeds(rates(scale=scale), TRUE)
    assert [node.learned for node in found] == pytest.approx(list(TRUE.values()))
    assert learned_share(found) == 1.0
    assert errors_by_speed(found) == pytest.approx({"1": 0.0, "2": 0.0, "8": 0.0}, abs=1e-9)


def test_nodes_may_have_seen_different_work():
    """The size of a workload comes from the nodes that have seen it beside another."""
    some = [one for one in rates() if (one.node, one.workload) not in {("a", "large"), ("c", "small")}]
    assert [node.learned for node in compare_speeds(some, TRUE)] == pytest.approx(list(TRUE.values()))


def test_one_wrong_node_does_not_move_the_others():
    found = compare_speeds(rates({**TRUE, "a": 3.0}), TRUE)
    assert [node.within_third for node in found] == [False, True, True]
    assert found[0].error == pytest.approx(2.0)
    assert learned_share(found) == pytest.approx(2 / 3)


@pytest.mark.parametrize(("factor", "within"), [(1.32, True), (1.35, False), (0.68, True), (0.65, False)])
def test_a_third_is_the_bound(factor, within):
    assert compare_speeds(rates({**TRUE, "a": factor}), TRUE)[0].within_third is within


def test_rates_are_weighted_by_their_samples():
    mostly_right = [
        *rates(samples=50),
        LearnedRate("a", "other", 1.0, 50),
        LearnedRate("b", "other", 20.0, 1),
    ]
    assert compare_speeds(mostly_right, TRUE)[1].learned == pytest.approx(2.0, rel=0.1)


def test_an_unknown_node_is_not_learned():
    found = compare_speeds([one for one in rates() if one.node != "c"], TRUE)
    assert found[2].learned is None
    assert found[2].error is None
    assert learned_share(found) == pytest.approx(2 / 3)
    assert errors_by_speed(found)["8"] is None


def test_no_rate_is_no_learned_speed():
    assert learned_share(compare_speeds([], TRUE)) == 0.0


def test_a_node_without_a_true_speed_is_left_out():
    assert [node.node for node in compare_speeds(rates({**TRUE, "stranger": 99.0}), TRUE)] == list(TRUE)


def test_learned_rates_are_read_page_by_page(monkeypatch):
    one = {"node": "n1", "workload": "a", "rate": 1.0, "samples": 2}
    two = one | {"node": "n2"}
    pages = {
        "a/speeds?continue=": {"items": [one], "metadata": {"continue": "n1"}},
        "a/speeds?continue=n1": {"items": [two], "metadata": {}},
    }
    monkeypatch.setattr(schedulers.product, "body", lambda url: msgspec.json.encode(pages[url]))
    assert [rate.node for rate in schedulers.learned_rates("a")] == ["n1", "n2"]


def test_without_an_answer_nothing_is_learned(monkeypatch):
    monkeypatch.setattr(schedulers.product, "body", lambda url: b"")
    assert schedulers.learned_rates("a") == []
