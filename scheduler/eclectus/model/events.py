"""The input of the engine. Events state a level, not a change: a late or repeated event does no harm."""

from typing import Literal

from msgspec import Struct

from eclectus.model.job import Job
from eclectus.model.learned import LearnedNode
from eclectus.model.objects import Budget, Gang, GangKey, Node, Pairs, PodSelector, Task
from eclectus.model.pool import Pool
from eclectus.model.volumes import AttachLimits, Attachment, FreeStorage, StorageClass, Volume, VolumeClaim


class NodeSeen(Struct, frozen=True, gc=False, tag=True):
    """A node exists, as given."""

    node: Node


class NodeGone(Struct, frozen=True, gc=False, tag=True):
    """A node no longer exists."""

    name: str


class TaskSeen(Struct, frozen=True, gc=False, tag=True):
    """A pod exists, as given: of Eclectus or of another scheduler; pending, bound or ended."""

    task: Task


class TaskGone(Struct, frozen=True, gc=False, tag=True):
    """A pod no longer exists."""

    uid: str


class ProgressSaid(Struct, frozen=True, gc=False, tag=True):
    """A pod has said how much of its work is done, 0..1, by another way than its annotations."""

    uid: str
    progress: float


class BindConfirmed(Struct, frozen=True, gc=False, tag=True):
    """The API server has bound the pod to the node."""

    uid: str
    node: str


class BindRefused(Struct, frozen=True, gc=False, tag=True):
    """The pod is certainly not bound to the node: refused, or found unbound after an uncertain answer."""

    uid: str
    node: str
    reason: str


class NominateRefused(Struct, frozen=True, gc=False, tag=True):
    """The node could not be written into the pod's status: nobody else knows that its room is held."""

    uid: str
    node: str
    reason: str


class EvictRefused(Struct, frozen=True, gc=False, tag=True):
    """The pod was not deleted, and nobody tries any more."""

    uid: str
    reason: str


class BudgetSeen(Struct, frozen=True, gc=False, tag=True):
    """A PodDisruptionBudget exists, as given."""

    budget: Budget


class BudgetGone(Struct, frozen=True, gc=False, tag=True):
    """A PodDisruptionBudget no longer exists."""

    namespace: str
    name: str


class NamespaceSeen(Struct, frozen=True, gc=False, tag=True):
    """A namespace exists, with these labels."""

    name: str
    labels: Pairs = ()
    pool: str = ""  # the name of the Pool of its pods; empty: it names none


class NamespaceGone(Struct, frozen=True, gc=False, tag=True):
    """A namespace no longer exists."""

    name: str


class PodSelectorSeen(Struct, frozen=True, gc=False, tag=True):
    """A Service or a controller exists and selects pods, as given."""

    selector: PodSelector


class PodSelectorGone(Struct, frozen=True, gc=False, tag=True):
    """A Service or a controller no longer exists, or selects no pods."""

    kind: str
    namespace: str
    name: str


class VolumeClaimSeen(Struct, frozen=True, gc=False, tag=True):
    """A PersistentVolumeClaim exists, as given."""

    claim: VolumeClaim


class VolumeClaimGone(Struct, frozen=True, gc=False, tag=True):
    """A PersistentVolumeClaim no longer exists."""

    key: str  # namespace/name


class VolumeSeen(Struct, frozen=True, gc=False, tag=True):
    """A PersistentVolume exists, as given."""

    volume: Volume


class VolumeGone(Struct, frozen=True, gc=False, tag=True):
    """A PersistentVolume no longer exists."""

    name: str


class StorageClassSeen(Struct, frozen=True, gc=False, tag=True):
    """A StorageClass exists, as given."""

    storage_class: StorageClass


class StorageClassGone(Struct, frozen=True, gc=False, tag=True):
    """A StorageClass no longer exists."""

    name: str


class FreeStorageSeen(Struct, frozen=True, gc=False, tag=True):
    """A CSIStorageCapacity exists and says how much storage is free on some nodes, as given."""

    free: FreeStorage


class FreeStorageGone(Struct, frozen=True, gc=False, tag=True):
    """A CSIStorageCapacity no longer exists, or says nothing of any node."""

    key: str  # namespace/name


class StorageDriverSeen(Struct, frozen=True, gc=False, tag=True):
    """A CSIDriver exists: whether it publishes how much storage is free, and what it asks of nodes."""

    name: str
    publishes_capacity: bool
    must_be_installed: bool = False  # on a node, before a pod with volumes of it may run there


class StorageDriverGone(Struct, frozen=True, gc=False, tag=True):
    """A CSIDriver no longer exists."""

    name: str


class AttachLimitsSeen(Struct, frozen=True, gc=False, tag=True):
    """Which drivers are installed on a node, and how many volumes can be attached, as its CSINode says."""

    limits: AttachLimits


class AttachLimitsGone(Struct, frozen=True, gc=False, tag=True):
    """The CSINode of a node no longer exists: no drivers and no limits are known."""

    node: str


class AttachmentSeen(Struct, frozen=True, gc=False, tag=True):
    """A VolumeAttachment exists, as given."""

    attachment: Attachment


class AttachmentGone(Struct, frozen=True, gc=False, tag=True):
    """A VolumeAttachment no longer exists, or names no PersistentVolume."""

    name: str


class JobSeen(Struct, frozen=True, gc=False, tag=True):
    """A DAG job exists, as given."""

    job: Job


class JobGone(Struct, frozen=True, gc=False, tag=True):
    """A DAG job no longer exists."""

    uid: str


class GangSeen(Struct, frozen=True, gc=False, tag=True):
    """A PodGroup exists, as given."""

    gang: Gang


class GangGone(Struct, frozen=True, gc=False, tag=True):
    """A PodGroup no longer exists."""

    key: GangKey


class PoolSeen(Struct, frozen=True, gc=False, tag=True):
    """A Pool exists, as given. One that cannot be valid by itself is not seen, and counts as gone."""

    pool: Pool


class PoolGone(Struct, frozen=True, gc=False, tag=True):
    """A Pool no longer exists."""

    name: str


class LoadSeen(Struct, frozen=True, gc=False, tag=True):
    """The measured load of nodes: (node, share of its cpu in use, 0..1). Of others nothing is known."""

    loads: tuple[tuple[str, float], ...]


class NodeRecalled(Struct, frozen=True, gc=False, tag=True):
    """What was learned of a node earlier, by this process or another."""

    learned: LearnedNode


SolveStatus = Literal["optimal", "infeasible", "failed"]


class Solved(Struct, frozen=True, gc=False, tag=True):
    """The answer to the command Solve of this serial number, in later steps; a late one does no harm.

    `routes`: (origin, by way of, units). `failed`: nobody solves it, or nobody could in time.
    """

    serial: int
    status: SolveStatus
    routes: tuple[tuple[int, int, int], ...] = ()
    seconds: float = 0.0  # that the solver took


class Resumed(Struct, frozen=True, gc=False, tag=True):
    """The caches are complete and this process holds the lease: make decisions from now on."""


class Paused(Struct, frozen=True, gc=False, tag=True):
    """A cache is incomplete or another process holds the lease: follow events, make no decisions."""


class WaitLimitSeen(Struct, frozen=True, gc=False, tag=True):
    """The profile of this schedulerName has another waitLimit from now on, seconds; it had one before."""

    profile: str
    limit: float


class Reseeded(Struct, frozen=True, gc=False, tag=True):
    """The random numbers that policies draw begin anew from this seed, as on a tape that begins mid-run."""

    seed: int


class PodsListed(Struct, frozen=True, gc=False, tag=True):
    """A new list of all pods begins: one on it exists even if it had gone, as after a restore of etcd."""


_OfNodes = NodeSeen | NodeGone | LoadSeen | NodeRecalled
_OfPods = PodsListed | TaskSeen | TaskGone | ProgressSaid
_OfBinds = BindConfirmed | BindRefused | NominateRefused | EvictRefused
_OfClaims = VolumeClaimSeen | VolumeClaimGone | VolumeSeen | VolumeGone | AttachmentSeen | AttachmentGone
_OfStorage = StorageClassSeen | StorageClassGone | FreeStorageSeen | FreeStorageGone
_OfDrivers = StorageDriverSeen | StorageDriverGone | AttachLimitsSeen | AttachLimitsGone
_OfBudgets = BudgetSeen | BudgetGone
_OfSelectors = NamespaceSeen | NamespaceGone | PodSelectorSeen | PodSelectorGone
_OfJobs = GangSeen | GangGone | JobSeen | JobGone
_OfPools = PoolSeen | PoolGone
_OfCluster = _OfNodes | _OfPods | _OfBinds | _OfBudgets | _OfSelectors | _OfJobs | _OfPools
_OfObjects = _OfCluster | _OfClaims | _OfStorage | _OfDrivers

Event = _OfObjects | Solved | Resumed | Paused | Reseeded | WaitLimitSeen
