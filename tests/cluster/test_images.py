"""Which nodes have which images, by name and size."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from eclectus.cluster.nodes import Cluster
from eclectus.model.objects import Images, Node

IMAGES = st.lists(
    st.tuples(st.sampled_from(["web:1", "web:2", "db:1"]), st.sampled_from([10, 20])),
    unique_by=lambda image: image[0],
).map(tuple)


@given(st.lists(st.tuples(st.integers(0, 20), st.one_of(st.none(), IMAGES)), max_size=30))
def test_sizes_are_those_that_nodes_have_reported_last(changes: list[tuple[int, Images | None]]) -> None:
    cluster, expected = Cluster(rows=2), dict[str, Images]()
    for at, images in changes:
        if images is None:
            cluster.drop_node(f"n{at}")
            expected.pop(f"n{at}", None)
        else:
            cluster.set_node(Node(f"n{at}", images=images))
            expected[f"n{at}"] = images
    for name in ("web:1", "web:2", "db:1"):
        sizes, holders = cluster.images.sizes(name, cluster.capacity)
        found = {node: int(sizes[row]) for node, row in cluster.rows.items() if sizes[row]}
        wanted = {node: dict(images)[name] for node, images in expected.items() if name in dict(images)}
        assert (found, holders) == (wanted, len(wanted))
        assert bool(cluster.images.version(name)) == bool(wanted)


def test_another_image_changes_no_rule_and_only_its_own_version() -> None:
    cluster, node = Cluster(), Node("n", (("cpu", 1),), images=(("web:1", 5),))
    cluster.set_node(node)
    before = cluster.shape.head, cluster.images.version("web:1")
    cluster.set_node(replace(node, images=(("web:1", 5), ("db:1", 7))))
    assert (cluster.shape.head, cluster.images.version("web:1")) == before
    assert cluster.images.version("db:1") > before[1]
