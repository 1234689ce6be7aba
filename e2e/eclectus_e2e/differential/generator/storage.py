"""Random claims and volumes: bound, free of a volume, missing one, being deleted; attachments, limits, and
a driver that must be installed.

No claim can get a volume from the pod that asks: the scheduler's steps before such a bind would change the
cluster under the next question. tests/system/test_volumes.py has those.
"""

from random import Random

from eclectus_e2e.differential.generator.words import (
    AT_ONCE,
    DELETED,
    DRIVER,
    ELSEWHERE,
    HOST,
    LOCAL,
    NAMESPACES,
    ZONE,
    ZONES,
    Object,
    chance,
    some,
)

MISSING = "missing"
"""A claim that pods name and that does not exist."""
_KINDS = (
    "host",
    "zone",
    "zone-label",
    "csi",
    "csi",
    "plain",
    "exclusive",
    "unbound",
    "no-volume",
    "deleting",
)


def make_storage(rng: Random, cluster: str, nodes: tuple[str, ...]) -> dict[str, Object]:
    """Claims, volumes and attachments, with the cluster's name in theirs, CSINodes, perhaps a CSIDriver.

    By the paths of the objects.
    """
    objects: dict[str, Object] = {}
    for namespace in NAMESPACES:
        for at, kind in enumerate(rng.sample(_KINDS, rng.randint(0, 5))):
            reference = {"namespace": namespace, "name": f"{kind}-{at}-{cluster}"}
            objects |= _claim(rng, kind, reference, nodes)
    for node in nodes:
        if chance(rng, 40):
            driver = {"name": DRIVER, "nodeID": node, "allocatable": {"count": rng.randint(0, 2)}}
            objects[f"/apis/storage.k8s.io/v1/csinodes/{node}"] = {
                "metadata": {"name": node},
                "spec": {"drivers": [driver]},
            }
    objects |= _attachments(rng, cluster, objects, nodes)
    if chance(rng, 50):
        spec = {"attachRequired": True, "preventPodSchedulingIfMissing": chance(rng, 80)}
        objects[f"/apis/storage.k8s.io/v1/csidrivers/{DRIVER}"] = {"metadata": {"name": DRIVER}, "spec": spec}
    return objects


def claims_of(objects: dict[str, Object], namespace: str) -> tuple[str, ...]:
    """The names of a namespace's claims."""
    prefix = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims/"
    return tuple(path.removeprefix(prefix) for path in objects if path.startswith(prefix))


def _claim(rng: Random, kind: str, reference: Object, nodes: tuple[str, ...]) -> dict[str, Object]:
    """A claim, and its volume if it has one. `reference`: its namespace and name."""
    asked: Object = {"accessModes": [_mode(kind)], "resources": {"requests": {"storage": "1Gi"}}}
    claim: Object = {"metadata": {"name": reference["name"]}, "spec": asked}
    path = "/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}".format(**reference)
    if kind == "unbound":
        asked["storageClassName"] = rng.choice([LOCAL, ELSEWHERE, AT_ONCE])
        return {path: claim}
    volume = "{namespace}-{name}".format(**reference)
    asked |= {"storageClassName": "", "volumeName": volume}
    claim["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    if kind == "deleting":
        claim["metadata"]["deletionTimestamp"] = DELETED
    if kind == "no-volume":
        return {path: claim}
    return {path: claim, f"/api/v1/persistentvolumes/{volume}": _volume(rng, kind, reference, nodes)}


def _volume(rng: Random, kind: str, reference: Object, nodes: tuple[str, ...]) -> Object:
    name = "{namespace}-{name}".format(**reference)
    spec: Object = {
        "storageClassName": "",
        "accessModes": [_mode(kind)],
        "capacity": {"storage": "1Gi"},
        "persistentVolumeReclaimPolicy": "Retain",
        "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **reference},
    }
    if kind == "csi":
        spec["csi"] = {"driver": DRIVER, "volumeHandle": name}
    else:
        spec["nfs"] = {"server": "files.example.com", "path": "/"}
    metadata: Object = {"name": name}
    if kind == "zone-label":
        metadata["labels"] = {ZONE: "__".join(some(rng, ZONES, 2))}
    elif kind in ("host", "zone"):
        key, values = (HOST, [rng.choice(nodes)]) if kind == "host" else (ZONE, some(rng, ZONES, 2))
        term = {"matchExpressions": [{"key": key, "operator": "In", "values": values}]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [term]}}
    return {"metadata": metadata, "spec": spec}


def _attachments(
    rng: Random, cluster: str, volumes: dict[str, Object], nodes: tuple[str, ...]
) -> dict[str, Object]:
    """Some volumes, used or not, are attached to a node, by their driver or another; one does not exist."""
    names = [path.rpartition("/")[2] for path in volumes if "/persistentvolumes/" in path]
    objects: dict[str, Object] = {}
    for name in (*names, f"{MISSING}-{cluster}"):
        if chance(rng, 30):
            spec = {
                "attacher": rng.choice([DRIVER, DRIVER, "other.example.com"]),
                "nodeName": rng.choice(nodes),
                "source": {"persistentVolumeName": name},
            }
            objects[f"/apis/storage.k8s.io/v1/volumeattachments/{name}"] = {
                "metadata": {"name": name},
                "spec": spec,
            }
    return objects


def _mode(kind: str) -> str:
    return "ReadWriteOncePod" if kind == "exclusive" else "ReadWriteOnce"
