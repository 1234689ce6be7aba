"""Pods with claims: which share a class, where they go, what they wait for, and what goes before a bind."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from builders import make_engine, make_node
from eclectus.engine import scheduling_cycle
from eclectus.engine.engine import Engine
from eclectus.explain.pod import explain_pod
from eclectus.model.commands import (
    AwaitVolume,
    Bind,
    Command,
    Renominate,
    Report,
    ReserveVolume,
    SelectNode,
    VolumeStep,
)
from eclectus.model.events import (
    AttachLimitsGone,
    AttachLimitsSeen,
    AttachmentGone,
    AttachmentSeen,
    BindConfirmed,
    BindRefused,
    Event,
    FreeStorageGone,
    FreeStorageSeen,
    NodeSeen,
    Resumed,
    StorageDriverGone,
    StorageDriverSeen,
    TaskGone,
    TaskSeen,
    VolumeClaimGone,
    VolumeGone,
    VolumeSeen,
)
from eclectus.model.objects import Task
from eclectus.model.volumes import READ_WRITE_ONCE_POD, AttachLimits, Attachment, FreeStorage, StorageClass
from eclectus.policies.place.allocation import LeastAllocated
from operation_counts import operations
from storage_objects import (
    AT_ONCE,
    GIB,
    LATE,
    LOCAL,
    in_term,
    make_claim,
    make_volume,
    named,
    seen,
    with_claims,
)


class World:
    """An engine with three nodes `n0` to `n2` of zones `z0`, `z1`, `z1`."""

    def __init__(self) -> None:
        self.engine: Engine = make_engine(LeastAllocated())
        self.now = 0.0
        nodes = [
            make_node(f"n{at}", cpu=4, labels={**named(f"n{at}"), "zone": f"z{min(at, 1)}"})
            for at in range(3)
        ]
        self.step(*[NodeSeen(node) for node in nodes], *seen(LATE, LOCAL, AT_ONCE), Resumed())

    def step(self, *events: Event, after: float = 0.0) -> list[Command]:
        """A step so many seconds after the last."""
        self.now += after
        return self.engine.step(events, self.now)

    def binds(self, *events: Event, after: float = 0.0) -> dict[str, str]:
        """Pod -> node, of the binds of a step."""
        return {each.name: each.node for each in self.step(*events, after=after) if isinstance(each, Bind)}

    def bind(self, *events: Event) -> Bind:
        """The one bind of a step."""
        (found,) = (each for each in self.step(*events) if isinstance(each, Bind))
        return found

    def message(self, task: Task) -> str:
        """Why the pod waits, as it is reported within two seconds."""
        commands = self.step(TaskSeen(task)) + self.step(after=1.5)
        return next(each.message for each in commands if isinstance(each, Report))

    def classes(self) -> int:
        """How many different classes wait."""
        return len({(task.spec, task.workload) for task in self.engine._state.pending.values()})


def steps(bind: Bind) -> tuple[VolumeStep, ...]:
    """What is done to claims and volumes before the bind."""
    return tuple(step for step in bind.before if isinstance(step, VolumeStep))


@pytest.fixture
def world() -> World:
    return World()


# -- bound claims ------------------------------------------------------------------------------------


def test_a_pod_runs_where_its_volume_is(world: World) -> None:
    world.step(*seen(make_claim(volume="v"), make_volume(claim="data", nodes=["n2"])))
    bind = world.bind(TaskSeen(with_claims("a", "data")))
    assert (bind.node, steps(bind)) == ("n2", ())


def test_two_volumes_that_no_node_reaches_together_are_reported(world: World) -> None:
    world.step(
        *seen(make_claim("one", volume="v1"), make_volume("v1", claim="one", nodes=["n1"])),
        *seen(make_claim("two", volume="v2"), make_volume("v2", claim="two", nodes=["n2"])),
    )
    assert world.message(with_claims("a", "one", "two")).startswith(
        "0/3 nodes are available: 3 node(s) didn't match PersistentVolume's node affinity."
    )


def test_zone_labels_of_a_volume_count(world: World) -> None:
    zone = "topology.kubernetes.io/zone"
    world.step(*(NodeSeen(make_node(f"n{at}", labels={zone: f"z{at}"})) for at in range(3)))
    world.step(*seen(make_claim(volume="v"), make_volume(claim="data", labels=((zone, "z7__z2"),))))
    assert world.bind(TaskSeen(with_claims("a", "data"))).node == "n2"
    world.step(*seen(make_claim("far", volume="w"), make_volume("w", claim="far", labels=((zone, "z7"),))))
    assert "3 node(s) had no available volume zone" in world.message(with_claims("b", "far"))


def test_pods_whose_claims_resolve_alike_share_a_class(world: World) -> None:
    for at in range(5):
        world.step(
            *seen(make_claim(f"c{at}", volume=f"v{at}"), make_volume(f"v{at}", claim=f"c{at}", zone="z9"))
        )
        world.step(TaskSeen(with_claims(f"a{at}", f"c{at}")))
        world.step(TaskSeen(with_claims(f"m{at}", f"missing{at}")))
    for at in range(5):
        world.step(
            *seen(make_claim(f"u{at}", storage_class="local")), TaskSeen(with_claims(f"u{at}", f"u{at}"))
        )
    assert world.classes() == 3


# -- what blocks a pod -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("claim", "problem"),
    [
        ({"storage_class": "at-once"}, "pod has unbound immediate PersistentVolumeClaims"),
        ({"storage_class": ""}, "pod has unbound immediate PersistentVolumeClaims"),
        ({"storage_class": "unknown"}, "pod has unbound immediate PersistentVolumeClaims"),
        ({"volume": "v", "is_bound": False}, "pod has unbound immediate PersistentVolumeClaims"),
        ({"volume": "v"}, 'persistentvolume "v" not found'),
        (
            {"volume": "v", "is_lost": True},
            'persistentvolumeclaim "data" bound to non-existent persistentvolume "v"',
        ),
        ({"deleting": True}, 'persistentvolumeclaim "data" is being deleted'),
        (None, 'persistentvolumeclaim "data" not found'),
    ],
)
def test_what_blocks_a_pod_is_reported_in_kube_schedulers_words(
    world: World, claim: dict[str, Any] | None, problem: str
) -> None:
    if claim is not None:
        fields = {"volume": "", **claim}
        world.step(*seen(replace(make_claim(), **{"is_bound": bool(fields["volume"]), **fields})))
    assert world.message(with_claims("a", "data")) == f"0/3 nodes are available: {problem}."


def test_two_pods_of_one_class_name_their_own_claims(world: World) -> None:
    assert '"one" not found' in world.message(with_claims("a", "one"))
    assert '"two" not found' in world.message(with_claims("b", "two"))
    assert world.classes() == 1


def test_a_pod_is_placed_when_its_claim_is_made_and_bound(world: World) -> None:
    assert not world.binds(TaskSeen(with_claims("a", "data")))
    assert not world.binds(*seen(make_claim(storage_class="at-once")))
    assert not world.binds(*seen(make_claim(volume="v", storage_class="at-once")))
    assert world.binds(*seen(make_volume(claim="data", nodes=["n1"]))) == {"a": "n1"}


def test_a_claim_concerns_pods_of_its_namespace_alone(world: World) -> None:
    world.step(TaskSeen(with_claims("a", "data")))
    world.step(*seen(make_volume(claim="data")))
    assert not world.binds(*seen(replace(make_claim(volume="v"), namespace="other")))
    assert world.binds(*seen(make_claim(volume="v"))) == {"a": "n0"}


def test_a_pod_whose_claim_vanishes_waits_again(world: World) -> None:
    task = with_claims("a", "data", cpu=5)
    world.step(*seen(make_claim(volume="v"), make_volume(claim="data")), TaskSeen(task))
    world.step(VolumeClaimGone("default/data"))
    assert not world.binds(NodeSeen(make_node("big", cpu=8)))
    assert world.binds(*seen(make_claim(volume="v"))) == {"a": "big"}


def test_the_claim_of_an_ephemeral_volume_must_be_the_pods_own(world: World) -> None:
    task = with_claims("a", "a-cache", own=True)
    waiting = 'waiting for ephemeral volume controller to create the persistentvolumeclaim "a-cache"'
    assert world.message(task) == f"0/3 nodes are available: {waiting}."
    world.step(*seen(make_claim("a-cache", owner="somebody")), after=1.0)
    reports = [each.message for each in world.step(after=40.0) if isinstance(each, Report)]
    foreign = "PVC default/a-cache was not created for pod default/a (pod is not owner)"
    assert reports == [f"0/3 nodes are available: {foreign}."]
    assert world.binds(*seen(make_claim("a-cache", owner="uid-a"))) == {"a": "n0"}


# -- claims that wait for their first pod --------------------------------------------------------------


def test_the_smallest_volume_that_matches_is_reserved(world: World) -> None:
    volumes = [make_volume("small", 1, nodes=["n1"]), make_volume("large", 9, nodes=["n1"])]
    volumes += [make_volume("fitting", 3, nodes=["n1"]), make_volume("other", 3, storage_class="late")]
    local = [replace(each, storage_class="local") for each in volumes[:3]]
    world.step(*seen(*local, volumes[3], make_claim(size=2, storage_class="local")))
    bind = world.bind(TaskSeen(with_claims("a", "data")))
    assert bind.node == "n1"
    assert steps(bind) == (
        ReserveVolume("fitting", "default", "data", "uid-data"),
        AwaitVolume("default", "data", "uid-data", "fitting"),
    )


def test_where_no_volume_matches_one_is_provisioned(world: World) -> None:
    world.step(*seen(make_claim()))
    bind = world.bind(TaskSeen(with_claims("a", "data")))
    assert steps(bind) == (
        SelectNode("default", "data", "uid-data", bind.node),
        AwaitVolume("default", "data", "uid-data", node=bind.node),
    )


def test_volumes_are_provisioned_only_where_the_class_allows(world: World) -> None:
    zoned = StorageClass("zoned", "csi.example", waits_for_consumer=True, topologies=(in_term("zone", "z0"),))
    world.step(*seen(zoned, make_claim(storage_class="zoned")))
    assert world.bind(TaskSeen(with_claims("a", "data"))).node == "n0"
    nowhere = replace(zoned, name="nowhere", topologies=(in_term("zone", "z9"),))
    world.step(*seen(nowhere, make_claim("b", storage_class="nowhere")))
    message = world.message(with_claims("b", "b"))
    assert "3 node(s) didn't find available persistent volumes to bind" in message


# -- free storage --------------------------------------------------------------------------------------

PUBLISHES = StorageDriverSeen("csi.example", publishes_capacity=True)


def free(key: str, gib: int, node: str = "", storage_class: str = "late") -> FreeStorageSeen:
    """So many GiB are free on a node, without one on all."""
    nodes = in_term("kubernetes.io/hostname", node).expressions if node else ()
    return FreeStorageSeen(FreeStorage(f"driver/{key}", storage_class, gib * GIB, nodes))


def test_a_volume_is_provisioned_where_enough_storage_is_free(world: World) -> None:
    world.step(PUBLISHES, free("a", 4, "n0"), free("b", 5, "n1"), free("c", 9, "n0", "at-once"))
    world.step(*seen(make_claim(size=5)))
    assert world.bind(TaskSeen(with_claims("a", "data"))).node == "n1"


def test_nodes_without_enough_storage_are_refused_in_kube_schedulers_words(world: World) -> None:
    world.step(PUBLISHES, free("a", 4, "n0"), free("b", 4, "n1"), *seen(make_claim(size=5)))
    assert "3 node(s) did not have enough free storage" in world.message(with_claims("a", "data"))


def test_a_node_that_the_class_does_not_serve_is_not_short_of_storage(world: World) -> None:
    zoned = StorageClass("zoned", "csi.example", waits_for_consumer=True, topologies=(in_term("zone", "z0"),))
    world.step(PUBLISHES, *seen(zoned, make_claim(storage_class="zoned")))
    message = world.message(with_claims("a", "data"))
    assert "1 node(s) did not have enough free storage" in message
    assert "2 node(s) didn't find available persistent volumes to bind" in message


@pytest.mark.parametrize(
    "event",
    [
        free("a", 5, "n0"),
        free("more", 9),
        StorageDriverSeen("csi.example", publishes_capacity=False),
        StorageDriverGone("csi.example"),
        VolumeSeen(make_volume("v", 5, nodes=["n0"])),
    ],
)
def test_a_pod_that_waits_for_storage_is_placed_when_it_can_get_some(world: World, event: Event) -> None:
    world.step(PUBLISHES, free("a", 4, "n0"), *seen(make_claim(size=5)))
    world.message(with_claims("a", "data"))
    assert world.binds(free("b", 4, "n1")) == {}
    assert set(world.binds(event)) == {"a"}


def test_storage_that_is_gone_counts_no_more(world: World) -> None:
    world.step(PUBLISHES, free("a", 9, "n0"), *seen(make_claim(size=5)))
    world.step(FreeStorageGone("driver/a"))
    assert not world.binds(TaskSeen(with_claims("a", "data")))
    assert world.binds(free("a", 5, "n2")) == {"a": "n2"}


def test_what_an_explanation_says_of_free_storage(world: World) -> None:
    world.step(PUBLISHES, free("a", 4, "n0"), *seen(make_claim(size=5)))
    world.message(with_claims("a", "data"))
    nearest = explain_pod(world.engine, "default", "a", world.now).nearest
    lacks = [{lack.what for lack in miss.lacks} for miss in nearest]
    assert len(lacks) == 3
    assert all("free storage for its claims" in each for each in lacks)


# -- drivers that must be installed ----------------------------------------------------------------------

NEEDED = StorageDriverSeen("csi.example", publishes_capacity=False, must_be_installed=True)


def installed(node: str, *drivers: str, **limits: int) -> AttachLimitsSeen:
    """The CSINode of a node with these drivers."""
    return AttachLimitsSeen(AttachLimits(node, tuple(limits.items()), drivers))


def test_a_node_without_a_driver_that_must_be_installed_gets_no_pod_of_it(world: World) -> None:
    world.step(NEEDED, *seen(make_claim(volume="v"), make_volume(claim="data", driver="csi.example")))
    world.step(*seen(make_claim("new")), installed("n0", "other.example"))
    said = "0/3 nodes are available: 3 csi.example CSI driver is not installed on the node."
    never = " No node, however empty, satisfies: CSI driver csi.example."
    assert world.message(with_claims("a", "data")) == world.message(with_claims("b", "new")) == said + never
    assert world.binds(installed("n1", "csi.example")) == {"a": "n1", "b": "n1"}


def test_a_node_lacks_each_driver_or_room_for_one_more_volume(world: World) -> None:
    world.step(NEEDED, StorageDriverSeen("d.example", publishes_capacity=False, must_be_installed=True))
    for name, driver in (("one", "csi.example"), ("two", "d.example")):
        volume = make_volume(f"v-{name}", claim=name, driver=driver)
        world.step(*seen(make_claim(name, volume=f"v-{name}"), volume))
    full = AttachLimits("n2", (("d.example", 0),), ("csi.example", "d.example"))
    world.step(installed("n0", "d.example"), installed("n1", "csi.example"), AttachLimitsSeen(full))
    assert world.message(with_claims("a", "one", "two")) == (
        "0/3 nodes are available: 1 csi.example CSI driver is not installed on the node, "
        "1 d.example CSI driver is not installed on the node, 1 node(s) exceed max volume count."
    )


@pytest.mark.parametrize(
    "event",
    [StorageDriverGone("csi.example"), StorageDriverSeen("csi.example", publishes_capacity=False)],
)
def test_a_driver_that_need_not_be_installed_any_more(world: World, event: Event) -> None:
    world.step(NEEDED, *seen(make_claim()))
    world.message(with_claims("a", "data"))
    assert set(world.binds(event)) == {"a"}


def test_drivers_of_a_node_that_comes_later_count_and_go_with_its_csi_node(world: World) -> None:
    world.step(NEEDED, installed("late", "csi.example"), *seen(make_claim(), make_claim("more")))
    world.message(with_claims("a", "data"))
    assert world.binds(NodeSeen(make_node("late", cpu=4))) == {"a": "late"}
    world.step(AttachLimitsGone("late"))
    assert "4 csi.example CSI driver is not installed" in world.message(with_claims("b", "more"))


# -- several claims ------------------------------------------------------------------------------------


def test_pods_of_one_cycle_get_different_volumes(world: World) -> None:
    world.step(
        *seen(*(make_volume(f"v{at}", storage_class="local", nodes=[f"n{at}"]) for at in range(2))),
        *seen(*(make_claim(f"c{at}", storage_class="local") for at in range(3))),
    )
    tasks = [with_claims(f"a{at}", f"c{at}") for at in range(3)]
    bound = world.binds(*map(TaskSeen, tasks))
    assert sorted(bound.values()) == ["n0", "n1"]
    (waits,) = {"a0", "a1", "a2"} - set(bound)
    assert world.binds(*seen(make_volume("v2", storage_class="local", nodes=["n2"]))) == {waits: "n2"}


def test_two_claims_of_a_pod_need_two_volumes_on_one_node(world: World) -> None:
    volumes = [make_volume("v0", 5, nodes=["n0"]), make_volume("v1", 5, nodes=["n1"])]
    volumes.append(make_volume("w1", 3, nodes=["n1"]))
    world.step(*seen(*(replace(each, storage_class="local") for each in volumes)))
    world.step(
        *seen(make_claim("big", 4, storage_class="local"), make_claim("small", 2, storage_class="local"))
    )
    bind = world.bind(TaskSeen(with_claims("a", "big", "small")))
    reserved = {step.claim: step.volume for step in bind.before if isinstance(step, ReserveVolume)}
    assert (bind.node, reserved) == ("n1", {"small": "w1", "big": "v1"})


def test_a_claim_that_was_given_a_node_stays_with_it(world: World) -> None:
    world.step(*seen(make_claim(selected_node="n2")))
    bind = world.bind(TaskSeen(with_claims("a", "data")))
    assert (bind.node, steps(bind)) == ("n2", (AwaitVolume("default", "data", "uid-data", node="n2"),))


def test_a_claim_for_which_a_volume_is_reserved_gets_it(world: World) -> None:
    reserved = make_volume("mine", 9, claim="data", nodes=["n1"])
    world.step(*seen(make_claim(), reserved, make_volume("free", nodes=["n0"])))
    bind = world.bind(TaskSeen(with_claims("a", "data")))
    assert (bind.node, steps(bind)) == ("n1", (AwaitVolume("default", "data", "uid-data", "mine"),))


def test_after_a_refused_bind_the_volume_is_free_again(world: World) -> None:
    world.step(*seen(make_volume("v", storage_class="local", nodes=["n1"])))
    world.step(*seen(make_claim("c0", storage_class="local"), make_claim("c1", storage_class="local")))
    world.bind(TaskSeen(with_claims("a", "c0")))
    assert not world.binds(TaskSeen(with_claims("b", "c1")))
    assert world.binds(BindRefused("uid-a", "n1", "no"), TaskGone("uid-a"), after=0.1) == {"b": "n1"}


def test_a_volume_stays_taken_until_the_watch_shows_that_it_is(world: World) -> None:
    world.step(*seen(make_volume("v", storage_class="local", nodes=["n1"])))
    world.step(*seen(make_claim("c0", storage_class="local"), make_claim("c1", storage_class="local")))
    world.bind(TaskSeen(with_claims("a", "c0")))
    world.step(*seen(make_claim("c0", volume="v", storage_class="local")), BindConfirmed("uid-a", "n1"))
    assert not world.binds(TaskSeen(with_claims("b", "c1")))
    world.step(*seen(make_volume("v", storage_class="local", claim="c0", nodes=["n1"])), VolumeGone("v"))
    assert world.binds(*seen(make_volume("v", storage_class="local", nodes=["n1"]))) == {"b": "n1"}


def test_pods_that_share_an_unbound_claim_go_to_one_node(world: World) -> None:
    world.step(*seen(make_claim(access_modes=("ReadWriteMany",))))
    tasks = [with_claims(f"a{at}", "data") for at in range(3)]
    bound = world.binds(*map(TaskSeen, tasks))
    assert len(bound) == 3
    assert len(set(bound.values())) == 1


def test_a_volume_stays_chosen_for_the_other_pods_of_a_claim(world: World) -> None:
    world.step(*seen(*(make_volume(f"v{at}", storage_class="local", nodes=["n1"]) for at in range(2))))
    world.step(*seen(make_claim("c0", storage_class="local"), make_claim("c1", storage_class="local")))
    first, second = (steps(world.bind(TaskSeen(with_claims(name, "c0")))) for name in ("a", "b"))
    assert first == second
    world.step(BindRefused("uid-a", "n1", "no"), TaskGone("uid-a"))
    other = steps(world.bind(TaskSeen(with_claims("c", "c1"))))
    assert isinstance(first[0], ReserveVolume)
    assert isinstance(other[0], ReserveVolume)
    assert other[0].volume != first[0].volume


def test_a_pod_is_nominated_to_the_node_while_it_waits_for_volumes(world: World) -> None:
    world.step(*seen(make_claim(), make_claim("other")))
    bind = world.bind(TaskSeen(with_claims("a", "data")))
    assert bind.before[0] == Renominate(bind.node, "")
    nominated = replace(with_claims("b", "other"), nominated="n1")
    bind = world.bind(TaskSeen(nominated))
    assert (bind.node, bind.before) == ("n1", steps(bind))


# -- volumes that other pods use -----------------------------------------------------------------------


def test_a_claim_for_one_pod_is_used_by_one_pod(world: World) -> None:
    world.step(*seen(make_claim(volume="v", access_modes=(READ_WRITE_ONCE_POD,)), make_volume(claim="data")))
    tasks = [with_claims(f"a{at}", "data") for at in range(2)]
    bound = world.binds(*map(TaskSeen, tasks))
    (first,) = bound
    (second,) = {"a0", "a1"} - {first}
    words = (
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use"
    )
    (report,) = (each for each in world.step(after=1.5) if isinstance(each, Report))
    assert report.message.startswith(f"0/3 nodes are available: 3 {words} by another pod.")
    world.step(BindConfirmed(f"uid-{first}", bound[first]))
    assert list(world.binds(TaskGone(f"uid-{first}"))) == [second]


def test_a_claim_for_one_pod_that_no_other_pod_uses_makes_no_class(world: World) -> None:
    for at in range(3):
        claim = make_claim(f"c{at}", volume=f"v{at}", access_modes=(READ_WRITE_ONCE_POD,))
        world.step(*seen(claim, make_volume(f"v{at}", claim=f"c{at}")))
        world.step(TaskSeen(with_claims(f"a{at}", f"c{at}", cpu=9)))
    assert world.classes() == 1


def test_a_node_takes_as_many_volumes_as_its_driver_can_attach(world: World) -> None:
    world.step(*(AttachLimitsSeen(AttachLimits(f"n{at}", (("csi.example", at),))) for at in range(3)))
    for at in range(4):
        volume = make_volume(f"v{at}", claim=f"c{at}", driver="csi.example")
        world.step(*seen(make_claim(f"c{at}", volume=f"v{at}"), volume))
    tasks = [with_claims(f"a{at}", f"c{at}", cpu=0.1) for at in range(4)]
    bound = world.binds(*map(TaskSeen, tasks))
    assert sorted(bound.values()) == ["n1", "n2", "n2"]
    (report,) = (each for each in world.step(after=1.5) if isinstance(each, Report))
    assert "3 node(s) exceed max volume count" in report.message
    more = AttachLimitsSeen(AttachLimits("n0", (("csi.example", 1),)))
    assert list(world.binds(more).values()) == ["n0"]


def test_a_volume_that_is_attached_counts_once(world: World) -> None:
    world.step(
        *(AttachLimitsSeen(AttachLimits(f"n{at}", (("csi.example", int(at == 1)),))) for at in range(3))
    )
    world.step(*seen(make_claim(volume="v"), make_volume(claim="data", driver="csi.example")))
    assert world.binds(TaskSeen(with_claims("a", "data"))) == {"a": "n1"}
    world.step(BindConfirmed("uid-a", "n1"))
    assert world.binds(TaskSeen(with_claims("b", "data"))) == {"b": "n1"}


def test_a_volume_that_is_still_attached_counts_until_it_is_detached(world: World) -> None:
    world.step(
        *(AttachLimitsSeen(AttachLimits(f"n{at}", (("csi.example", int(at == 1)),))) for at in range(3))
    )
    for name in ("old", "new"):
        volume = make_volume(f"v-{name}", claim=name, driver="csi.example")
        world.step(*seen(make_claim(name, volume=f"v-{name}"), volume))
    attached = AttachmentSeen(Attachment("csi-1", "n1", "v-old", "csi.example"))
    assert world.binds(attached, TaskSeen(with_claims("a", "old"))) == {}, "as new it counts once more"
    world.step(TaskGone("uid-a"))
    assert world.binds(TaskSeen(with_claims("b", "new"))) == {}
    (report,) = (each for each in world.step(after=1.5) if isinstance(each, Report) and each.uid == "uid-b")
    assert "3 node(s) exceed max volume count" in report.message
    assert world.binds(AttachmentGone("csi-1")) == {"b": "n1"}


def test_a_volume_that_is_used_and_attached_counts_once(world: World) -> None:
    world.step(
        *(AttachLimitsSeen(AttachLimits(f"n{at}", (("csi.example", 2 * int(at == 1)),))) for at in range(3))
    )
    for at in range(2):
        volume = make_volume(f"v{at}", claim=f"c{at}", driver="csi.example")
        world.step(*seen(make_claim(f"c{at}", volume=f"v{at}"), volume))
    assert world.binds(TaskSeen(with_claims("a", "c0"))) == {"a": "n1"}
    world.step(BindConfirmed("uid-a", "n1"), AttachmentSeen(Attachment("csi-1", "n1", "v0", "csi.example")))
    assert world.binds(TaskSeen(with_claims("b", "c1"))) == {"b": "n1"}


# -- bookkeeping ---------------------------------------------------------------------------------------


def test_nothing_is_kept_of_pods_that_have_gone(world: World) -> None:
    state = world.engine._state
    for at in range(100):
        world.step(*seen(make_claim(f"c{at}", size=at + 1, storage_class="local")))
        world.step(TaskSeen(with_claims(f"a{at}", f"c{at}")))
    for at in range(100):
        world.step(TaskGone(f"uid-a{at}"), VolumeClaimGone(f"default/c{at}"))
    assert (len(state.volumes), len(state.cluster.volumes.storage.claims)) == (0, 0)
    assert len(state.cluster.volumes.reach) <= 64


# -- what tenants can make it cost -------------------------------------------------------------------


def test_a_claim_that_many_pods_share_costs_a_step_what_has_changed(world: World) -> None:
    """A job of thousands of pods that read one volume: none of them is resolved again when others start."""

    def work(pods: int) -> int:
        world = World()
        world.step(*seen(make_claim(volume="v", access_modes=("ReadWriteMany",)), make_volume(claim="data")))
        tasks = [with_claims(f"p{at}", "data", cpu=2, created=float(at)) for at in range(pods)]
        world.step(*map(TaskSeen, tasks))
        world.step(after=1.0)
        bound = replace(tasks[0], node="n0", phase="Succeeded")
        return operations(lambda: world.step(TaskSeen(bound), after=1.0))

    assert work(160) < 1.3 * work(40)


def test_claims_of_many_sizes_share_what_is_known_of_a_class_without_volumes(world: World) -> None:
    claims = [make_claim(f"c{at}", size=1 + at) for at in range(20)]
    world.step(*seen(*claims))
    world.step(*(TaskSeen(with_claims(f"p{at}", f"c{at}", cpu=99)) for at in range(20)))
    reach = world.engine._state.cluster.volumes.reach
    assert len(reach) == 20
    assert len({id(each.now) for each in reach.values()}) == 1


def test_binds_that_change_where_many_other_claims_get_volumes_take_several_steps(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of the first pods takes a volume that the claims of all others might get."""
    monkeypatch.setattr(scheduling_cycle, "TASKS_MOST", 50)
    claims = [make_claim(f"c{at}", storage_class="local", size=1) for at in range(6)]
    others = [make_claim(f"o{at}", storage_class="local", size=at + 2) for at in range(30)]
    volumes = [make_volume(f"v{at}", size=1, storage_class="local", nodes=["n0"]) for at in range(6)]
    world.step(*seen(*claims, *others, *volumes))
    waiting = [TaskSeen(with_claims(f"q{at}", f"o{at}", cpu=0.1, created=9.0)) for at in range(30)]
    world.step(*waiting)
    pods = [TaskSeen(with_claims(f"p{at}", f"c{at}", cpu=0.1, created=float(at))) for at in range(6)]
    made = [len(world.binds(*pods))]
    while (at := world.engine.next_step_at()) is not None and at <= world.now:
        made.append(len(world.binds()))
    assert made[:3] == [2, 2, 2], "two binds have 60 masks computed again"
