"""Priced images: a slow node that has them, a fast one that pulls them, or a wait, by the same arithmetic."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from builders import ExactSpeeds, make_engine, make_node, make_task
from eclectus.explain.pod import explain_pod
from eclectus.model.errors import SettingsError
from eclectus.model.events import NodeGone, NodeSeen
from eclectus.model.objects import Task
from eclectus.policies.rosella import Rosella
from worlds import World

MB = 10**6
RUN, TOOLS = ("reg/run:1", 1000 * MB), ("reg/tools:2", 500 * MB)


def world(bandwidth: float | None = 100.0, *, rates: dict[str, float], **images: Any) -> World:
    """Nodes of these rates, in tasks a second, with one slot each and these images."""
    engine = make_engine(Rosella(theta=1, image_bandwidth=bandwidth), ExactSpeeds(rates))
    nodes = [replace(make_node(name, cpu=1), images=images.get(name, ())) for name in rates]
    return World(engine, *nodes)


def runs(name: str, *images: str, **fields: Any) -> Task:
    task = make_task(name, **fields)
    return replace(task, spec=replace(task.spec, images=images or (RUN[0],)))


def pods_on(*nodes: str) -> list[Task]:
    return [make_task(f"on-{node}", node=node, cpu=1, phase="Running", profile="other") for node in nodes]


@pytest.mark.parametrize(("bandwidth", "node"), [(None, "fast"), (1000.0, "fast"), (100.0, "slow")])
def test_a_slow_node_with_the_image_or_a_fast_one_that_pulls_it(bandwidth: float | None, node: str) -> None:
    """4 s there and 1 s here: pulled in 1 s or in 10."""
    made = world(bandwidth, rates={"slow": 0.25, "fast": 1.0}, slow=(RUN,))
    made.add(runs("a"))
    assert made.node_of("a") == node


def test_what_a_node_lacks_of_several_images_counts() -> None:
    """To wait for a slot takes 100 s here."""
    made = world(rates=dict.fromkeys(("n0", "n1", "n2"), 0.01), n0=(TOOLS,), n1=(RUN,))
    made.add(runs("a", RUN[0], TOOLS[0], RUN[0]), runs("b", RUN[0], TOOLS[0]), runs("c", RUN[0], TOOLS[0]))
    assert [made.node_of(name) for name in "abc"] == ["n1", "n0", "n2"]


def test_an_image_that_no_node_has_counts_nowhere() -> None:
    made = world(rates={"n0": 1.0, "n1": 2.0}, n0=(TOOLS,))
    made.add(runs("a"))
    assert made.node_of("a") == "n1"


def test_a_pod_waits_for_a_node_with_its_image_where_that_is_sooner_and_says_so() -> None:
    made = world(rates={"busy": 1.0, "free": 1.0}, busy=(RUN,))
    made.add(*pods_on("busy"))
    made.add(runs("a"))
    assert made.node_of("a") == ""
    said = explain_pod(made.engine, "default", "a", made.now)
    assert "1 of 2 nodes have its images, others pull them for up to 10 s" in str(said)


def test_a_node_that_has_pulled_it_meanwhile_is_as_good() -> None:
    made = world(rates={"n0": 1.0, "n1": 2.0}, n0=(RUN,))
    made.add(runs("a"))
    assert made.node_of("a") == "n0"
    made.step(NodeSeen(replace(make_node("n1", cpu=1), images=(RUN,))))
    made.add(runs("b"))
    assert made.node_of("b") == "n1"


def test_nodes_that_come_later_count_as_those_that_were_there() -> None:
    names = [f"late{at}" for at in range(40)]
    made = world(rates=dict.fromkeys(("n0", *names), 0.01), n0=(RUN,))
    made.step(*(NodeGone(name) for name in names))
    made.add(runs("a"))
    assert made.node_of("a") == "n0"
    made.step(*(NodeSeen(make_node(name, cpu=1)) for name in names))
    made.add(runs("b"))
    assert made.node_of("b") in names


def test_services_pull_for_nothing() -> None:
    made = world(rates={"slow": 0.25, "fast": 1.0}, slow=(RUN,))
    made.add(runs("a", long_running=True))
    assert made.node_of("a") == "fast"


def test_sampling_knows_nothing_of_images_and_says_so() -> None:
    with pytest.raises(SettingsError, match="imageBandwidth: needs re-planning"):
        Rosella(view="sample", image_bandwidth=100.0)


def test_images_are_kept_only_where_they_count() -> None:
    assert "images" in Rosella(image_bandwidth=1.0).traits.needs
    assert "images" not in Rosella().traits.needs
