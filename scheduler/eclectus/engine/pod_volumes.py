"""The volumes of pods that wait: their specs follow their claims, and binds carry steps for unbound claims.

A pod's volumes name claims, and each pod of a StatefulSet has claims of its own. Rules read what the claims
amount to instead, so that such pods share a class: the node affinity and zones of bound volumes, and what
unbound claims ask for. Messages are those of kube-scheduler 1.37.

A pod that waits is found by its claims, so that a claim that changes costs only the pods that use it.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from eclectus.cluster.node_volumes import claim_keys
from eclectus.cluster.nodes import Cluster
from eclectus.cluster.storage import Decision, Storage
from eclectus.feasibility.rules.volumes import ZONE_LABELS
from eclectus.feasibility.volume_reaches import Reaches, fits_claim
from eclectus.model.commands import AwaitVolume, ReserveVolume, SelectNode, VolumeStep
from eclectus.model.objects import NO_VOLUME_USE, Task, UnboundClaim, VolumeNeeds, VolumeUse
from eclectus.model.volumes import READ_WRITE_ONCE_POD, AttachedVolume, Volume, VolumeClaim

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
    attached = {key: volume for key in own if (volume := storage.attached_as(key))}
    drivers = {volume.driver for volume in attached.values()} & storage.must_be_installed
    needs = VolumeNeeds(
        drivers=tuple(sorted(drivers)),
        affinity=tuple(dict.fromkeys(each.affinity for each in volumes if each.affinity is not None)),
        zones=tuple(dict.fromkeys(zone for each in zoned for zone in _zones(each))),
        unbound=tuple(_asked(storage, claim, is_shared) for claim in unbound),
    )
    use = _use(claims, attached, is_shared, own)
    return Resolved(needs, use, tuple(claim.key for claim in unbound))


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
    claims: Sequence[VolumeClaim],
    volumes: Mapping[str, AttachedVolume],
    is_shared: Callable[[str], bool],
    own: dict[str, bool],
) -> VolumeUse:
    shared = {claim.key for claim in claims if is_shared(claim.key)}
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


class _Waiting(Struct, frozen=True, gc=False):
    """A pod that waits, as it was resolved."""

    keys: tuple[str, ...]
    resolved: Resolved
    reach: int  # -1: it has no unbound claims
    watched: tuple[str, ...]  # keys of claims whose users its rules read


class PodVolumes:
    """Pods that wait, by the claims that they use. Costs nothing for pods without claims.

    `pending`: uid -> task, as the engine keeps it; `is_placed`: whether the pod of a uid holds room
    on a node.
    """

    def __init__(
        self, cluster: Cluster, pending: Mapping[str, Task], is_placed: Callable[[str], bool]
    ) -> None:
        self._volumes = cluster.volumes
        self._storage = cluster.volumes.storage
        self._pending = pending
        self._is_placed = is_placed
        self.reaches = Reaches(cluster)
        self._waiting: dict[str, _Waiting] = {}
        self.waiting: Mapping[str, object] = self._waiting  # by uid, of the pods with claims
        self._by_key: dict[str, dict[str, None]] = {}  # key of a claim -> uids of pods that wait and use it
        self._stale: dict[str, None] = {}  # keys of claims for which a second pod has begun or ceased to wait
        self._binding: dict[str, tuple[str, ...]] = {}
        self.binding: Mapping[str, object] = self._binding  # uid of a pod being bound -> unbound claims
        self._waits: dict[str, int] = {}  # key of a decided claim -> pods whose binds are under way with it

    def __len__(self) -> int:
        """Pods in the index."""
        return len(self._waiting)

    def resolved(self, task: Task) -> Task:
        """A pod with claims that waits, with what they ask of nodes in its spec."""
        uid, keys = task.uid, tuple(claim_keys(task))
        if uid not in self._waiting:
            for key in keys:
                users = self._by_key.setdefault(key, {})
                users[uid] = None
                self._users_changed(key, len(users) - 1, len(users))
        found = resolve(self._storage, task, lambda key: self._is_shared(key, uid))
        self._replace(uid, keys, found)
        needs = replace(found.needs, reach=self._waiting[uid].reach)
        if (needs, found.use) == (task.spec.volumes, task.spec.volume_use):
            return task
        return replace(task, spec=replace(task.spec, volumes=needs, volume_use=found.use))

    def discard(self, uid: str) -> None:
        """A pod that waited does so no more."""
        waiting = self._waiting[uid]
        self._release(waiting)
        del self._waiting[uid]
        for key in waiting.keys:
            users = self._by_key[key]
            del users[uid]
            self._users_changed(key, len(users) + 1, len(users))
            if not users:
                del self._by_key[key]

    def changed(self) -> list[Task]:
        """After the events of a step: the pods whose claims, or the users of whose claims, have changed."""
        changed, classes = self._storage.take_changed()
        for key in changed:
            self._volumes.claim_changed(key)
        # Where several pods wait for a claim they share it, whatever else uses it.
        used = self._volumes.claim_users.take_changed()
        used = {key: None for key in used if len(self._by_key.get(key, ())) == 1}
        keys = {**changed, **used, **self._stale}
        self._stale = {}
        if classes:
            keys |= dict.fromkeys(key for key in self._by_key if self._class_of(key) in classes)
        self.reaches.follow_events()
        uids = dict.fromkeys(uid for key in keys for uid in self._by_key.get(key, ()))
        return [self._pending[uid] for uid in uids if uid in self._pending]

    def problem(self, uid: str) -> str:
        """Why no node will do for a pod before one of its claims changes; empty if some node might."""
        waiting = self._waiting.get(uid)
        return "" if waiting is None else waiting.resolved.problem

    def steps_before(self, task: Task, row: int, node: str) -> tuple[VolumeStep, ...]:
        """What is done to the claims of a pod with claims before its bind; from now on it is decided."""
        waiting = self._waiting[task.uid]
        unbound = waiting.resolved.unbound
        if not unbound:
            return ()
        volumes = self.reaches.matching.plan(waiting.resolved.needs.unbound, row)
        for key, volume in zip(unbound, volumes, strict=True):
            self._waits[key] = self._waits.get(key, 0) + 1
            if key not in self._storage.decisions:  # otherwise for another pod that uses it too
                self._storage.decide(key, Decision(node, volume))
        self._binding[task.uid] = unbound
        self.reaches.follow_bind()
        writes = (step for key in unbound for step in self._writes(key))
        return (*writes, *(self._wait_for(key) for key in unbound))

    def bind_ended(self, uid: str) -> None:
        """The pod is bound or gone, or its bind was refused; no error if nothing was decided for it."""
        for key in self._binding.pop(uid, ()):
            self._waits[key] -= 1
            if not self._waits[key]:
                del self._waits[key]
                self._storage.end_decision(key)

    def bind_undone(self, uid: str) -> None:
        """A bind of this cycle was not sent; other pods may have the volumes at once."""
        if uid in self._binding:
            self.bind_ended(uid)
            self.reaches.follow_bind()

    def _writes(self, key: str) -> Iterator[VolumeStep]:
        """Nothing if an earlier bind has written it already."""
        claim, decision = self._storage.claims[key], self._storage.decisions[key]
        if not decision.volume:
            if claim.selected_node != decision.node:
                yield SelectNode(claim.namespace, claim.name, claim.uid, decision.node)
        elif self._storage.volumes[decision.volume].claim_uid != claim.uid:
            yield ReserveVolume(decision.volume, claim.namespace, claim.name, claim.uid)

    def _wait_for(self, key: str) -> AwaitVolume:
        claim, decision = self._storage.claims[key], self._storage.decisions[key]
        node = "" if decision.volume else decision.node
        return AwaitVolume(claim.namespace, claim.name, claim.uid, decision.volume, node)

    def _is_shared(self, key: str, uid: str) -> bool:
        """Whether another pod, waiting or on a node, uses the claim. This one may hold room on a node too."""
        return len(self._by_key[key]) > 1 or self._volumes.claim_users.pods(key) > self._is_placed(uid)

    def _users_changed(self, key: str, before: int, now: int) -> None:
        """So many pods waited for the claim before, and so many do now; one alone may share it no longer."""
        if min(before, now) == 1:
            self._stale[key] = None
            self._storage.has_news = True

    def _class_of(self, key: str) -> str:
        claim = self._storage.claims.get(key)
        return "" if claim is None else claim.storage_class

    def _replace(self, uid: str, keys: tuple[str, ...], found: Resolved) -> None:
        unbound = found.needs.unbound
        reach = self.reaches.hold(unbound) if unbound else -1
        watched = (*found.use.exclusive, *(each.shared for each in unbound if each.shared))
        for key in watched:
            self._volumes.claim_users.contend(key, 1)
        before = self._waiting.get(uid)
        self._waiting[uid] = _Waiting(keys, found, reach, watched)
        if before is not None:
            self._release(before)

    def _release(self, waiting: _Waiting) -> None:
        if waiting.reach >= 0:
            self.reaches.release(waiting.reach)
        for key in waiting.watched:
            self._volumes.claim_users.contend(key, -1)
