"""When a run is due, and on which node."""

from collections import Counter
from random import Random

import pytest

from eclectus.api.common import time_text
from eclectus.api.node_probe import NodeProbe
from eclectus.api.node_profile import NodeProfile
from eclectus_operator.convert import read
from eclectus_operator.node_probes.dispatch import Due, draw, due, is_resting, rate
from probe_world import node_probe

NOW = 1_000_000.0
CLASSES = [{"name": name, "unit": {"kind": "cpu"}} for name in ("a", "b")]


def probe(load=None, **spec):
    body = node_probe(classes=CLASSES, **{"limits": {"perHour": 360, "leastPerHour": 36}, **spec})
    return read({**body, "status": {"load": load} if load else {}}, NodeProbe)


def load(arrivals, service, age=0.0, **shares):
    classes = [{"name": name, "share": share} for name, share in shares.items()]
    rates = {"arrivalRate": arrivals, "serviceRate": service, "observedTime": time_text(NOW - age)}
    return {**rates, "classes": classes}


@pytest.mark.parametrize(
    ("written", "per_hour"),
    [
        (None, 36),
        (load(0.0, 0.5), 180),
        (load(0.25, 0.5), 90),
        (load(0.5, 0.5), 36),
        (load(0.9, 0.5), 36),
        (load(0.0, 50.0), 360),
        (load(0.0, 0.5, age=600), 180),
        (load(0.0, 0.5, age=601), 36),
        (load(0.0, 0.0), 36),
    ],
    ids=["silent", "idle", "half", "full", "over", "cap", "old", "too old", "no capacity"],
)
def test_the_rate_is_a_share_of_the_spare_capacity_between_floor_and_cap(written, per_hour):
    assert rate(probe(written), NOW) * 3600 == pytest.approx(per_hour)


def test_the_gaps_are_exponential_with_that_rate():
    rng = Random(1)
    gaps = [due(None, 0.1, NOW, rng).at - NOW for _ in range(4000)]
    assert sum(gaps) / len(gaps) == pytest.approx(10.0, rel=0.05)
    assert sum(gap > 10 for gap in gaps) / len(gaps) == pytest.approx(0.368, abs=0.03)


def test_another_rate_rescales_the_remaining_time_and_rate_zero_removes_it():
    old = Due(NOW + 100, 0.1)
    assert due(old, 0.2, NOW, Random(1)) == Due(NOW + 50, 0.2)
    assert due(old, 0.1, NOW, Random(1)) == old
    assert due(Due(NOW - 1, 0.1), 0.2, NOW, Random(1)) == Due(NOW - 1, 0.1), "what is due stays due"
    assert due(old, 0.0, NOW, Random(1)) is None


def drawn(count, of=None):
    rng, names = Random(3), ["x", "y", "z"]
    found = [draw(of or probe(), names, NOW, rng) for _ in range(count)]
    return Counter((each.node, each.work.name) for each in found)


def test_nodes_and_classes_are_drawn_uniformly_when_the_load_is_unknown():
    counts = drawn(6000)
    assert len(counts) == 6
    assert all(count == pytest.approx(1000, rel=0.15) for count in counts.values())


def test_a_class_counts_with_its_shares_of_all_namespaces():
    shares = {"shop/a": 0.25, "b": 0.25, "farm/a": 0.5, "farm/a-b": 0.5, "farm/c": 0.1}
    drawn = Counter(
        draw(probe(load(0.1, 0.5, **shares)), ["x"], NOW, Random(n)).work.name for n in range(400)
    )
    assert drawn["a"] / 400 == pytest.approx(0.75, abs=0.07)


def test_classes_are_drawn_by_their_share_of_the_arriving_work():
    counts = drawn(4000, probe(load(4.0, 100.0, a=0.6, b=0.2, other=0.2)))
    share = sum(count for (_, work), count in counts.items() if work == "a") / 4000
    assert share == pytest.approx(0.75, abs=0.03)


def test_a_class_without_a_reported_share_is_drawn_too():
    counts = drawn(1000, probe(load(4.0, 100.0, a=0.6)))
    assert {work for _, work in counts} == {"a", "b"}
    none = drawn(1000, probe(load(4.0, 100.0, a=0.6, b=0.0)))
    assert {work for _, work in none} == {"a"}, "a class whose share is 0 is not measured"


def test_a_node_rests_for_its_interval_after_the_last_run_began():
    last = {"probe": "p", "number": 1, "begunTime": time_text(NOW - 30)}
    profile = read({"status": {"lastProbe": last}}, NodeProfile)
    assert [is_resting(profile, seconds, NOW) for seconds in (0, 30, 31)] == [False, False, True]
    assert not is_resting(read({}, NodeProfile), 600, NOW)


def test_without_nodes_nothing_is_drawn():
    assert draw(probe(), [], NOW, Random(1)) is None
