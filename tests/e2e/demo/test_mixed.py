"""The cluster in which one class ranks the nodes differently."""

from collections import Counter

import pytest
import yaml

from eclectus.sim.scenario import shipped_scenarios
from eclectus_bench.experiments.comparison import NODES_PER_GROUP, TARGETS, WORK_SCALE
from eclectus_e2e.demo.workload.arrivals import capacity, poisson_arrivals
from eclectus_e2e.demo.workload.mixed import (
    CLASSES,
    SCAN,
    SPEEDS,
    best_capacity,
    mix,
    mixed_nodes,
    swapped_speeds,
)
from eclectus_e2e.testbed.kubelet.quantities import amount

NODES = mixed_nodes(3, seed=1)


def test_each_group_is_as_good_at_scanning_as_its_opposite_is_at_computing():
    scans = {node.speed: node.speed * node.class_factors[SCAN] for node in NODES}
    assert scans == dict(zip(SPEEDS, reversed(SPEEDS), strict=True))


def test_neither_name_nor_label_tells_the_speed():
    assert len({tuple(sorted(node.labels)) for node in NODES}) == 1
    assert [node.speed for node in NODES] != sorted(node.speed for node in NODES)


def test_the_scenario_of_that_name_is_the_comparison_at_its_lowest_load():
    asked = yaml.safe_load(shipped_scenarios()["mixed"].read_text())
    nodes, work = mixed_nodes(NODES_PER_GROUP, seed=1), mix(WORK_SCALE)
    groups = {}
    for one in asked["cluster"]["groups"]:
        groups[one["speed"], one["speeds"][SCAN], *map(str, one["resources"].values())] = one["count"]
    there = [node.allocatable[name] for node in nodes[:1] for name in ("cpu", "memory", "pods")]
    assert groups == Counter((node.speed, node.speed * node.class_factors[SCAN], *there) for node in nodes)
    stream_of = asked["workload"]["poisson"]
    assert stream_of["rate"] == pytest.approx(min(TARGETS) * capacity(nodes, work), rel=0.01)
    for one, kind in zip(stream_of["classes"], work.classes, strict=True):
        assert (one["name"], one["share"] / 100, one["size"]["shape"]) == (kind.name, kind.share, kind.shape)
        assert one["size"]["mean"] == f"{kind.work_seconds:g}s"
        assert amount("cpu", str(one["requests"]["cpu"])) == kind.cpu_millicores


def test_after_the_swap_the_fast_half_is_the_slow_one():
    after = swapped_speeds(NODES)
    assert {(node.speed, after[node.name]) for node in NODES} == {(1, 4), (2, 8), (4, 1), (8, 2)}


def test_capacity_is_higher_when_each_class_runs_where_it_is_fastest():
    one = mixed_nodes(1, seed=1)
    # Per pod: serve 1.6, build 5.6, scan 3 core-seconds. The slowest scans at 32 and needs 3 t of it; the
    # others compute at 56, the slowest with what scanning leaves it: 7.2 t = 56 + 4 (1 - 3 t / 32).
    assert best_capacity(one, mix()) == pytest.approx(60 / (7.2 + 3 * 4 / 32))
    assert best_capacity(one, mix()) > 2 * capacity(one, mix())


def test_smaller_work_is_more_pods_of_it():
    assert best_capacity(NODES, mix(0.5)) == pytest.approx(2 * best_capacity(NODES, mix()), rel=1e-6)
    assert capacity(NODES, mix(0.5)) == pytest.approx(2 * capacity(NODES, mix()))


def test_its_stream_has_its_classes_and_no_constraints():
    arrivals = poisson_arrivals(1, 20.0, 100.0, mix())
    assert {one.kind.name for one in arrivals} == {kind.name for kind in CLASSES}
    assert {one.constraint for one in arrivals} == {None}
