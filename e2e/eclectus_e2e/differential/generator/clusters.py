"""A random cluster, pods for it, and a later state of the same cluster."""

from copy import deepcopy
from random import Random

from eclectus_e2e.differential.generator.nodes import make_node
from eclectus_e2e.differential.generator.pods import make_pod
from eclectus_e2e.differential.generator.storage import claims_of, make_storage
from eclectus_e2e.differential.generator.words import DELETED, NAMESPACES, PLACED, Names, Object, chance

NODES_MOST, PLACED_MOST = 12, 16
_NODES = "/api/v1/nodes/"


def make_cluster(seed: int) -> dict[str, Object]:
    """Nodes, storage and pods on nodes, by the paths of the objects; equal for equal seeds.

    Names are those of the seed, so that nothing is mistaken for an object of the cluster before.
    """
    rng = Random(f"cluster {seed}")
    nodes = tuple(f"c{seed}-n{at}" for at in range(rng.randint(1, NODES_MOST)))
    objects = {_NODES + name: make_node(rng, name) for name in nodes}
    objects |= make_storage(rng, f"c{seed}", nodes)
    for at in range(rng.randint(0, PLACED_MOST)):
        namespace = rng.choice([*NAMESPACES])
        pod = _placed(rng, f"c{seed}-p{at}", Names(nodes, claims_of(objects, namespace)))
        objects[f"/api/v1/namespaces/{namespace}/pods/{pod['metadata']['name']}"] = pod
    return objects


def make_pods(seed: int, objects: dict[str, Object], count: int) -> list[tuple[str, Object]]:
    """Pods with their namespaces, to be asked about on this cluster; equal for equal seeds."""
    rng = Random(f"pods {seed}")
    nodes, found = nodes_of(objects), []
    for _ in range(count):
        namespace = rng.choice([*NAMESPACES])
        found.append((namespace, make_pod(rng, Names(nodes, claims_of(objects, namespace)))))
    return found


def changed(seed: int, objects: dict[str, Object]) -> dict[str, Object]:
    """The cluster some time later: a third of the nodes is another, some pods on nodes are gone."""
    rng, later = Random(f"change {seed}"), deepcopy(objects)
    for path in objects:
        if path.startswith(_NODES) and chance(rng, 35):
            later[path] = make_node(rng, path.removeprefix(_NODES))
        elif "/pods/" in path and chance(rng, 30):
            del later[path]
    return later


def nodes_of(objects: dict[str, Object]) -> tuple[str, ...]:
    """The names of its nodes."""
    return tuple(path.removeprefix(_NODES) for path in objects if path.startswith(_NODES))


def _placed(rng: Random, name: str, names: Names) -> Object:
    """A pod on a node, whatever its own rules say; every eighth is terminating."""
    pod = make_pod(rng, names)
    pod["metadata"]["name"] = name
    pod["spec"] |= {"nodeName": rng.choice(names.nodes), "priorityClassName": PLACED}
    if chance(rng, 12):
        pod["metadata"]["deletionTimestamp"] = DELETED
    return pod
