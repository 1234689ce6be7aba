"""A random pod: what it requests, and about two of the rules that a pod can have."""

from collections.abc import Callable
from random import Random

from eclectus_e2e.differential.generator import node_rules, pod_rules
from eclectus_e2e.differential.generator.storage import MISSING
from eclectus_e2e.differential.generator.words import (
    APPS,
    GPU,
    IMAGES,
    LOW,
    NEVER_PREEMPTS,
    Names,
    Object,
    chance,
)

_CPU, _MEMORY = ("", "100m", "500m", "1", "3"), ("", "100Mi", "1Gi", "3Gi")


def make_pod(rng: Random, names: Names) -> Object:
    """A pod without name and namespace."""
    spec: Object = {
        "containers": [_container(rng, "main")],
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 600,  # on a node without kubelet a deleted pod stays so long
    }
    for percent, add in FEATURES:
        if chance(rng, percent):
            add(rng, spec, names)
    labels = {"app": rng.choice(APPS)} if chance(rng, 85) else {}
    if chance(rng, 40):
        labels["tier"] = rng.choice("xy")
    return {"metadata": {"labels": labels}, "spec": spec}


def _container(rng: Random, name: str, **fields: object) -> Object:
    amounts = {"cpu": rng.choice(_CPU), "memory": rng.choice(_MEMORY)}
    amounts = {resource: amount for resource, amount in amounts.items() if amount}
    return {"name": name, "image": "pause:1", "resources": {"requests": amounts}, **fields}


# -- what a pod may have, each with how often -----------------------------------------------------


def _sidecar(rng: Random, spec: Object, names: Names) -> None:
    del names
    spec.setdefault("initContainers", []).append(_container(rng, "sidecar", restartPolicy="Always"))


def _init_container(rng: Random, spec: Object, names: Names) -> None:
    del names
    spec.setdefault("initContainers", []).append(_container(rng, "init"))


def _second_container(rng: Random, spec: Object, names: Names) -> None:
    del names
    spec["containers"].append(_container(rng, "second"))


def _pod_level_resources(rng: Random, spec: Object, names: Names) -> None:
    """No container then requests the resource: the API demands that the pod's is not below their sum."""
    del names
    resource, amount = rng.choice([("cpu", "600m"), ("cpu", "9"), ("memory", "300Mi"), ("memory", "14Gi")])
    for container in (*spec["containers"], *spec.get("initContainers", ())):
        container["resources"]["requests"].pop(resource, None)
    spec["resources"] = {"requests": {resource: amount}}


def _other_resource(rng: Random, spec: Object, names: Names) -> None:
    del names
    resources = spec["containers"][0]["resources"]
    name, amount = rng.choice(
        [
            (GPU, "1"),
            (GPU, "2"),
            ("ephemeral-storage", "2Gi"),
            ("hugepages-2Mi", "128Mi"),
            ("example.com/no", "1"),
        ]
    )
    resources["requests"][name] = amount
    if name == "hugepages-2Mi":  # only beside a request for cpu or memory
        resources["requests"].setdefault("cpu", "100m")
    resources["limits"] = {name: amount}


def _host_port(rng: Random, spec: Object, names: Names) -> None:
    del names
    container = rng.choice([spec["containers"][0], *spec.get("initContainers", ())])
    port: Object = {"containerPort": 80, "hostPort": rng.choice([8080, 8081])}
    port |= {"protocol": rng.choice(["TCP", "TCP", "UDP"])}
    container["ports"] = [port | rng.choice([{}, {"hostIP": "10.0.0.1"}, {"hostIP": "0.0.0.0"}])]  # noqa: S104


def _image(rng: Random, spec: Object, names: Names) -> None:
    del names
    for container in spec["containers"]:
        container["image"] = rng.choice([*IMAGES])


def _node_selector(rng: Random, spec: Object, names: Names) -> None:
    del names
    spec["nodeSelector"] = node_rules.node_selector(rng)


def _node_affinity(rng: Random, spec: Object, names: Names) -> None:
    _affinity(spec, "nodeAffinity").update(node_rules.required(rng, names))


def _preferred_nodes(rng: Random, spec: Object, names: Names) -> None:
    _affinity(spec, "nodeAffinity").update(node_rules.preferred(rng, names))


def _tolerations(rng: Random, spec: Object, names: Names) -> None:
    del names
    spec["tolerations"] = node_rules.tolerations(rng)


def _pod_affinity(rng: Random, spec: Object, names: Names) -> None:
    del names
    _affinity(spec, "podAffinity").update(pod_rules.required(rng))


def _preferred_pods(rng: Random, spec: Object, names: Names) -> None:
    del names
    _affinity(spec, "podAffinity").update(pod_rules.preferred(rng))


def _anti_affinity(rng: Random, spec: Object, names: Names) -> None:
    del names
    _affinity(spec, "podAntiAffinity").update(pod_rules.required(rng))


def _avoided_pods(rng: Random, spec: Object, names: Names) -> None:
    del names
    _affinity(spec, "podAntiAffinity").update(pod_rules.preferred(rng))


def _spread(rng: Random, spec: Object, names: Names) -> None:
    del names
    spec["topologySpreadConstraints"] = pod_rules.spread(rng)


def _volumes(rng: Random, spec: Object, names: Names) -> None:
    claims = rng.sample((*names.claims, MISSING), min(rng.choice([1, 1, 2]), len(names.claims) + 1))
    spec["volumes"] = [
        {"name": f"v{at}", "persistentVolumeClaim": {"claimName": claim}} for at, claim in enumerate(claims)
    ]


def _priority(rng: Random, spec: Object, names: Names) -> None:
    del names
    spec["priorityClassName"] = rng.choice([LOW, NEVER_PREEMPTS])


def _affinity(spec: Object, part: str) -> Object:
    found: Object = spec.setdefault("affinity", {}).setdefault(part, {})
    return found


FEATURES: tuple[tuple[float, Callable[[Random, Object, Names], None]], ...] = (
    (10, _sidecar),
    (10, _init_container),
    (15, _second_container),
    (5, _pod_level_resources),  # after the containers
    (10, _other_resource),
    (12, _host_port),
    (15, _image),
    (8, _node_selector),
    (8, _node_affinity),
    (15, _preferred_nodes),
    (25, _tolerations),
    (8, _pod_affinity),
    (12, _preferred_pods),
    (10, _anti_affinity),
    (12, _avoided_pods),
    (18, _spread),
    (10, _volumes),
    (15, _priority),
)
"""How often of a hundred pods, and what is added to its spec."""
