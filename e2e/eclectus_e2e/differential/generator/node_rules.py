"""Random rules of a pod about nodes: selectors, node affinity, tolerations."""

from random import Random

from eclectus_e2e.differential.generator.words import LABELS, TAINTS, Names, Object, chance, some

_NUMBERS = "cores"


def node_selector(rng: Random) -> dict[str, str]:
    """One label that a node must have; rarely one that no node has."""
    key = rng.choice([*LABELS])
    return {key: rng.choice([*LABELS[key], "nowhere"])}


def required(rng: Random, names: Names) -> Object:
    """One or two terms, of which one must hold."""
    terms = [_term(rng, names) for _ in range(rng.choice([1, 1, 2]))]
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}


def preferred(rng: Random, names: Names) -> Object:
    """One to three weighted terms."""
    terms = [
        {"weight": rng.choice([1, 10, 100]), "preference": _term(rng, names)}
        for _ in range(rng.randint(1, 3))
    ]
    return {"preferredDuringSchedulingIgnoredDuringExecution": terms}


def pinned(spec: Object, node: str) -> Object:
    """A copy of a pod's spec with one more condition in each required term: this node."""
    here = {"key": "metadata.name", "operator": "In", "values": [node]}
    affinity = spec.get("affinity", {})
    about_nodes = affinity.get("nodeAffinity", {})
    key = "requiredDuringSchedulingIgnoredDuringExecution"
    terms = about_nodes.get(key, {}).get("nodeSelectorTerms", [{}])
    own = [{**term, "matchFields": [*term.get("matchFields", ()), here]} for term in terms]
    required_now = {key: {"nodeSelectorTerms": own}}
    return {**spec, "affinity": {**affinity, "nodeAffinity": {**about_nodes, **required_now}}}


def tolerations(rng: Random) -> list[Object]:
    """One or two; of any key, by value or by existence."""
    return [_toleration(rng) for _ in range(rng.choice([1, 1, 2]))]


def _toleration(rng: Random) -> Object:
    effect = rng.choice(["", "", "NoSchedule", "PreferNoSchedule", "NoExecute"])
    toleration: Object = {"effect": effect} if effect else {}
    if chance(rng, 20):
        return {"operator": "Exists", **toleration}
    toleration["key"] = rng.choice(TAINTS)
    if chance(rng, 50):
        return {"operator": "Exists", **toleration}
    return {"operator": "Equal", "value": rng.choice("ab"), **toleration}


def _term(rng: Random, names: Names) -> Object:
    if chance(rng, 15):
        return {"matchFields": [_name(rng, names) for _ in range(rng.choice([1, 1, 1, 2]))]}
    return {"matchExpressions": [_expression(rng) for _ in range(rng.choice([1, 1, 2]))]}


def _name(rng: Random, names: Names) -> Object:
    operator = rng.choice(["In", "In", "NotIn"])
    return {"key": "metadata.name", "operator": operator, "values": [rng.choice([*names.nodes, "gone"])]}


def _expression(rng: Random) -> Object:
    if chance(rng, 20):
        return {
            "key": _NUMBERS,
            "operator": rng.choice(["Gt", "Lt"]),
            "values": [rng.choice(["4", "10", "64"])],
        }
    key = rng.choice([*LABELS])
    if chance(rng, 30):
        return {"key": key, "operator": rng.choice(["Exists", "DoesNotExist"])}
    return {"key": key, "operator": rng.choice(["In", "In", "NotIn"]), "values": some(rng, LABELS[key], 2)}
