"""Random rules and preferences about other pods: affinity, anti-affinity, topology spread."""

from random import Random

from eclectus_e2e.differential.generator.words import APPS, HOST, NAMESPACES, ZONE, Object, chance, some

_KEYS = (ZONE, ZONE, HOST, HOST, "rack", "no-node-has-this")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_POLICIES = ("Honor", "Ignore")


def required(rng: Random) -> Object:
    """The required part of an affinity or anti-affinity: one term, sometimes two."""
    return {_REQUIRED: [_term(rng) for _ in range(rng.choice([1, 1, 2]))]}


def preferred(rng: Random) -> Object:
    """The preferred part: one to three weighted terms."""
    count = rng.randint(1, 3)
    return {
        _PREFERRED: [{"weight": rng.choice([1, 7, 100]), "podAffinityTerm": _term(rng)} for _ in range(count)]
    }


def spread(rng: Random) -> list[Object]:
    """One or two constraints; the API takes no two of one key and one consequence."""
    found = {}
    for _ in range(rng.choice([1, 1, 2])):
        constraint = _constraint(rng)
        found[constraint["topologyKey"], constraint["whenUnsatisfiable"]] = constraint
    return list(found.values())


def _constraint(rng: Random) -> Object:
    constraint: Object = {
        "topologyKey": rng.choice(_KEYS),
        "maxSkew": rng.choice([1, 1, 2, 3]),
        "whenUnsatisfiable": rng.choice(["DoNotSchedule", "ScheduleAnyway"]),
        **_selected(rng),
    }
    if constraint["whenUnsatisfiable"] == "DoNotSchedule" and chance(rng, 30):
        constraint["minDomains"] = rng.randint(1, 4)
    for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        if chance(rng, 40):
            constraint[policy] = rng.choice(_POLICIES)
    return constraint


def _term(rng: Random) -> Object:
    term: Object = {"topologyKey": rng.choice(_KEYS), **_selected(rng)}
    if chance(rng, 25):
        term["namespaces"] = some(rng, (*NAMESPACES, "no-such-namespace"), 2)
    if chance(rng, 25):
        term["namespaceSelector"] = rng.choice(
            [{}, {"matchLabels": {"team": "a"}}, {"matchLabels": {"env": "none"}}]
        )
    return term


def _selected(rng: Random) -> Object:
    """A selector, now and then with matchLabelKeys; rarely none, which selects no pod."""
    if chance(rng, 5):
        return {}
    if chance(rng, 10):
        return {"labelSelector": {}}
    if chance(rng, 15):
        operator = rng.choice(["In", "NotIn"])
        expression = {"key": "app", "operator": operator, "values": some(rng, APPS, 2)}
        return {"labelSelector": {"matchExpressions": [expression]}}
    selector: Object = {"labelSelector": {"matchLabels": {"app": rng.choice(APPS)}}}
    return selector | ({"matchLabelKeys": ["tier"]} if chance(rng, 15) else {})
