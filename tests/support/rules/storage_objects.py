"""Claims, volumes and StorageClasses in one line: `make_claim("data", volume="v1")` is bound to `v1`."""

from __future__ import annotations

from typing import Any

from builders import make_task
from eclectus.model.events import StorageClassSeen, VolumeClaimSeen, VolumeSeen
from eclectus.model.objects import Requirement, Task, Term, UsedClaim
from eclectus.model.volumes import StorageClass, Volume, VolumeClaim

GIB = 2**30
LATE = StorageClass("late", "csi.example", waits_for_consumer=True)
LOCAL = StorageClass("local", "kubernetes.io/no-provisioner", waits_for_consumer=True)
AT_ONCE = StorageClass("at-once", "csi.example")


def make_claim(name: str = "data", size: int = 1, volume: str = "", **fields: Any) -> VolumeClaim:
    """A claim of `default` for so many GiB, of the class `late`; with a volume it is bound to it."""
    known = {"storage_class": "late", "uid": f"uid-{name}", "access_modes": ("ReadWriteOnce",)}
    return VolumeClaim(
        "default", name, size=size * GIB, volume=volume, is_bound=bool(volume), **(known | fields)
    )


def make_volume(name: str = "v", size: int = 1, claim: str = "", **fields: Any) -> Volume:
    """A volume of so many GiB and the class `late`; free, or of this claim of `default`.

    `nodes` and `zone` are where it can be used: nodes by name, or those with this label `zone`.
    """
    known: dict[str, Any] = {"storage_class": "late", "access_modes": ("ReadWriteOnce",)}
    nodes, zone = fields.pop("nodes", None), fields.pop("zone", None)
    if nodes is not None:
        known["affinity"] = (in_term("kubernetes.io/hostname", *nodes),)
    if zone is not None:
        known["affinity"] = (in_term("zone", zone),)
    if claim:
        known |= {"claim": f"default/{claim}", "claim_uid": f"uid-{claim}"}
    return Volume(name, size=size * GIB, is_available=not claim, **(known | fields))


def in_term(key: str, *values: str) -> Term:
    """A term: the label has one of the values."""
    return Term((Requirement(key, "In", values),))


def named(name: str) -> dict[str, str]:
    """The labels of a node of this name."""
    return {"kubernetes.io/hostname": name}


def with_claims(name: str, *claims: str, own: bool = False, **fields: Any) -> Task:
    """A pod that uses these claims."""
    return make_task(name, claims=tuple(UsedClaim(each, own) for each in claims), **fields)


def seen(*objects: VolumeClaim | Volume | StorageClass) -> list[Any]:
    """The events of these objects."""
    events = {VolumeClaim: VolumeClaimSeen, Volume: VolumeSeen, StorageClass: StorageClassSeen}
    return [events[type(each)](each) for each in objects]
