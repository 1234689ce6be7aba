"""A random cluster, pods for it, and a later state of the same cluster."""

from copy import deepcopy
from random import Random

from eclectus_e2e.differential.generator.nodes import make_node
from eclectus_e2e.differential.generator.pods import make_pod
from eclectus_e2e.differential.generator.storage import claims_of, make_storage
from eclectus_e2e.differential.generator.words import DELETED, NAMESPACES, PLACED, Names, Object, chance

NODES, PODS = range(1, 13), range(17)  # how many a cluster may have
_NODES = "/api/v1/nodes/"
_Port = tuple[str, str, str, int]  # node, address, protocol and number of a host port


def make_cluster(
    seed: int, kind: str = "c", node_counts: range = NODES, pod_counts: range = PODS
) -> dict[str, Object]:
    """Nodes, storage and pods on nodes, by the paths of the objects; equal for equal seeds.

    Names begin with the kind and the seed, so that nothing is mistaken for an object of another cluster.
    """
    prefix, rng = f"{kind}{seed}", Random(f"cluster {seed}")
    nodes = tuple(f"{prefix}-n{at}" for at in range(rng.choice(node_counts)))
    objects = {_NODES + name: make_node(rng, name) for name in nodes}
    objects |= make_storage(rng, prefix, nodes)
    held: set[_Port] = set()
    for at in range(rng.choice(pod_counts)):
        namespace = rng.choice([*NAMESPACES])
        pod = _placed(rng, f"{prefix}-p{at}", Names(nodes, claims_of(objects, namespace)))
        _leave_held_ports(pod["spec"], held)
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


def _leave_held_ports(spec: Object, held: set[_Port]) -> None:
    """Take from a pod on a node the host ports in `held`, and add its own.

    kube-scheduler forgets a port when the first of two pods that hold it leaves, so that its answers would
    depend on what was there before; see docs/differences.md.
    """
    for container in (*spec["containers"], *spec.get("initContainers", ())):
        ports = []
        for port in container.pop("ports", ()):
            key = (spec["nodeName"], port.get("hostIP", "0.0.0.0"), port["protocol"], port["hostPort"])  # noqa: S104
            if key not in held:
                ports.append(port)
                held.add(key)
        if ports:
            container["ports"] = ports
