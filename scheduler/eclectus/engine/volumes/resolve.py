"""What the claims of a pod, as they are now, ask of nodes.

A pod's volumes name claims, and each pod of a StatefulSet has claims of its own. Rules read what the claims
amount to instead, so that such pods share a class: the node affinity and zones of bound volumes, and what
unbound claims ask for. Messages are those of kube-scheduler 1.36.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from eclectus.cluster.volumes.storage import Storage
from eclectus.feasibility.rules.volume_zone import ZONE_LABELS
from eclectus.feasibility.volumes.candidates import fits_claim
from eclectus.model.objects import NO_VOLUME_USE, Task, UnboundClaim, VolumeNeeds, VolumeUse
from eclectus.model.volumes import READ_WRITE_ONCE_POD, Volume, VolumeClaim

NOT_BOUND = "pod has unbound immediate PersistentVolumeClaims"
ZONE_SEPARATOR = "__"  # between the zones of a label of a volume that is in several


class Resolved(Struct, frozen=True, gc=False):
    """`problem`: why the pod is blocked, in kube-scheduler's words; `unbound`: keys, as in `needs`."""

    needs: VolumeNeeds
    use: VolumeUse = NO_VOLUME_USE
    unbound: tuple[str, ...] = ()
    problem: str = ""


def resolve(storage: Storage, task: Task, is_shared: Callable[[str], bool]) -> Resolved:
    """`is_shared`: whether other pods, waiting or on nodes, use the claim with this key."""
    problem = next(_problems(storage, task), "")
    if problem:
        return Resolved(VolumeNeeds(is_blocked=True), problem=problem)
    own = {f"{task.namespace}/{each.name}": each.is_own for each in task.claims}
    claims = [storage.claims[key] for key in own]
    bound = [claim for claim in claims if claim.is_bound]
    unbound = sorted((claim for claim in claims if not claim.is_bound), key=lambda claim: claim.size)
    volumes = [storage.volumes[claim.volume] for claim in bound]
    zoned = [each for each, claim in zip(volumes, bound, strict=True) if not own[claim.key]]
    needs = VolumeNeeds(
        affinity=tuple(dict.fromkeys(each.affinity for each in volumes if each.affinity is not None)),
        zones=tuple(dict.fromkeys(zone for each in zoned for zone in _zones(each))),
        unbound=tuple(_asked(storage, claim, is_shared) for claim in unbound),
    )
    use = _use(storage, claims, is_shared, own)
    return Resolved(needs, use, tuple(claim.key for claim in unbound))


# -- what blocks a pod -----------------------------------------------------------------------------------


def _problems(storage: Storage, task: Task) -> Iterator[str]:
    """In the order of kube-scheduler's plugins: VolumeRestrictions, VolumeBinding, VolumeZone."""
    named = [(each, storage.claims.get(f"{task.namespace}/{each.name}")) for each in task.claims]
    for each, claim in named:
        if claim is None and not each.is_own:
            yield f'persistentvolumeclaim "{each.name}" not found'
    for each, claim in named:
        if claim is None:
            wait = "waiting for ephemeral volume controller to create the persistentvolumeclaim"
            yield f'{wait} "{each.name}"'
        else:
            yield from _problems_of(claim, task, is_own=each.is_own)
    known = [claim for _, claim in named if claim is not None]
    if any(not claim.is_bound and not _waits_for_pod(storage, claim) for claim in known):
        yield NOT_BOUND
    for claim in known:
        if claim.is_bound and claim.volume not in storage.volumes:
            yield f'persistentvolume "{claim.volume}" not found'


def _problems_of(claim: VolumeClaim, task: Task, *, is_own: bool) -> Iterator[str]:
    name = claim.name
    if claim.is_lost:
        yield f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{claim.volume}"'
    if claim.deleting:
        yield f'persistentvolumeclaim "{name}" is being deleted'
    if is_own and claim.owner != task.uid:
        yield f"PVC {claim.key} was not created for pod {task.namespace}/{task.name} (pod is not owner)"


def _waits_for_pod(storage: Storage, claim: VolumeClaim) -> bool:
    """Whether the claim is bound when a pod is placed. One that names a volume is bound by the controller."""
    storage_class = storage.classes.get(claim.storage_class)
    return storage_class is not None and storage_class.waits_for_consumer and not claim.volume


# -- what claims ask for -----------------------------------------------------------------------------------


def _asked(storage: Storage, claim: VolumeClaim, is_shared: Callable[[str], bool]) -> UnboundClaim:
    asked = UnboundClaim(
        storage_class=claim.storage_class,
        size=claim.size,
        access_modes=claim.access_modes,
        volume_mode=claim.volume_mode,
        selector=claim.selector,
        attributes_class=claim.attributes_class,
        selected_node=claim.selected_node,
        shared=claim.key if is_shared(claim.key) else "",
    )
    reserved = next((each.name for each in storage.reserved_for(claim) if fits_claim(each, asked)), "")
    return replace(asked, volume=reserved) if reserved else asked


def _zones(volume: Volume) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The zones and regions of a volume; a label with an empty one is ignored, as in kube-scheduler."""
    for key, value in volume.labels:
        if key in ZONE_LABELS:
            zones = sorted({zone.strip() for zone in value.split(ZONE_SEPARATOR)})
            if all(zones):
                yield key, tuple(zones)


def _use(
    storage: Storage, claims: Sequence[VolumeClaim], is_shared: Callable[[str], bool], own: dict[str, bool]
) -> VolumeUse:
    shared = {claim.key for claim in claims if is_shared(claim.key)}
    volumes = {claim.key: volume for claim in claims if (volume := storage.attached_as(claim.key))}
    exclusive = (
        claim.key
        for claim in claims
        if claim.key in shared and READ_WRITE_ONCE_POD in claim.access_modes and not own[claim.key]
    )
    alone = {volume for key, volume in volumes.items() if key not in shared}
    return VolumeUse(
        exclusive=tuple(exclusive),
        attached=tuple(sorted(Counter(volume.driver for volume in alone).items())),
        attached_shared=tuple(sorted((each.driver, key) for key, each in volumes.items() if key in shared)),
    )
