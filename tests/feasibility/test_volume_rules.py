"""The rules about volumes, each against a loop over nodes and pods."""

from __future__ import annotations

from itertools import product
from random import Random
from typing import NamedTuple

import numpy as np
import pytest

from builders import make_cluster, make_node, make_spec
from eclectus.cluster.nodes import Cluster
from eclectus.feasibility.rules import volumes
from eclectus.feasibility.rules.volumes import ZONE_LABELS
from eclectus.model.objects import Spec, Task, VolumeNeeds, VolumeUse
from eclectus.model.volumes import AttachLimits, Attachment
from storage_objects import make_claim, make_volume, with_claims

GA_ZONE, BETA_ZONE = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"


def dumb_zone_holds(zones: tuple[tuple[str, tuple[str, ...]], ...], labels: dict[str, str]) -> bool:
    if not any(key in labels for key in ZONE_LABELS):
        return True
    for key, values in zones:
        newer = key.replace("failure-domain.beta", "topology")
        if labels.get(key, labels.get(newer)) not in values:
            return False
    return True


def test_zones_by_every_combination_of_labels() -> None:
    values = (None, "a", "b")
    nodes = [
        {key: value for key, value in ((GA_ZONE, new), (BETA_ZONE, old)) if value}
        for new, old in product(values, values)
    ]
    cluster = make_cluster(*(make_node(f"n{at}", labels=labels) for at, labels in enumerate(nodes)))
    rows = np.array([cluster.rows[f"n{at}"] for at in range(len(nodes))])
    for key, allowed in product((GA_ZONE, BETA_ZONE), (("a",), ("a", "b"), ("c",))):
        zones = ((key, allowed),)
        holds = volumes.VOLUME_ZONE.holds(cluster, Spec(volumes=VolumeNeeds(zones=zones)), rows)
        assert holds.tolist() == [dumb_zone_holds(zones, labels) for labels in nodes]


# -- volumes that pods on nodes use ------------------------------------------------------------------

LIMITS = {"n0": 0, "n1": 2, "n2": 5}  # n3 has none


class Attached(NamedTuple):
    """Claims c0 to c7, whose volumes v-c0 to v-c7 have these drivers; c6 and c7 have one handle."""

    drivers: dict[str, str]  # by the key of the claim
    pods: dict[Task, str]  # -> node
    attachments: dict[str, Attachment]

    def used(self, node: str, driver: str) -> set[str]:
        """The keys of claims that pods on the node use, of this driver."""
        keys = {
            f"default/{claim.name}" for pod, at in self.pods.items() if at == node for claim in pod.claims
        }
        return {key for key in keys if self.drivers[key] == driver}

    def volumes(self, node: str, driver: str) -> set[str]:
        """The handles of this driver's volumes that are in use on the node, or attached to it."""
        used = {handle_of(key.partition("/")[2]) for key in self.used(node, driver)}
        for each in self.attachments.values():
            claim = each.volume.removeprefix("v-")
            if (each.node, each.driver) == (node, driver) and self.drivers.get(f"default/{claim}"):
                used.add(handle_of(claim))
        return used


def handle_of(claim: str) -> str:
    return "one" if claim in ("c6", "c7") else claim


def cluster_with_limits(drivers: dict[str, str]) -> Cluster:
    cluster = make_cluster(*(make_node(f"n{at}") for at in range(4)))
    for node, count in LIMITS.items():
        cluster.volumes.set_attach_limits(AttachLimits(node, (("d0", count), ("d1", 1))))
    for key, driver in drivers.items():
        name = key.partition("/")[2]
        cluster.volumes.storage.set_claim(make_claim(name, volume=f"v-{name}"))
        cluster.volumes.set_volume(
            make_volume(f"v-{name}", claim=name, driver=driver, handle=handle_of(name))
        )
    return cluster


@pytest.mark.parametrize("seed", range(30))
def test_volume_limits_and_exclusive_claims_as_by_a_loop(seed: int) -> None:
    rng = Random(seed)
    drivers = {f"default/c{at}": rng.choice(["d0", "d0", "d1", ""]) for at in range(8)}
    cluster, pods, attachments = cluster_with_limits(drivers), dict[Task, str](), dict[str, Attachment]()
    for step in range(60):
        move_attachment(cluster, attachments, rng)
        if pods and rng.random() < 0.4:
            pod = rng.choice(list(pods))
            cluster.release(cluster.rows[pods.pop(pod)], pod)
        else:
            pod = with_claims(f"p{step}", *(f"c{at}" for at in rng.sample(range(8), rng.randrange(1, 4))))
            pods[pod] = f"n{rng.randrange(4)}"
            cluster.hold(cluster.rows[pods[pod]], pod)
        check(cluster, Attached(drivers, pods, attachments), rng)


def move_attachment(cluster: Cluster, attachments: dict[str, Attachment], rng: Random) -> None:
    """A volume, perhaps one that does not exist, is attached somewhere else, or nowhere any more."""
    name, node = f"a{rng.randrange(5)}", f"n{rng.randrange(5)}"  # there is no n4
    if rng.random() < 0.4:
        attachments.pop(name, None)
        cluster.volumes.drop_attachment(name)
    else:
        attachments[name] = Attachment(name, node, f"v-c{rng.randrange(9)}", rng.choice(["d0", "d1"]))
        cluster.volumes.set_attachment(attachments[name])


def check(cluster: Cluster, there: Attached, rng: Random) -> None:
    drivers, pods = there.drivers, there.pods
    asked = rng.sample(sorted(drivers), rng.randrange(1, 4))
    spec = asking(asked, drivers, rng.sample(asked, rng.randrange(len(asked) + 1)))
    node = rng.choice(list(cluster.rows))
    removed = [pod for pod, at in pods.items() if at == node and rng.random() < 0.5]
    for name, row in cluster.rows.items():
        rows, left = np.array([row]), {pod: at for pod, at in pods.items() if pod not in removed}
        assert volumes.VOLUME_LIMITS.holds(cluster, spec, rows)[0] == dumb_within(there, name, spec)
        assert volumes.VOLUME_RESTRICTIONS.holds(cluster, spec, rows)[0] == dumb_is_free(pods, spec)
        if name == node:
            within = volumes.VOLUME_LIMITS.holds_without(cluster, spec, row, removed)
            assert within == dumb_within(there._replace(pods=left), name, spec)
            is_free = volumes.VOLUME_RESTRICTIONS.holds_without(cluster, spec, row, removed)
            assert is_free == dumb_is_free(left, spec)


def asking(keys: list[str], drivers: dict[str, str], shared: list[str]) -> Spec:
    """A pod that uses these claims; those that are not shared count as ones that no other pod uses."""
    alone = [drivers[key] for key in keys if key not in shared]
    use = VolumeUse(
        exclusive=tuple(shared),
        attached=tuple((driver, alone.count(driver)) for driver in ("d0", "d1") if driver in alone),
        attached_shared=tuple((drivers[key], key) for key in shared if drivers[key]),
    )
    return make_spec(volume_use=use)


def dumb_within(there: Attached, node: str, spec: Spec) -> bool:
    limits = {"d0": LIMITS[node], "d1": 1} if node in LIMITS else {}
    for driver, limit in limits.items():
        used = there.used(node, driver)
        new = dict(spec.volume_use.attached).get(driver, 0)
        new += sum(one == driver and key not in used for one, key in spec.volume_use.attached_shared)
        if new and len(there.volumes(node, driver)) + new > limit:
            return False
    return True


def dumb_is_free(pods: dict[Task, str], spec: Spec) -> bool:
    used = {f"default/{claim.name}" for pod in pods for claim in pod.claims}
    return not used & set(spec.volume_use.exclusive)


def test_limits_of_a_node_that_comes_later_count() -> None:
    cluster = Cluster()
    cluster.volumes.set_attach_limits(AttachLimits("n", (("d0", 0),)))
    row = cluster.set_node(make_node("n"))
    spec = make_spec(volume_use=VolumeUse(attached=(("d0", 1),)))
    assert not volumes.VOLUME_LIMITS.holds(cluster, spec, np.array([row]))[0]
    cluster.drop_node("n")
    row = cluster.set_node(make_node("m"))
    assert volumes.VOLUME_LIMITS.holds(cluster, spec, np.array([row]))[0]


def test_a_claim_that_gets_another_driver_is_counted_under_it() -> None:
    cluster = cluster_with_limits({"default/c": "d0"})
    cluster.hold(cluster.rows["n1"], with_claims("p", "c"))
    cluster.volumes.storage.set_volume(make_volume("v-c", claim="c", driver="d1"))
    assert cluster.volumes.claim_users.volume_changed("default/c") == [cluster.rows["n1"]]
    free = cluster.volumes.attached.free("d1")
    assert free is not None
    assert free[cluster.rows["n1"]] == 0
