"""The rules about volumes, each against a loop over nodes and pods."""

from __future__ import annotations

from itertools import product
from random import Random

import numpy as np
import pytest

from builders import make_cluster, make_node, make_spec
from eclectus.cluster.nodes import Cluster
from eclectus.feasibility.rules import volume_limits, volume_restrictions, volume_zone
from eclectus.feasibility.rules.volume_zone import ZONE_LABELS
from eclectus.model.objects import Spec, Task, VolumeNeeds, VolumeUse
from eclectus.model.volumes import AttachLimits
from storage import make_claim, make_volume, with_claims

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
        holds = volume_zone.RULE.holds(cluster, Spec(volumes=VolumeNeeds(zones=zones)), rows)
        assert holds.tolist() == [dumb_zone_holds(zones, labels) for labels in nodes]


# -- volumes that pods on nodes use ------------------------------------------------------------------

LIMITS = {"n0": 0, "n1": 2, "n2": 5}  # n3 has none


def dumb_attached(pods: dict[Task, str], node: str, drivers: dict[str, str], driver: str) -> set[str]:
    keys = {f"default/{claim.name}" for pod, at in pods.items() if at == node for claim in pod.claims}
    return {key for key in keys if drivers[key] == driver}


def cluster_with_limits(drivers: dict[str, str]) -> Cluster:
    cluster = make_cluster(*(make_node(f"n{at}") for at in range(4)))
    for node, count in LIMITS.items():
        cluster.set_attach_limits(AttachLimits(node, (("d0", count), ("d1", 1))))
    for key, driver in drivers.items():
        name = key.partition("/")[2]
        cluster.storage.set_claim(make_claim(name, volume=f"v-{name}"))
        cluster.storage.set_volume(make_volume(f"v-{name}", claim=name, driver=driver))
    return cluster


@pytest.mark.parametrize("seed", range(30))
def test_volume_limits_and_exclusive_claims_as_by_a_loop(seed: int) -> None:
    rng = Random(seed)
    drivers = {f"default/c{at}": rng.choice(["d0", "d0", "d1", ""]) for at in range(8)}
    cluster, pods = cluster_with_limits(drivers), dict[Task, str]()
    for step in range(60):
        if pods and rng.random() < 0.4:
            pod = rng.choice(list(pods))
            cluster.release(cluster.rows[pods.pop(pod)], pod)
        else:
            pod = with_claims(f"p{step}", *(f"c{at}" for at in rng.sample(range(8), rng.randrange(1, 4))))
            pods[pod] = f"n{rng.randrange(4)}"
            cluster.hold(cluster.rows[pods[pod]], pod)
        check(cluster, pods, drivers, rng)


def check(cluster: Cluster, pods: dict[Task, str], drivers: dict[str, str], rng: Random) -> None:
    asked = rng.sample(sorted(drivers), rng.randrange(1, 4))
    spec = asking(asked, drivers, rng.sample(asked, rng.randrange(len(asked) + 1)))
    node = rng.choice(list(cluster.rows))
    removed = [pod for pod, at in pods.items() if at == node and rng.random() < 0.5]
    for name, row in cluster.rows.items():
        rows, left = np.array([row]), {pod: at for pod, at in pods.items() if pod not in removed}
        assert volume_limits.RULE.holds(cluster, spec, rows)[0] == dumb_within(pods, name, drivers, spec)
        assert volume_restrictions.RULE.holds(cluster, spec, rows)[0] == dumb_is_free(pods, spec)
        if name == node:
            within = volume_limits.RULE.holds_without(cluster, spec, row, removed)
            assert within == dumb_within(left, name, drivers, spec)
            is_free = volume_restrictions.RULE.holds_without(cluster, spec, row, removed)
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


def dumb_within(pods: dict[Task, str], node: str, drivers: dict[str, str], spec: Spec) -> bool:
    limits = {"d0": LIMITS[node], "d1": 1} if node in LIMITS else {}
    for driver, limit in limits.items():
        attached = dumb_attached(pods, node, drivers, driver)
        new = dict(spec.volume_use.attached).get(driver, 0)
        new += sum(one == driver and key not in attached for one, key in spec.volume_use.attached_shared)
        if new and len(attached) + new > limit:
            return False
    return True


def dumb_is_free(pods: dict[Task, str], spec: Spec) -> bool:
    used = {f"default/{claim.name}" for pod in pods for claim in pod.claims}
    return not used & set(spec.volume_use.exclusive)


def test_limits_of_a_node_that_comes_later_count() -> None:
    cluster = Cluster()
    cluster.set_attach_limits(AttachLimits("n", (("d0", 0),)))
    row = cluster.set_node(make_node("n"))
    spec = make_spec(volume_use=VolumeUse(attached=(("d0", 1),)))
    assert not volume_limits.RULE.holds(cluster, spec, np.array([row]))[0]
    cluster.drop_node("n")
    row = cluster.set_node(make_node("m"))
    assert volume_limits.RULE.holds(cluster, spec, np.array([row]))[0]


def test_a_claim_that_gets_another_driver_is_counted_under_it() -> None:
    cluster = cluster_with_limits({"default/c": "d0"})
    cluster.hold(cluster.rows["n1"], with_claims("p", "c"))
    cluster.storage.set_volume(make_volume("v-c", claim="c", driver="d1"))
    assert cluster.claim_users.driver_changed("default/c") == [cluster.rows["n1"]]
    free = cluster.claim_users.free("d1")
    assert free is not None
    assert free[cluster.rows["n1"]] == 0
