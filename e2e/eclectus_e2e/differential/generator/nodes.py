"""A random node: sizes, labels, taints, cordons and images."""

from random import Random

from eclectus_e2e.differential.generator.words import GPU, HOST, IMAGES, LABELS, TAINTS, Object, chance


def make_node(rng: Random, name: str) -> Object:
    """A node as the API takes it; every tenth has no labels at all."""
    labels = {} if chance(rng, 10) else _labels(rng, name)
    spec: Object = {"taints": _taints(rng)}
    if chance(rng, 10):
        spec["unschedulable"] = True
    room = _room(rng)
    images = [{"names": [image], "sizeBytes": size} for image, size in IMAGES.items() if chance(rng, 40)]
    status = {"allocatable": room, "capacity": room, "images": images}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": status}


def _labels(rng: Random, name: str) -> dict[str, str]:
    labels = {} if chance(rng, 10) else {HOST: name}
    return labels | {key: rng.choice(values) for key, values in LABELS.items() if chance(rng, 75)}


def _taints(rng: Random) -> list[Object]:
    keys = [key for key in TAINTS if chance(rng, 12)]
    effects = ("NoSchedule", "NoExecute", "PreferNoSchedule", "PreferNoSchedule")
    return [{"key": key, "value": rng.choice("ab"), "effect": rng.choice(effects)} for key in keys]


def _room(rng: Random) -> dict[str, str]:
    room = {
        "cpu": rng.choice(["500m", "2", "4", "4", "8"]),
        "memory": rng.choice(["1Gi", "4Gi", "8Gi", "16Gi"]),
        "pods": rng.choice(["2", "5", "110", "110"]),
    }
    if chance(rng, 80):
        room["ephemeral-storage"] = rng.choice(["1Gi", "20Gi"])
    if chance(rng, 25):
        room[GPU] = rng.choice(["1", "2"])
    if chance(rng, 15):
        room["hugepages-2Mi"] = rng.choice(["64Mi", "256Mi"])
    return room
