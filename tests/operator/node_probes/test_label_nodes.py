"""The operator labels nodes by the mapping of its settings."""

from dataclasses import replace

import pytest

from eclectus_operator import cluster_nodes
from eclectus_operator.cluster_nodes import FRESH_SECONDS
from fake_api import NODES
from probe_world import SETTINGS, ProbeWorld, node

MAPPED = replace(SETTINGS, node_labels="eclectus.dev/gpu-model=nvidia.com/gpu.product")


def world_of(count, settings=MAPPED):
    world = ProbeWorld(nodes=0, settings=settings)
    for at in range(count):
        world.api.put(NODES, node(f"n{at}", labels={"nvidia.com/gpu.product": "A10", "zone": "a"}))
    return world


def labels(world, name="n0"):
    return world.api.objects[f"{NODES}/{name}"]["metadata"]["labels"]


def patches(world):
    return [path for method, path in world.api.calls if method == "PATCH" and path.startswith(NODES)]


def test_a_node_gets_the_labels_of_the_mapping_once_and_keeps_its_own():
    world = world_of(1)
    world.play(600)
    assert labels(world) == {
        "nvidia.com/gpu.product": "A10",
        "zone": "a",
        "eclectus.dev/gpu-model": "A10",
    }
    assert patches(world) == [f"{NODES}/n0"]


def test_a_changed_source_is_followed_within_the_time_between_two_comparisons():
    world = world_of(1)
    world.sync()
    labels(world)["nvidia.com/gpu.product"] = "H100"
    world.play(FRESH_SECONDS + 10)
    assert labels(world)["eclectus.dev/gpu-model"] == "H100"


def test_without_a_mapping_no_node_is_listed_or_written():
    world = world_of(2, SETTINGS)
    world.play(600)
    assert not [path for _, path in world.api.calls if path.startswith(NODES)]


def test_many_nodes_are_labelled_in_several_syncs_that_follow_at_once(monkeypatch):
    monkeypatch.setattr(cluster_nodes, "MAX_WRITES", 2)
    world = world_of(5)
    assert world.sync() < 1.0
    assert len(patches(world)) == 2
    world.sync()
    world.sync()
    assert sorted(patches(world)) == [f"{NODES}/n{at}" for at in range(5)]
    assert world.sync() > 1.0


def test_a_node_that_has_gone_meanwhile_does_not_stop_the_others():
    world = world_of(2)

    def remove(method, path):
        if (method, path) == ("PATCH", f"{NODES}/n0"):
            world.api.remove(path)

    world.api.before = remove
    world.sync()
    assert labels(world, "n1")["eclectus.dev/gpu-model"] == "A10"


@pytest.mark.parametrize("text", ["a=b", "eclectus.dev/kernel={"])
def test_a_wrong_mapping_is_refused_when_the_operator_starts(text):
    with pytest.raises(Exception, match="node-labels"):
        replace(SETTINGS, node_labels=text)
