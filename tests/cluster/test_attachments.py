"""Attachments count while both their node and their volume are there, in whatever order these come and go."""

from __future__ import annotations

from random import Random

import pytest

from builders import make_node
from eclectus.cluster.nodes import Cluster
from eclectus.model.volumes import AttachLimits, Attachment
from storage_objects import make_volume

LIMIT = 10


def counted(cluster: Cluster, driver: str) -> dict[str, int]:
    """Volumes attached to each node, from what is free of its limit."""
    free = cluster.volumes.attached.free(driver)
    assert free is not None
    return {node: LIMIT - int(free[row]) for node, row in cluster.rows.items()}


def by_a_loop(
    attachments: dict[str, Attachment], volumes: dict[str, str], nodes: set[str], driver: str
) -> dict[str, int]:
    """`volumes`: name -> handle, empty: not one of CSI."""
    there = [each for each in attachments.values() if each.driver == driver and volumes.get(each.volume)]
    return {node: len({volumes[each.volume] for each in there if each.node == node}) for node in nodes}


@pytest.mark.parametrize("seed", range(20))
def test_attachments_count_as_by_a_loop(seed: int) -> None:
    rng, cluster = Random(seed), Cluster(rows=2)  # so that rows are added
    attachments, volumes, nodes = dict[str, Attachment](), dict[str, str](), set[str]()
    for name in "nmop":
        cluster.volumes.set_attach_limits(AttachLimits(name, (("d", LIMIT), ("e", LIMIT))))
    cluster.set_node(make_node("always"))
    cluster.volumes.set_attach_limits(AttachLimits("always", (("d", LIMIT), ("e", LIMIT))))
    for _ in range(150):
        name, node, volume = rng.choice("abcdef"), rng.choice("nmop"), rng.choice("uvw")
        match rng.randrange(6):
            case 0 | 1:
                attachments[name] = Attachment(name, node, volume, rng.choice("de"))
                cluster.volumes.set_attachment(attachments[name])
            case 2:
                attachments.pop(name, None)
                cluster.volumes.drop_attachment(name)
            case 3:
                volumes[volume] = rng.choice(["", "h", "i"])
                cluster.volumes.set_volume(
                    make_volume(volume, driver=volumes[volume] and "any", handle=volumes[volume])
                )
            case 4:
                volumes.pop(volume, None)
                cluster.volumes.drop_volume(volume)
            case _:
                move_node(cluster, nodes, node)
        for driver in "de":
            assert counted(cluster, driver) == by_a_loop(attachments, volumes, nodes | {"always"}, driver)


def move_node(cluster: Cluster, nodes: set[str], node: str) -> None:
    if node in nodes:
        nodes.remove(node)
        cluster.drop_node(node)
    else:
        nodes.add(node)
        cluster.set_node(make_node(node))


def test_nothing_is_kept_of_attachments_that_have_gone() -> None:
    cluster = Cluster()
    cluster.set_node(make_node("n"))
    for at in range(100):
        cluster.volumes.set_volume(make_volume(f"v{at}", driver="d"))
        cluster.volumes.set_attachment(Attachment(f"a{at}", "n", f"v{at}", "d"))
    assert len(cluster.volumes.attachments) == 100
    for at in range(100):
        cluster.volumes.drop_attachment(f"a{at}")
    found = cluster.volumes.attachments
    assert (len(found), found._of_node, found._of_volume, found._counted) == (0, {}, {}, {})
    assert cluster.volumes.attached._holders == {}
