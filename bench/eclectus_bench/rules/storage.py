"""Rules about volumes: each measured pod has a claim of its own, which exists from just before the pod."""

from collections.abc import Sequence

from eclectus.model.events import AttachLimitsSeen, Event, StorageClassSeen, VolumeClaimSeen, VolumeSeen
from eclectus.model.objects import Requirement, Task, Term, UsedClaim
from eclectus.model.volumes import NO_PROVISIONER, AttachLimits, StorageClass, Volume, VolumeClaim
from eclectus_bench.rules.rule import EventsOf, Rule
from eclectus_bench.steps.driver import GIB, HOSTNAME, ZONE, make_task, node_name

DRIVER, LOCAL, LATE = "csi.example", "local", "late"
MODES = ("ReadWriteOnce",)
VOLUMES_ON_A_NODE = 39


def _task(number: int) -> Task:
    return make_task(f"volumes-{number}", claims=(UsedClaim(_claim_name(number)),))


def _claim_name(number: int) -> str:
    return f"claim-{number}"


def _claim(number: int, storage_class: str = "", volume: str = "") -> VolumeClaim:
    name = _claim_name(number)
    return VolumeClaim(
        "bench",
        name,
        f"uid-{name}",
        storage_class=storage_class,
        size=GIB,
        access_modes=MODES,
        volume=volume,
        is_bound=bool(volume),
    )


def _volume(name: str, key: str = "", value: str = "", *, claim: int | None = None) -> Volume:
    """A volume for the nodes with this label; bound to the claim of this number, or free and `local`."""
    return Volume(
        name,
        storage_class=LOCAL if claim is None else "",
        size=GIB,
        access_modes=MODES,
        affinity=(Term((Requirement(key, "In", (value,)),)),) if key else None,
        driver="" if claim is None else DRIVER,
        is_available=claim is None,
        claim="" if claim is None else f"bench/{_claim_name(claim)}",
        claim_uid="" if claim is None else f"uid-{_claim_name(claim)}",
    )


# -- what comes with a pod -------------------------------------------------------------------------------


def _bound_in_zone(number: int) -> Sequence[Event]:
    volume = _volume(f"volume-{number}", ZONE, f"zone-{number % 3}", claim=number)
    return VolumeSeen(volume), VolumeClaimSeen(_claim(number, volume=volume.name))


def _bound_anywhere(number: int) -> Sequence[Event]:
    volume = _volume(f"volume-{number}", claim=number)
    return VolumeSeen(volume), VolumeClaimSeen(_claim(number, volume=volume.name))


def _unbound(storage_class: str) -> EventsOf:
    return lambda number: (VolumeClaimSeen(_claim(number, storage_class)),)


# -- what is there, and what changes ---------------------------------------------------------------------


def _limits(nodes: int) -> Sequence[Event]:
    limits = ((DRIVER, VOLUMES_ON_A_NODE),)
    return [AttachLimitsSeen(AttachLimits(node_name(at), limits)) for at in range(nodes)]


def _provisioner(nodes: int) -> Sequence[Event]:
    zone = Term((Requirement(ZONE, "In", ("zone-0", "zone-1")),))
    return [StorageClassSeen(StorageClass(LATE, DRIVER, waits_for_consumer=True, topologies=(zone,)))]


def _local_volumes(nodes: int) -> Sequence[Event]:
    """One on every second node."""
    volumes = [VolumeSeen(_local(at)) for at in range(0, nodes, 2)]
    return [StorageClassSeen(StorageClass(LOCAL, NO_PROVISIONER, waits_for_consumer=True)), *volumes]


def _local(at: int) -> Volume:
    return _volume(f"local-{at}", HOSTNAME, node_name(at))


def _another_local_volume(number: int) -> Sequence[Event]:
    return (VolumeSeen(_local(2 * number + 1)),)


def _limit_changes(number: int) -> Sequence[Event]:
    limits = ((DRIVER, VOLUMES_ON_A_NODE - 1),)
    return (AttachLimitsSeen(AttachLimits(node_name(number), limits)),)


RULES = (
    Rule("bound volumes, by zone", _task, with_pod=_bound_in_zone),
    Rule("volumes on a node", _task, there=_limits, with_pod=_bound_anywhere, change=_limit_changes),
    Rule("volumes to provision, by zone", _task, there=_provisioner, with_pod=_unbound(LATE)),
    Rule(
        "free volumes, by node",
        _task,
        there=_local_volumes,
        with_pod=_unbound(LOCAL),
        change=_another_local_volume,
        grows="which free volume each node would give is found anew for all nodes",
    ),
)
