"""Which volumes unbound claims get where, against a loop over nodes, claims and volumes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random

import numpy as np
import pytest

from builders import make_cluster, make_node
from eclectus.cluster.nodes import Cluster
from eclectus.cluster.storage import Decision
from eclectus.feasibility.volume_reaches import EMPTY_FEW, MAX_UNUSED, Candidates, Reaches, VolumeMatching
from eclectus.model.objects import Requirement, UnboundClaim, selects
from eclectus.model.volumes import FreeStorage, StorageClass, Volume
from storage_objects import GIB, LATE, LOCAL, in_term, make_claim, make_volume, named

ZONES = ("z0", "z1", "z2")
MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce")


Published = Sequence[FreeStorage] | None
"""What the driver of all classes has published; None if it publishes nothing."""


def dumb_plan(
    cluster: Cluster, claims: list[UnboundClaim], name: str, free_storage: Published
) -> list[int | None] | str | None:
    """For each claim the size of its volume on a node, None for a new one.

    None if a claim gets nothing; `short` if storage is the reason.
    """
    node, storage = cluster.node(name), cluster.volumes.storage
    assert node is not None
    labels = dict(node.labels)
    free = sorted((each for each in storage.volumes.values() if not each.claim), key=lambda each: each.size)
    plan: list[int | None] = []
    for claim in claims:
        fitting = [each for each in free if dumb_fits(each, claim, labels)]
        if fitting:
            free.remove(fitting[0])
            plan.append(fitting[0].size)
        elif dumb_provisions(storage.classes[claim.storage_class], labels):
            if not dumb_has_storage(free_storage, claim, labels):
                return "short"
            plan.append(None)
        else:
            return None
    return plan


def dumb_score(
    cluster: Cluster, claims: list[UnboundClaim], plan: list[int | None], name: str, published: Published
) -> int:
    """kube-scheduler's VolumeBinding: the mean over StorageClasses of what stays free of each."""
    node = cluster.node(name)
    assert node is not None
    requested, there = Counter[str](), Counter[str]()
    for claim, size in zip(claims, plan, strict=True):
        if size is not None:
            requested[claim.storage_class] += claim.size
            there[claim.storage_class] += size
    if not requested:
        for claim in claims:
            free = [
                each.total
                for each in published or ()
                if each.storage_class == claim.storage_class and selects(each.nodes, dict(node.labels))
            ]
            if published is not None:
                requested[claim.storage_class] += claim.size
                there[claim.storage_class] = max(free)
    scores = [0 if want > there[key] else 100 - 100 * want // there[key] for key, want in requested.items()]
    return (2 * sum(scores) + len(scores)) // (2 * len(scores)) if scores else 0


def dumb_has_storage(published: Published, claim: UnboundClaim, labels: dict[str, str]) -> bool:
    return published is None or any(
        each.storage_class == claim.storage_class
        and each.largest >= claim.size
        and selects(each.nodes, labels)
        for each in published
    )


def dumb_fits(volume: Volume, claim: UnboundClaim, labels: dict[str, str]) -> bool:
    asked = (claim.storage_class, claim.volume_mode, claim.attributes_class)
    if (volume.storage_class, volume.volume_mode, volume.attributes_class) != asked:
        return False
    if volume.size < claim.size or not volume.is_available or volume.deleting:
        return False
    if not set(claim.access_modes) <= set(volume.access_modes):
        return False
    if claim.selector is not None and not selects(claim.selector, dict(volume.labels)):
        return False
    terms = volume.affinity
    return terms is None or any(selects(term.expressions, labels) for term in terms)


def dumb_provisions(storage_class: StorageClass, labels: dict[str, str]) -> bool:
    terms = storage_class.topologies
    return storage_class.provisions and (not terms or any(selects(one.expressions, labels) for one in terms))


def random_cluster(rng: Random) -> Cluster:
    nodes = [make_node(f"n{at}", labels={**named(f"n{at}"), "zone": rng.choice(ZONES)}) for at in range(12)]
    cluster = make_cluster(*nodes)
    zoned = StorageClass("zoned", "csi.example", True, (in_term("zone", rng.choice(ZONES)),))
    for each in (LATE, LOCAL, zoned):
        cluster.volumes.storage.set_class(each)
    for at in range(rng.randrange(20)):
        where = rng.choice([{"nodes": [f"n{rng.randrange(12)}"]}, {"zone": rng.choice(ZONES)}, {}])
        cluster.volumes.storage.set_volume(
            make_volume(
                f"v{at}",
                rng.randrange(1, 5),
                storage_class=rng.choice(["local", "zoned"]),
                access_modes=tuple(sorted(rng.sample(MODES, rng.randrange(1, 4)))),
                volume_mode=rng.choice(["Filesystem", "Filesystem", "Block"]),
                labels=(("tier", rng.choice(["gold", "iron"])),),
                deleting=rng.random() < 0.1,
                **where,
            )
        )
    cluster.drop_node(f"n{rng.randrange(12)}")
    return cluster


def random_storage(rng: Random, cluster: Cluster) -> Published:
    """Free storage of zones and nodes that are selected in several ways, where the driver publishes it."""
    if rng.random() < 0.3:
        return None
    cluster.volumes.storage.set_driver("csi.example", True, False)
    found = []
    for at in range(rng.randrange(16)):
        zone, host = Requirement("zone", "In", (rng.choice(ZONES),)), f"n{rng.randrange(14)}"
        of_node = Requirement("kubernetes.io/hostname", "In", (host,))
        others = Requirement("zone", "NotIn", (rng.choice(ZONES),))
        nodes = rng.choice([(zone,), (of_node,), (of_node, zone), (others,), (zone, others), ()])
        total = rng.randrange(20) * GIB
        found.append(FreeStorage(f"d/{at}", "zoned", rng.randrange(6) * GIB, nodes, total))
        cluster.volumes.storage.set_free(found[-1])
    return found


def random_claims(rng: Random) -> list[UnboundClaim]:
    gold = (Requirement("tier", "In", ("gold",)),)
    claims = [
        UnboundClaim(
            rng.choice(["local", "zoned"]),
            make_claim(size=rng.randrange(1, 5)).size,
            access_modes=tuple(rng.sample(MODES, rng.randrange(2))),
            selector=rng.choice([None, None, gold]),
        )
        for _ in range(rng.randrange(1, 4))
    ]
    return sorted(claims, key=lambda claim: claim.size)


@pytest.mark.parametrize("seed", range(150))
def test_the_same_nodes_and_volumes_as_by_a_loop(seed: int) -> None:
    rng = Random(seed)
    cluster, claims = random_cluster(rng), random_claims(rng)
    published = random_storage(rng, cluster)
    matching = VolumeMatching(cluster)
    where, is_short = matching.where(claims)
    scores = matching.scores(claims)
    for name, row in cluster.rows.items():
        expected = dumb_plan(cluster, claims, name, published)
        assert where[row] == isinstance(expected, list), name
        assert is_short[row] == (expected == "short"), name
        if isinstance(expected, list):
            assert scores[row] == dumb_score(cluster, claims, expected, name, published), name
            names = matching.plan(claims, row)
            assert [
                cluster.volumes.storage.volumes[each].size if each else None for each in names
            ] == expected
            assert len({each for each in names if each}) == sum(map(bool, names))
    assert where.sum() == sum(bool(where[row]) for row in cluster.rows.values())


def test_masks_follow_volumes_nodes_and_decisions() -> None:
    rng = Random(1)
    cluster = random_cluster(rng)
    reaches = Reaches(cluster)
    claims = (UnboundClaim("local", 1), UnboundClaim("zoned", 2))
    number = reaches.hold(claims)
    for step in range(250):
        free = cluster.volumes.storage.available("local")
        match rng.randrange(5):
            case 0:
                cluster.volumes.storage.set_volume(
                    make_volume(f"w{step}", storage_class="local", nodes=[f"n{rng.randrange(12)}"])
                )
            case 1 if free:
                cluster.volumes.storage.drop_volume(rng.choice(free).name)
            case 2 if free:
                cluster.volumes.storage.decide(f"default/c{step}", Decision("n0", rng.choice(free).name))
                reaches.follow_bind()
                assert np.array_equal(
                    cluster.volumes.reach[number].now, VolumeMatching(cluster).where(claims)
                )
            case 3:
                nodes = (Requirement("zone", "In", (rng.choice(ZONES),)),)
                cluster.volumes.storage.set_free(FreeStorage("d/s", "zoned", rng.randrange(4), nodes))
                cluster.volumes.storage.set_driver("csi.example", rng.random() < 0.8, False)
            case _:
                at = rng.randrange(14)
                labels = {**named(f"n{at}"), "zone": rng.choice(ZONES)}
                cluster.set_node(make_node(f"n{at}", labels=labels))
        before, cursor = cluster.volumes.reach[number].known.gets, cluster.shape.head
        if step % 10 == 5:
            reaches.release(number)  # no pod waits until the next step
        reaches.follow_events()
        if step % 10 == 5:
            assert reaches.hold(claims) == number
        known = cluster.volumes.reach[number].known
        assert np.array_equal(known, VolumeMatching(cluster).where(claims))
        changed = cluster.shape.since(cursor)
        assert changed is not None
        assert set(np.flatnonzero(before != known.gets).tolist()) <= set(changed)


@pytest.mark.parametrize("seed", range(20))
def test_volumes_that_change_are_followed_as_if_all_were_counted_again(seed: int) -> None:
    rng = Random(seed)
    cluster, claims = random_cluster(rng), random_claims(rng)
    storage, matching = cluster.volumes.storage, VolumeMatching(cluster)
    storage.take_moved()
    for step in range(60):
        matching.where(claims)  # from now on it knows the candidates
        name = f"v{rng.randrange(20)}"
        match rng.randrange(4):
            case 0:
                storage.drop_volume(name)
            case 1 if name in storage.volumes:
                storage.decide(f"default/{name}", Decision("", name))
            case 2 if f"default/{name}" in storage.decisions:
                storage.end_decision(f"default/{name}")
            case _:
                of_class, where = rng.choice(["local", "zoned"]), {"nodes": [f"n{step % 12}"]}
                storage.set_volume(make_volume(name, rng.randrange(1, 5), storage_class=of_class, **where))
        moved, again = storage.take_moved(), VolumeMatching(cluster)
        matching.follow_volumes(moved.classes, moved.volumes)
        found = matching.where(claims)
        assert np.array_equal(found, again.where(claims))
        for row in np.flatnonzero(found).tolist():
            plans = (matching.plan(claims, row), again.plan(claims, row))
            sizes = [[storage.volumes[each].size if each else 0 for each in plan] for plan in plans]
            assert sizes[0] == sizes[1]


def test_candidates_of_which_most_groups_are_empty_are_given_up() -> None:
    volumes = [make_volume(f"v{at}", nodes=[f"n{at}"]) for at in range(200)]
    candidates = Candidates(volumes, lambda terms: np.zeros(1, dtype=np.intp))
    followed = [candidates.set(volume.name, None) for volume in volumes]
    assert followed.index(False) == EMPTY_FEW + len(volumes) // 2


def test_a_smaller_kind_of_volume_than_the_greatest_is_not_followed() -> None:
    candidates = Candidates([make_volume("v", 2)], lambda terms: np.zeros(1, dtype=np.intp))
    assert candidates.set("w", make_volume("w", 3))
    assert candidates.set("x", make_volume("x", 2))
    assert not candidates.set("y", make_volume("y", 1))


def test_a_number_is_never_given_twice() -> None:
    cluster = random_cluster(Random(2))
    reaches = Reaches(cluster)
    kinds = [(UnboundClaim("local", size),) for size in range(MAX_UNUSED + 2)]
    numbers = [reaches.hold(kind) for kind in kinds]
    for number in numbers:
        reaches.release(number)
    assert len(reaches) == MAX_UNUSED
    assert reaches.hold(kinds[-1]) == numbers[-1]
    assert reaches.hold(kinds[0]) not in numbers


def test_what_is_decided_for_a_shared_claim_counts_for_all() -> None:
    cluster = random_cluster(Random(3))
    claims = [UnboundClaim("late", 1, shared="default/data")]
    assert VolumeMatching(cluster).where(claims).gets.sum() == len(cluster)
    name = next(iter(cluster.rows))
    cluster.volumes.storage.decide("default/data", Decision(name, ""))
    assert np.flatnonzero(VolumeMatching(cluster).where(claims).gets).tolist() == [cluster.rows[name]]
