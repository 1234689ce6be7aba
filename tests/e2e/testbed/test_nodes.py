"""The default nodes: thirty, with four speeds, which nothing in the API server reveals."""

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from eclectus_e2e.errors import UsageError
from eclectus_e2e.testbed.kubelet.nodes import GROUP_SIZES, default_nodes, nodes_text, read_nodes
from eclectus_e2e.testbed.kubelet.objects import node_object


@pytest.mark.parametrize("seed", range(5))
def test_the_groups_have_their_sizes_and_the_seed_decides_all(seed: int) -> None:
    nodes = default_nodes(seed)
    assert Counter(node.speed for node in nodes) == GROUP_SIZES
    assert nodes == default_nodes(seed)
    assert nodes != default_nodes(seed + 1)


@pytest.mark.parametrize("seed", range(5))
def test_every_label_value_is_spread_evenly_over_the_groups(seed: int) -> None:
    nodes = default_nodes(seed)
    for label in nodes[0].labels.keys() - {"kubernetes.io/hostname", "kubernetes.io/os"}:
        for value in {node.labels.get(label) for node in nodes}:
            held = [
                sum(node.labels.get(label) == value for node in nodes if node.speed == speed)
                for speed in GROUP_SIZES
            ]
            share = sum(held) / len(nodes)
            for count, size in zip(held, GROUP_SIZES.values(), strict=True):
                assert abs(count - size * share) < 1.5, (label, value, held)


@pytest.mark.parametrize("seed", range(5))
def test_names_do_not_follow_speeds(seed: int) -> None:
    speeds = [node.speed for node in sorted(default_nodes(seed), key=lambda node: node.name)]
    runs = sum(one != other for one, other in pairwise(speeds))
    assert runs > 12  # thirty nodes in order of speed would change three times


def test_the_node_object_contains_neither_speed_nor_group() -> None:
    for node in default_nodes(1):
        text = json.dumps(node_object(node, "10.0.0.1", 0.0))
        assert "speed" not in text
        assert node.group not in text


def test_a_written_file_is_read_back_unchanged(tmp_path: Path) -> None:
    file = tmp_path / "nodes.json"
    file.write_text(nodes_text(default_nodes(3)))
    assert read_nodes(file) == default_nodes(3)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"nodes": [{"name": "a", "group": "g"}]}', "speed"),
        ('{"nodes": [{"name": "a", "group": "g", "speed": 0}]}', "node a: a speed must be above 0"),
        ('{"nodes": [{"name": "a", "group": "g", "speed": 1, "sped": 2}]}', "sped"),
        ('{"nodes": [{"name":"a","group":"g","speed":1},{"name":"a","group":"g","speed":1}]}', "two nodes"),
        ("nonsense", "malformed"),
    ],
)
def test_a_wrong_file_is_an_error_that_names_the_place(tmp_path: Path, content: str, message: str) -> None:
    file = tmp_path / "nodes.json"
    file.write_text(content)
    with pytest.raises(UsageError, match=message) as error:
        read_nodes(file)
    assert str(file) in str(error.value)
