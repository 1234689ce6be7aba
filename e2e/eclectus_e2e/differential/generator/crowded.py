"""A random cluster whose few nodes are full, and pods that may evict others there.

Pods on nodes have all priorities, times of start that differ, and end as soon as they are evicted; some
PodDisruptionBudgets protect them.
"""

from random import Random

from eclectus_e2e.differential.generator.clusters import make_cluster, nodes_of
from eclectus_e2e.differential.generator.pods import make_pod
from eclectus_e2e.differential.generator.storage import claims_of
from eclectus_e2e.differential.generator.words import (
    APPS,
    LOW,
    NAMESPACES,
    NEVER_PREEMPTS,
    PLACED,
    PREEMPTS,
    Names,
    Object,
    chance,
)

_NODES, _PODS = range(1, 6), range(6, 21)
_PRIORITIES = (LOW, LOW, "", "", "", PLACED, PLACED, NEVER_PREEMPTS)


def make_crowded_cluster(seed: int) -> dict[str, Object]:
    """Its objects by their paths, budgets with their status; equal for equal seeds."""
    rng = Random(f"crowded {seed}")
    objects = make_cluster(seed, "x", _NODES, _PODS)
    pods = [each for path, each in objects.items() if "/pods/" in path]
    for pod, second in zip(pods, rng.sample(range(60), len(pods)), strict=True):
        pod["metadata"].pop("deletionTimestamp", None)
        pod["spec"] |= {"priorityClassName": rng.choice(_PRIORITIES), "terminationGracePeriodSeconds": 0}
        pod["status"] = {"phase": "Running", "startTime": f"2026-01-01T00:00:{second:02}Z"}
    for namespace in NAMESPACES:
        for at in range(rng.choice([0, 0, 1, 2])):
            path = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets/b{at}-x{seed}"
            objects[path] = _budget(rng, path.rpartition("/")[2])
    return objects


def make_preemptors(seed: int, objects: dict[str, Object], count: int) -> list[tuple[str, Object]]:
    """Pods with their namespaces, most of them of a priority that may evict others; equal for equal seeds."""
    rng, nodes = Random(f"preemptors {seed}"), nodes_of(objects)
    found = []
    for _ in range(count):
        namespace = rng.choice([*NAMESPACES])
        pod = make_pod(rng, Names(nodes, claims_of(objects, namespace)))
        pod["spec"].setdefault("priorityClassName", PREEMPTS)
        found.append((namespace, pod))
    return found


def _budget(rng: Random, name: str) -> Object:
    labels = {"app": rng.choice(APPS)} if chance(rng, 70) else {"tier": rng.choice("xy")}
    allowed = rng.choice([0, 0, 1, 2])
    return {
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": labels}, "maxUnavailable": allowed},
        "status": {
            "disruptionsAllowed": allowed,
            "currentHealthy": 9,
            "desiredHealthy": 9 - allowed,
            "expectedPods": 9,
            "observedGeneration": 1,
        },
    }
