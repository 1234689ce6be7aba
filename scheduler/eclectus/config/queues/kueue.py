"""Kueue's ClusterQueues, Cohorts, LocalQueues and ResourceFlavors as Pools.

A ClusterQueue becomes a Pool that has its nominal quota as minimum; a cohort becomes the Pool above, which
holds at most what its members have together, as it is theirs alone that they lend. A ClusterQueue of no
cohort uses nobody's quota but its own, which is its maximum too.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from eclectus.api.pool import MAX_KINDS, MAX_NAMESPACES, MAX_WEIGHT
from eclectus.config.queues.reading import KINDS, Amounts, Draft, Fields, Findings, Object, number, shares
from eclectus.kube.requests import counted

GROUP = "kueue.x-k8s.io"
STOP = ("None", "Hold", "HoldAndDrain")
_LENT = "what a pool does not need is lent to others; preemption.minShareSeconds takes it back"
_BY_PROFILE = "the profile's `relieve: preemption` evicts lower priorities of the same pool, for all pools"


@dataclass
class _Quotas:
    """What a ClusterQueue or a Cohort states, thousandths by resource."""

    nominal: Amounts = field(default_factory=dict)
    flavors: dict[str, _Quotas] = field(
        default_factory=dict
    )  # of groups with several, by name; path in where
    where: str = ""  # the group, of a flavor
    borrowed: dict[str, int | None] = field(default_factory=dict)  # None: any amount, of one flavor at least

    def add(self, resource: str, nominal: int, borrowed: int | None) -> None:
        """Add the quota of one flavor."""
        before = self.borrowed.get(resource, 0)
        self.nominal[resource] = self.nominal.get(resource, 0) + nominal
        self.borrowed[resource] = None if before is None or borrowed is None else before + borrowed

    def most(self, nominal: Amounts) -> Amounts:
        """These amounts with what may be borrowed, of the resources where that is limited."""
        limited = {name: extra for name, extra in self.borrowed.items() if extra is not None}
        return {name: nominal[name] + extra for name, extra in limited.items()}


@dataclass
class _Node:
    """A ClusterQueue or a Cohort."""

    where: str
    parent: str  # a cohort
    quotas: _Quotas
    spec: dict[str, Any]


class Kueue:
    """Reads objects one by one, then makes the Pools of all."""

    def __init__(self, found: Findings) -> None:
        self._found = found
        self._queues: dict[str, _Node] = {}
        self._cohorts: dict[str, _Node] = {}
        self._bound: dict[str, dict[str, str]] = defaultdict(dict)  # ClusterQueue -> namespace -> where
        self._selectors: dict[str, Any] = {}  # of ClusterQueues; None: no namespace
        self._labels: dict[str, dict[str, Any]] = {}  # of nodes, by ResourceFlavor

    def read(self, each: Object) -> None:
        """Take an object of Kueue's group."""
        readers = {
            "ClusterQueue": self._read_queue,
            "Cohort": self._read_cohort,
            "LocalQueue": self._read_local_queue,
            "ResourceFlavor": self._read_flavor,
        }
        if each.kind not in readers:
            self._found.note(each.path, "Pools have nothing like this kind")
            return
        spec = each.below("spec")
        readers[each.kind](each, spec)
        spec.close()
        each.end()

    def drafts(self) -> Iterator[Draft]:
        """The Pools: ClusterQueues, then cohorts, those included that are named alone."""
        for name, node in self._queues.items():
            least = node.quotas.nominal
            most = node.quotas.most(least) if node.parent else least
            is_open = self._selectors[name] is not None
            namespaces = tuple(sorted(self._bound.get(name, ()))) if is_open else ()
            spec = node.spec | _limits(least, most) | self._admitted(name, namespaces)
            for share, entries in self._by_node(node).items():
                spec.setdefault(share, {})["byNode"] = entries
            yield _draft("ClusterQueue", name, node, spec, namespaces)
        yield from self._cohort_drafts()
        for queue in sorted(self._bound.keys() - self._queues.keys()):
            for where in self._bound[queue].values():
                self._found.note(where, f"there is no ClusterQueue {queue!r} in what was given")

    def _read_queue(self, each: Object, spec: Fields) -> None:
        parent = spec.text("cohortName") or spec.text("cohort")  # the latter in v1beta1
        node = _Node(each.path, parent, self._quotas(spec), {**_weight(spec), "policy": "fifo"})
        if each.name in self._queues:
            self._found.problems.add(each.path, "there are two of this name")
        self._queues[each.name] = node
        self._selectors[each.name] = spec.selector("namespaceSelector")
        if spec.choice("queueingStrategy", ("BestEffortFIFO", "StrictFIFO")) == "StrictFIFO":
            reason = "jobs start by age, but an older one that finds no room stops no younger one"
            self._found.note(spec.at("queueingStrategy"), reason)
        self._read_preemption(spec.below("preemption"), node)
        stop = spec.choice("stopPolicy", STOP)
        if stop != "None":
            node.spec["suspend"] = True
        if stop == "HoldAndDrain":
            self._found.note(spec.at("stopPolicy"), "suspend evicts nothing: delete the pods that run")
        for name in ("admissionChecks", "admissionChecksStrategy"):
            spec.note(name, "nothing is checked before: a pod starts when a node has room for it")
        for name in ("flavorFungibility", "concurrentAdmissionPolicy"):
            spec.note(name, KINDS)
        spec.note("admissionScope", "shares are those of the moment, whatever was used before")

    def _read_preemption(self, rules: Fields, node: _Node) -> None:
        known = ("Never", "LowerPriority", "Any")
        reclaims = rules.choice("reclaimWithinCohort", known)
        if reclaims != "Never" and node.parent:
            node.spec["preemption"] = {"minShareSeconds": 0}
        elif reclaims != "Never":
            self._found.note(rules.at("reclaimWithinCohort"), "without a cohort there is nobody to take from")
        if reclaims == "LowerPriority":
            reason = "priorities count inside a pool alone: minima are taken back from pods of any priority"
            self._found.note(rules.at("reclaimWithinCohort"), reason)
        rules.note("withinClusterQueue", _BY_PROFILE)
        rules.note(
            "borrowWithinCohort", "priorities count inside a pool alone; fairShareSeconds takes a share"
        )
        rules.close()

    def _read_cohort(self, each: Object, spec: Fields) -> None:
        parent = spec.text("parentName") or spec.text("parent")  # the latter in v1alpha1
        if each.name in self._cohorts:
            self._found.problems.add(each.path, "there are two of this name")
        self._cohorts[each.name] = _Node(each.path, parent, self._quotas(spec), _weight(spec))

    def _read_local_queue(self, each: Object, spec: Fields) -> None:
        namespace, queue = each.namespace(), spec.text("clusterQueue")
        if not queue:
            spec.problem("clusterQueue", "is missing")
        elif namespace:
            self._bound[queue][namespace] = spec.at("clusterQueue")
        if spec.choice("stopPolicy", STOP) != "None":
            self._found.note(spec.at("stopPolicy"), "a Pool is suspended as a whole")
        spec.note("fairSharing", "namespaces of one Pool have no weights; give each a Pool below it")
        spec.note("wallTimePolicy", "a Pool limits what is held at once, and not for how long")

    def _read_flavor(self, each: Object, spec: Fields) -> None:
        labels = spec.below("nodeLabels")
        self._labels[each.name] = {name: labels.text(name) for name in labels.names()}
        if self._labels[each.name]:
            self._found.note(spec.at("nodeLabels"), f"{KINDS}; write it into the pods")
        spec.note("nodeTaints", f"{KINDS}; write it into the pods")
        spec.note("tolerations", "nothing is added to pods; write them into the pods")
        spec.note("topologyName", "pods that belong together are placed by their own affinity")
        spec.note(
            "resourceWeights", "siblings are compared by the resource of which the next pod requests most"
        )

    def _quotas(self, spec: Fields) -> _Quotas:
        quotas = _Quotas()
        for group in spec.items("resourceGroups"):
            group.drop("coveredResources")  # the flavors repeat them
            flavors = list(group.items("flavors"))
            for flavor in flavors:
                own = _Quotas(where=flavor.path)
                name = flavor.text("name")
                if len(flavors) > 1:
                    quotas.flavors[name] = own
                for resource in flavor.items("resources"):
                    self._read_quota(resource, quotas, own)
                flavor.close()
            group.close()
        return quotas

    def _read_quota(self, resource: Fields, *all_quotas: _Quotas) -> None:
        for field_name in ("name", "nominalQuota"):
            if field_name not in resource:
                resource.problem(field_name, "is missing")
        name = resource.text("name")
        nominal, borrowed = resource.amount("nominalQuota"), resource.amount("borrowingLimit")
        if name and not counted(name):
            self._found.note(resource.at("name"), f"pods request no resource {name!r}")
        elif name and nominal is not None:
            for each in all_quotas:
                each.add(name, nominal, borrowed)
        resource.note("lendingLimit", _LENT)
        resource.close()

    def _by_node(self, node: _Node) -> dict[str, list[dict[str, Any]]]:
        """Minima and maxima on the nodes of each flavor, by the label that its ResourceFlavor names."""
        found: dict[str, list[dict[str, Any]]] = {}
        known = set[tuple[str, str]]()
        for name, quotas in node.quotas.flavors.items():
            labels = self._labels.get(name, {})
            key, value = next(iter(labels.items()), ("", ""))
            if not labels or (key, value) in known or len(known) == MAX_KINDS:
                why = "its nodes have a label of their own in no ResourceFlavor that was given"
                self._found.note(quotas.where, f"{name} is a part of the sum alone: {why}")
                continue
            known.add((key, value))
            if len(labels) > 1:
                self._found.note(quotas.where, f"its nodes are those with the label {key} alone")
            most = quotas.most(quotas.nominal) if node.parent else quotas.nominal
            for share, amounts in (("minShare", quotas.nominal), ("maxShare", most)):
                if amounts:
                    entry = {"key": key, "value": value, **shares(amounts)}
                    found.setdefault(share, []).append(entry)
        return found

    def _admitted(self, name: str, bound: tuple[str, ...]) -> dict[str, Any]:
        """Whose pods may name it: what its selector selects; of all namespaces, those with a LocalQueue."""
        selector = self._selectors[name]
        if selector is None:
            for where in self._bound.get(name, {}).values():
                self._found.note(where, f"{name} has no namespaceSelector, by which Kueue admits nothing")
            return {}
        if selector or not 0 < len(bound) <= MAX_NAMESPACES:
            return {"namespaces": {"selector": selector}}
        return {"namespaces": {"names": list(bound)}}

    def _cohort_drafts(self) -> Iterator[Draft]:
        for each in (*self._queues.values(), *self._cohorts.values()):
            if each.parent and each.parent not in self._cohorts:  # without an object, or quota of its own
                self._cohorts[each.parent] = _Node(each.where, "", _Quotas(), {})
        for name, node in self._cohorts.items():
            for flavor in node.quotas.flavors:
                where = node.quotas.flavors[flavor].where
                self._found.note(where, f"{flavor} is a part of the sum of the cohort alone")
            least = self._total(name)
            most = node.quotas.most(least) if node.parent else least
            yield _draft("Cohort", name, node, node.spec | _limits(least, most))

    def _total(self, cohort: str) -> Amounts:
        """What a cohort has with all below it; cycles are somebody else's problem."""
        total, seen, left = Counter[str](), set[str](), [cohort]
        while left:
            name = left.pop()
            if name in seen:
                continue
            seen.add(name)
            total.update(self._cohorts[name].quotas.nominal)
            for each in self._queues.values():
                if each.parent == name:
                    total.update(each.quotas.nominal)
            left += [child for child, each in self._cohorts.items() if each.parent == name]
        return dict(total)


def _draft(
    kind: str, name: str, node: _Node, spec: dict[str, Any], namespaces: tuple[str, ...] = ()
) -> Draft:
    parent = f"Cohort {node.parent}" if node.parent else ""
    second = f"{name}-{'queue' if kind == 'ClusterQueue' else 'cohort'}"
    return Draft(f"{kind} {name}", (name, second), node.where, spec, parent, namespaces=namespaces)


def _limits(least: Amounts, most: Amounts) -> dict[str, Any]:
    stated = {"minShare": least, "maxShare": most}
    return {field_name: shares(amounts) for field_name, amounts in stated.items() if amounts}


def _weight(spec: Fields) -> dict[str, Any]:
    sharing = spec.below("fairSharing")
    amount = sharing.amount("weight")
    if amount is not None and amount > MAX_WEIGHT * 1000:
        sharing.problem("weight", f"is above {MAX_WEIGHT:g}")
    sharing.close()
    return {} if amount is None or amount == 1000 else {"weight": number(amount / 1000)}
