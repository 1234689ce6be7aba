"""Scheduling constraints of a pod and taints of a node, from the API's form to the model's.

Topology spread and inter-pod affinity depend, unlike the rest of a Spec, on the pod's namespace and labels
too: whether a pod counts for its own constraint, for example. Pods of one template agree in this, so they
share a class all the same.

Two tables have the features of pods that Eclectus does not support, by name, each with words for users.
REFUSED are hard constraints that no filter implements: a pod that asks for one is reported with the name of
the feature and never placed in violation of it. IGNORED are soft: the pod is placed as if it had not asked,
and a Kubernetes event says so. Documentation and its tests are made from these two tables. To support a
feature, add its rule in feasibility/rules/ and delete its entry here.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar, cast

from msgspec import Struct
from msgspec.structs import replace

from eclectus.kube import objects
from eclectus.kube.requests import FieldError
from eclectus.model import objects as model

_NODE_AFFINITY = "spec.affinity.nodeAffinity"
_NODE_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_LABEL_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
_TOLERATION_OPERATORS = ("Equal", "Exists", "Lt", "Gt")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def pairs(mapping: dict[str, str]) -> model.Pairs:
    """A mapping as sorted pairs."""
    return tuple(sorted(mapping.items()))


def required_terms(affinity: objects.NodeAffinity) -> tuple[model.Term, ...] | None:
    """Required node affinity; None if there is none. Raises FieldError."""
    rules = affinity.required_during_scheduling_ignored_during_execution
    return None if rules is None else terms(rules, _NODE_AFFINITY)


def terms(selector: objects.NodeSelector, field: str) -> tuple[model.Term, ...]:
    """The terms of a node selector; `field` has it, for errors. Raises FieldError."""
    return tuple(_term(term, field) for term in selector.node_selector_terms)


def preferences(affinity: objects.NodeAffinity) -> tuple[model.Preference, ...]:
    """Preferred node affinity, without terms that have no weight or no content. Raises FieldError."""
    return tuple(
        model.Preference(each.weight, _term(each.preference, _NODE_AFFINITY))
        for each in affinity.preferred_during_scheduling_ignored_during_execution
        if each.weight and (each.preference.match_expressions or each.preference.match_fields)
    )


def tolerations(spec: objects.PodSpec) -> tuple[model.Toleration, ...]:
    """Tolerations. One with an unknown operator tolerates nothing, as in kube-scheduler."""
    return tuple(
        model.Toleration(each.key, cast(Any, each.operator or "Equal"), each.value, each.effect)
        for each in spec.tolerations
        if (each.operator or "Equal") in _TOLERATION_OPERATORS
    )


def host_ports(spec: objects.PodSpec) -> tuple[model.HostPort, ...]:
    """Host ports of app containers and sidecars. Those of init containers are free again after the start."""
    containers = (*spec.containers, *(init for init in spec.init_containers if init.sidecar))
    return tuple(
        model.HostPort(port.host_port, port.protocol or "TCP", port.host_ip or "0.0.0.0")  # noqa: S104 — the API's default
        for container in containers
        for port in container.ports
        if port.host_port > 0
    )


def taints(node: objects.Node) -> tuple[model.Taint, ...]:
    """Taints in their order, without those whose effect is unknown."""
    return tuple(
        model.Taint(each.key, each.value, cast(Any, each.effect))
        for each in node.spec.taints
        if each.effect in _EFFECTS
    )


def label_selector(selector: objects.LabelSelector) -> tuple[model.Requirement, ...]:
    """A label selector. An expression with an unknown operator is left out, so that more pods match."""
    known = (each for each in selector.match_expressions if each.operator in _LABEL_OPERATORS)
    return (
        *(model.Requirement(key, "In", (value,)) for key, value in pairs(selector.match_labels)),
        *(model.Requirement(each.key, cast(Any, each.operator), each.values) for each in known),
    )


def _term(term: objects.NodeSelectorTerm, field: str) -> model.Term:
    return model.Term(
        tuple(_requirement(each, f"{field} matchExpressions") for each in term.match_expressions),
        tuple(_requirement(each, f"{field} matchFields") for each in term.match_fields),
    )


def _requirement(expression: objects.Expression, field: str) -> model.Requirement:
    if expression.operator not in _NODE_OPERATORS:
        raise FieldError(
            f"{field} {expression.key}",
            f"operator {expression.operator!r} is unknown; it must be one of {', '.join(_NODE_OPERATORS)}",
        )
    return model.Requirement(expression.key, cast(Any, expression.operator), expression.values)


_T = TypeVar("_T")
_NO_POD = (model.Requirement("", "In", ()),)


def with_pod_rules(spec: model.Spec, pod: objects.Pod) -> model.Spec:
    """The Spec of the pod with its rules about other pods; the same for nearly all pods, which have none."""
    if pod.spec.affinity is None and not pod.spec.topology_spread_constraints:
        return spec
    rules, spread_preferred = spread(pod)
    affinity = pod.spec.affinity or objects.Affinity()
    namespace, labels = pod.metadata.namespace, pod.metadata.labels
    near, apart = _terms(affinity.pod_affinity, pod), _terms(affinity.pod_anti_affinity, pod)
    apart = tuple(term for term in apart if term.selector is not _NO_POD)  # it keeps no pod away
    keys = (*(each.topology_key for each in rules), *(term.topology_key for term in near))
    return replace(
        spec,
        topology_keys=tuple(dict.fromkeys(keys)),
        spread=rules,
        affinity_terms=near,
        matches_itself=bool(near)
        and all(term.covers(namespace) and model.selects(term.selector, labels) for term in near),
        own_anti_affinity=apart,
        preferred_spread=spread_preferred[:MAX_POD_RULES],
        preferred_terms=_preferred(affinity, pod),
    )


def spread(pod: objects.Pod) -> tuple[tuple[model.SpreadConstraint, ...], tuple[model.SpreadConstraint, ...]]:
    """The topology spread constraints with DoNotSchedule, and those with ScheduleAnyway.

    The values of matchLabelKeys are part of the selector; API servers since 1.34 have written them into it.
    """
    hard, preferred = list[model.SpreadConstraint](), list[model.SpreadConstraint]()
    for each in pod.spec.topology_spread_constraints:
        found = preferred if each.when_unsatisfiable == "ScheduleAnyway" else hard
        found.append(_constraint(each, pod))
    return tuple(hard), tuple(preferred)


def _preferred(affinity: objects.Affinity, pod: objects.Pod) -> tuple[model.WeightedTerm, ...]:
    """Preferred pod affinity and, with weights below 0, anti-affinity: the `MAX_POD_RULES` heaviest terms.

    Left out are those that match no pod.
    """
    found = [
        model.WeightedTerm(sign * each.weight, _pod_term(each.pod_affinity_term, pod))
        for sign, part in ((1, affinity.pod_affinity), (-1, affinity.pod_anti_affinity))
        for each in (() if part is None else part.preferred_during_scheduling_ignored_during_execution)
        if each.pod_affinity_term.label_selector is not None
    ]
    heaviest = sorted(found, key=lambda each: -abs(each.weight))
    return _counted(heaviest, lambda each: each.term)


def _counted(terms: Iterable[_T], term_of: Callable[[_T], model.PodAffinityTerm]) -> tuple[_T, ...]:
    """The first terms, as many as count of one pod.

    A pod that waits with more required ones is refused (`REFUSED`). One on a node, which another
    scheduler has placed there, could else make each pod that comes be compared with thousands.
    """
    found, selectors = list[_T](), 0
    for term in terms:
        selectors += term_of(term).namespace_selector is not None
        if term_of(term).namespace_selector is None or selectors <= MAX_NAMESPACE_SELECTORS:
            found.append(term)
    return tuple(found[:MAX_POD_RULES])


def _terms(affinity: objects.PodAffinity | None, pod: objects.Pod) -> tuple[model.PodAffinityTerm, ...]:
    """The required terms that count. One without a label selector matches no pod."""
    if affinity is None:
        return ()
    terms = affinity.required_during_scheduling_ignored_during_execution
    return _counted((_pod_term(term, pod) for term in terms), lambda term: term)


def _pod_term(term: objects.PodAffinityTerm, pod: objects.Pod) -> model.PodAffinityTerm:
    selector = _NO_POD if term.label_selector is None else label_selector(term.label_selector)
    listed = tuple(sorted(term.namespaces))
    if term.namespace_selector is None:
        return model.PodAffinityTerm(term.topology_key, selector, listed or (pod.metadata.namespace,))
    others = label_selector(term.namespace_selector)
    if not others:  # an empty selector selects every namespace
        return model.PodAffinityTerm(term.topology_key, selector)
    return model.PodAffinityTerm(term.topology_key, selector, listed, others)


def _constraint(each: objects.SpreadConstraint, pod: objects.Pod) -> model.SpreadConstraint:
    labels, selector = pod.metadata.labels, None
    if each.label_selector is not None:
        stated = label_selector(each.label_selector)
        keys = (key for key in each.match_label_keys if key in labels)
        merged = (model.Requirement(key, "In", (labels[key],)) for key in keys)
        selector = tuple(dict.fromkeys((*stated, *merged)))
    return model.SpreadConstraint(
        each.topology_key,
        pod.metadata.namespace,
        selector,
        selector is not None and model.selects(selector, labels),
        each.max_skew,
        each.min_domains or 1,
        each.node_affinity_policy != "Ignore",
        each.node_taints_policy == "Honor",
    )


# -- features that are not supported -----------------------------------------------------------------

IsUsed = Callable[[objects.PodSpec], bool]
MAX_POD_RULES = 32
MAX_NAMESPACE_SELECTORS = 8  # of required terms, and of preferred ones: each may name thousands of namespaces
MAX_NAMES = 4  # in a message
MAX_CLAIMS = 256  # no node attaches so many volumes; each is looked for on all nodes


class Feature(Struct, frozen=True):
    """What a user must know of a feature that is not supported.

    `is_used`: whether a pod uses it. `names`: what in the pod uses it, by the names that the pod gives.
    """

    words: str
    is_used: IsUsed
    names: Callable[[objects.PodSpec], tuple[str, ...]] | None = None

    def title(self, name: str, spec: objects.PodSpec) -> str:
        """The name of the feature, with what in this pod uses it."""
        if self.names is None:
            return name
        first, others = self.names(spec)[:MAX_NAMES], self.names(spec)[MAX_NAMES:]
        return f"{name} ({', '.join(first)}{', ...' if others else ''})"


def unsupported(spec: objects.PodSpec) -> tuple[str, ...]:
    """The REFUSED features that the pod uses, as its message names them; empty for most pods."""
    # By parts, because nearly all pods use none: volumes are looked at only where there are some.
    features = REFUSED if spec.volumes else _OF_A_POD
    return tuple(each.title(name, spec) for name, each in features.items() if each.is_used(spec))


def ignored(spec: objects.PodSpec) -> tuple[str, ...]:
    """The names of the IGNORED features that the pod uses; empty for most pods."""
    if spec.affinity is None and not spec.topology_spread_constraints:
        return ()
    return tuple(name for name, each in IGNORED.items() if each.is_used(spec))


def _pod_terms(spec: objects.PodSpec, *, preferred: bool) -> list[objects.PodAffinityTerm]:
    """The terms of pod affinity and anti-affinity: the preferred ones, or the required ones."""
    if spec.affinity is None:
        return []
    parts = [each for each in (spec.affinity.pod_affinity, spec.affinity.pod_anti_affinity) if each]
    if preferred:
        weighted = (each.preferred_during_scheduling_ignored_during_execution for each in parts)
        return [each.pod_affinity_term for terms in weighted for each in terms]
    return [term for part in parts for term in part.required_during_scheduling_ignored_during_execution]


def _spread(spec: objects.PodSpec, *, preferred: bool) -> int:
    constraints = spec.topology_spread_constraints
    return sum((each.when_unsatisfiable == "ScheduleAnyway") == preferred for each in constraints)


def _has_many_selectors(spec: objects.PodSpec, *, preferred: bool) -> bool:
    selectors = (term.namespace_selector for term in _pod_terms(spec, preferred=preferred))
    count = sum(each is not None and bool(each.match_labels or each.match_expressions) for each in selectors)
    return count > MAX_NAMESPACE_SELECTORS


def _volume(field: str) -> IsUsed:
    return lambda spec: any(getattr(volume, field) is not None for volume in spec.volumes)


_OF_A_POD: Mapping[str, Feature] = {
    f"more than {MAX_POD_RULES} rules about other pods": Feature(
        "Terms of required pod affinity and anti-affinity, and topology spread constraints: each is compared "
        "with every kind of pod that comes.",
        lambda spec: len(_pod_terms(spec, preferred=False)) + _spread(spec, preferred=False) > MAX_POD_RULES,
    ),
    f"more than {MAX_NAMESPACE_SELECTORS} required terms with a namespaceSelector": Feature(
        "Each may select thousands of namespaces. One term may list namespaces, or select them by several "
        "values of a label; an empty selector selects all and does not count.",
        lambda spec: _has_many_selectors(spec, preferred=False),
    ),
    "resource claims": Feature(
        "Devices of Dynamic Resource Allocation are not allocated; extended resources are.",
        lambda spec: bool(spec.resource_claims),
        names=lambda spec: tuple(claim.name for claim in spec.resource_claims),
    ),
    "a group that is no PodGroup": Feature(
        "`spec.workloadRef` of Kubernetes 1.35, or a `spec.schedulingGroup` without `podGroupName`: which "
        "pods must start together is not known.",
        lambda spec: (
            spec.workload_ref is not None
            or (spec.scheduling_group is not None and not spec.scheduling_group.pod_group_name)
        ),
    ),
    # Both need nodes that declare the feature (NodeDeclaredFeatures, KEP-5328).
    "user namespaces on the host network": Feature(
        "Which nodes support it is not known.", lambda spec: spec.host_network and spec.host_users is False
    ),
    "restart rules with RestartAllContainers": Feature(
        "Which nodes support it is not known.",
        lambda spec: any(
            rule.action == "RestartAllContainers"
            for container in (*spec.containers, *spec.init_containers)
            for rule in container.restart_policy_rules
        ),
    ),
}
_VOLUME_FIELDS = dict(
    zip(objects.Volume.__struct_fields__, objects.Volume.__struct_encode_fields__, strict=True)
)
_VOLUMES = {
    f"more than {MAX_CLAIMS} PersistentVolumeClaims": Feature(
        "Each claim is looked for on all nodes, and no node attaches so many volumes.",
        lambda spec: (
            sum(bool(each.persistent_volume_claim or each.ephemeral) for each in spec.volumes) > MAX_CLAIMS
        ),
    ),
    **{
        f"{name} volumes": Feature(
            "This type of volume can be limited in number or bound to a zone.", _volume(field)
        )
        for field, name in _VOLUME_FIELDS.items()
        if field not in ("name", "persistent_volume_claim", "ephemeral", "image")
    },
}

REFUSED: Mapping[str, Feature] = {**_OF_A_POD, **_VOLUMES}
"""Name -> what it means for the user. A pod that uses one is not placed."""

IGNORED: Mapping[str, Feature] = {
    f"more than {MAX_POD_RULES} preferences about other pods": Feature(
        f"Of preferred terms of pod affinity and anti-affinity the {MAX_POD_RULES} heaviest count, of "
        "topology spread constraints with ScheduleAnyway the first.",
        lambda spec: (
            max(_spread(spec, preferred=True), len(_pod_terms(spec, preferred=True))) > MAX_POD_RULES
        ),
    ),
    f"more than {MAX_NAMESPACE_SELECTORS} preferred terms with a namespaceSelector": Feature(
        f"The {MAX_NAMESPACE_SELECTORS} heaviest of them count.",
        lambda spec: _has_many_selectors(spec, preferred=True),
    ),
}
"""Name -> what it means for the user. A pod that uses one is placed, and an event for its class says so."""
