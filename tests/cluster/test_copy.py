"""A copy of a cluster is what the same changes make of a new one, and neither follows the other.

Hypothesis makes changes before and after the copy; two clusters that were never copied say what is right.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import make_node, make_task
from eclectus.cluster.nodes import Cluster
from eclectus.engine.placed_pods import PlacedPods
from eclectus.model.objects import (
    HostPort,
    Node,
    PodAffinityTerm,
    Requirement,
    Taint,
    Task,
    UsedClaim,
    WeightedTerm,
)
from eclectus.model.volumes import AttachLimits, Attachment
from storage_objects import LATE, make_claim, make_volume

PORT, DRIVER = HostPort(80), "csi.example"
APART = PodAffinityTerm("zone", (Requirement("app", "In", ("a",)),), ("default",))
NODES = st.builds(
    make_node,
    st.sampled_from("nmo"),
    cpu=st.integers(1, 4),
    gpus=st.integers(0, 1),
    devices=st.integers(0, 2),
    labels=st.dictionaries(st.sampled_from(["zone", "disk"]), st.sampled_from("ab")),
    taints=st.sampled_from([(), (Taint("t"),), (Taint("t"), Taint("u"))]),
    unschedulable=st.booleans(),
    images=st.sampled_from([(), (("image", 7),)]),
)
PODS = st.builds(
    make_task,
    st.sampled_from("vwxyz"),
    cpu=st.integers(0, 2),
    gpus=st.integers(0, 1),  # of which perhaps no node has any
    device_milli=st.sampled_from([0, 300]),
    long_running=st.booleans(),
    host_ports=st.sampled_from([(), (PORT,)]),
    labels=st.sampled_from([(), (("app", "a"),)]),
    anti_affinity_terms=st.sampled_from([(), (APART,)]),
    preferred_terms=st.sampled_from([(), (WeightedTerm(5, APART),)]),
    claims=st.sampled_from([(), (UsedClaim("data"),)]),
    node=st.sampled_from("nmo"),
)
LIMITS = st.builds(AttachLimits, st.sampled_from("nm"), st.just(((DRIVER, 3),)), st.just((DRIVER,)))
ATTACHMENTS = st.builds(
    Attachment, st.sampled_from("ab"), st.sampled_from("nm"), st.just("v"), st.just(DRIVER)
)
Step = Node | Task | AttachLimits | Attachment | str
STEPS = st.lists(
    NODES | PODS | LIMITS | ATTACHMENTS | st.sampled_from(["-n", "-m", "v", "w", "x"]), max_size=12
)


class Copied:
    """A cluster and the pods on it, changed step by step."""

    def __init__(self, cluster: Cluster, placed: PlacedPods) -> None:
        self.cluster, self.placed = cluster, placed

    def apply(self, steps: list[Step]) -> None:
        for step in steps:
            match step:
                case Node():
                    is_new = step.name not in self.cluster.rows
                    self.cluster.set_node(step)
                    if is_new:
                        self.placed.add_node(step.name)
                case Task():
                    self.placed.set(step, step.node, 0.0)
                case AttachLimits():
                    self.cluster.volumes.set_attach_limits(step)
                case Attachment():
                    self.cluster.volumes.set_attachment(step)
                case str() if step[0] == "-":
                    if step[1:] in self.cluster.rows:
                        self.placed.remove_node(step[1:])
                        self.cluster.drop_node(step[1:])
                case _:
                    self.placed.remove(f"uid-{step}")

    def copy(self) -> Copied:
        cluster = self.cluster.copy()
        return Copied(cluster, self.placed.copy(cluster))

    def contents(self) -> dict[str, Any]:
        """All that is to be read of it."""
        cluster, rows = self.cluster, range(len(self.cluster.names))
        arrays = (cluster.layers, cluster.scored, cluster.present, cluster.cordoned, cluster.background_free)
        groups = cluster.pods.matching(None, ())
        free = cluster.volumes.attached.free(DRIVER)
        return {
            "rows": (dict(cluster.rows), list(cluster.names), dict(cluster.columns)),
            "arrays": [each.tolist() for each in arrays],
            "taints": [cluster.taint_sets[cluster.taint_set[row]] for row in rows],
            "labels": [dict(cluster.labels.of_row(row)) for row in rows],
            "columns": [cluster.labels.value("zone", row) for row in rows],
            "zones": _by_code(cluster),
            "nodes": [cluster.node(name) for name in cluster.names],
            "ports": [cluster.host_ports.count(PORT, row) for row in rows],
            "images": cluster.images.sizes("image", len(rows))[0].tolist(),
            "devices": None if cluster.devices is None else cluster.devices.free.tolist(),
            "unoffered": [
                [cluster.unoffered.column("gpu", layer)[row] for row in rows] for layer in range(4)
            ],
            "groups": sorted(
                (str(each.labels), str(each.terms), sorted(each.pods.items())) for each in groups
            ),
            "terms": (len(cluster.anti_affinity), len(cluster.preferences)),
            "with term": [sorted(each.pods.items()) for each in cluster.pods.with_term.get(APART, ())],
            "claims": dict(cluster.volumes.claim_users.users.get("default/data", {})),
            "free volumes": None if free is None else free.tolist(),
            "placed": [(each, self.placed.node_of(each.uid)) for each in self.placed.tasks()],
            "on rows": [sorted(each.uid for each, _ in self.placed.on_row(row)) for row in rows],
            "lowest": self.placed.lowest_priority,
        }


def _by_code(cluster: Cluster) -> list[str | None]:
    values = {code: value for value, code in cluster.labels.codes("zone").items()}
    return [values.get(int(code)) for code in cluster.labels.column("zone")]


def new() -> Copied:
    cluster = Cluster(rows=2)  # so that rows are added
    cluster.volumes.storage.set_class(LATE)
    cluster.volumes.storage.set_claim(make_claim())
    cluster.volumes.set_volume(make_volume("v", driver=DRIVER))
    return Copied(cluster, PlacedPods(cluster))


def made(*parts: list[Step]) -> dict[str, Any]:
    found = new()
    for steps in parts:
        found.apply(steps)
    return found.contents()


@settings(max_examples=150, deadline=None)
@given(STEPS, STEPS, STEPS)
def test_a_copy_and_its_original_go_their_own_ways(
    before: list[Step], of_copy: list[Step], of_original: list[Step]
) -> None:
    original = new()
    original.apply(before)
    found = original.copy()
    assert found.contents() == original.contents() == made(before)
    found.apply(of_copy)
    assert original.contents() == made(before)
    original.apply(of_original)
    assert original.contents() == made(before, of_original)
    assert found.contents() == made(before, of_copy)


def test_background_load_and_services_are_copied() -> None:
    original = new()
    original.apply([make_node("n"), make_task("v", long_running=True, node="n")])
    original.cluster.set_loads({"n": 0.9})
    found = original.copy()
    assert found.cluster.background_free[0] == original.cluster.background_free[0] < 1.0
    assert np.array_equal(found.cluster.long_running, original.cluster.long_running)
    found.cluster.set_loads({})
    assert original.cluster.background_free[0] < found.cluster.background_free[0] == 1.0
