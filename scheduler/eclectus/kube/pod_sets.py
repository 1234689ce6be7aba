"""Objects of the API that stand for sets of pods, in the model. Their other fields are skipped.

PodGroups have two APIs: Kubernetes' own (KEP-4671; since 1.36, behind the feature gate GenericWorkload), and
that of the coscheduling plug-in of kubernetes-sigs/scheduler-plugins, which many job operators use.

A Service or controller without a selector, or with an empty one, says nothing about pods, and one that wants
no pods has none that wait: a Deployment keeps ten ReplicaSets of its past. The selector of all these is empty
in the model.
"""

from typing import Generic, TypeVar

from msgspec import Raw, field
from msgspec.json import Decoder

from eclectus.kube.constraints import label_selector
from eclectus.kube.objects import ApiObject, LabelSelector, Metadata, Specified, decode
from eclectus.model.objects import Budget, Gang, GangKey, PodSelector

# -- PodGroups -------------------------------------------------------------------------------------

KUBERNETES, COSCHEDULING = "scheduling.k8s.io", "scheduling.x-k8s.io"  # groups of the two APIs
KUBERNETES_VERSIONS = ("v1", "v1beta1", "v1alpha3", "v1alpha2")  # newest first; one or more are served
COSCHEDULING_VERSIONS = ("v1alpha1",)
POD_GROUP, POD_GROUPS = "PodGroup", "podgroups"  # kind and resource

COSCHEDULING_LABEL = f"{COSCHEDULING}/pod-group"  # of a pod: the name of its PodGroup


class _GangPolicy(ApiObject, frozen=True):
    min_count: int


class _SchedulingPolicy(ApiObject, frozen=True):
    """Without `gang` it is the basic policy: each pod starts by itself."""

    gang: _GangPolicy | None = None


class _PodGroupSpec(ApiObject, frozen=True):
    scheduling_policy: _SchedulingPolicy = _SchedulingPolicy()


class _CoschedulingSpec(ApiObject, frozen=True):
    min_member: int = 1


_POD_GROUP = Decoder(Specified[_PodGroupSpec])
_COSCHEDULING_POD_GROUP = Decoder(Specified[_CoschedulingSpec])


def gang_from(raw: bytes | Raw) -> Gang:
    """Kubernetes' PodGroup. Raises MalformedError naming the object and the field."""
    group = decode(_POD_GROUP, POD_GROUP, raw)
    meta, policy = group.metadata, (group.spec or _PodGroupSpec()).scheduling_policy.gang
    return Gang(GangKey(KUBERNETES, meta.namespace, meta.name), 1 if policy is None else policy.min_count)


def coscheduling_gang_from(raw: bytes | Raw) -> Gang:
    """Coscheduling's PodGroup. Raises MalformedError naming the object and the field."""
    group = decode(_COSCHEDULING_POD_GROUP, POD_GROUP, raw)
    meta, spec = group.metadata, group.spec or _CoschedulingSpec()
    return Gang(GangKey(COSCHEDULING, meta.namespace, meta.name), spec.min_member)


# -- PodDisruptionBudgets --------------------------------------------------------------------------


class _BudgetSpec(ApiObject, frozen=True):
    selector: LabelSelector | None = None


class _BudgetStatus(ApiObject, frozen=True):
    disruptions_allowed: int = 0
    # Pod name -> when its eviction was granted; null for the zero time.
    disrupted_pods: dict[str, str | None] = field(default_factory=dict)


class _PodDisruptionBudget(ApiObject, frozen=True):
    metadata: Metadata
    spec: _BudgetSpec = _BudgetSpec()
    status: _BudgetStatus = _BudgetStatus()


_BUDGET = Decoder(_PodDisruptionBudget)


def budget_from(raw: bytes | Raw) -> Budget:
    """A PodDisruptionBudget. Raises MalformedError naming the object and the field."""
    budget = decode(_BUDGET, "PodDisruptionBudget", raw)
    selector = budget.spec.selector
    return Budget(
        namespace=budget.metadata.namespace,
        name=budget.metadata.name,
        selector=() if selector is None else label_selector(selector),
        allowed=budget.status.disruptions_allowed,
        disrupted=tuple(sorted(budget.status.disrupted_pods)),
    )


# -- Services and controllers ----------------------------------------------------------------------


_Selector = TypeVar("_Selector", dict[str, str], LabelSelector)


class _Selecting(ApiObject, Generic[_Selector], frozen=True):
    selector: _Selector | None = None
    replicas: int | None = None  # a Service has none


_BY_LABELS = Decoder(Specified[_Selecting[dict[str, str]]])
_BY_SELECTOR = Decoder(Specified[_Selecting[LabelSelector]])


def selected_by_labels(kind: str, raw: bytes | Raw) -> PodSelector:
    """A Service or a ReplicationController. Raises MalformedError naming the object and the field."""
    found = decode(_BY_LABELS, kind, raw)
    spec = found.spec or _Selecting[dict[str, str]]()
    return _pod_selector(kind, found.metadata, LabelSelector(spec.selector or {}), spec.replicas)


def selected_by_selector(kind: str, raw: bytes | Raw) -> PodSelector:
    """A ReplicaSet or a StatefulSet. Raises MalformedError naming the object and the field."""
    found = decode(_BY_SELECTOR, kind, raw)
    spec = found.spec or _Selecting[LabelSelector]()
    return _pod_selector(kind, found.metadata, spec.selector or LabelSelector(), spec.replicas)


def _pod_selector(kind: str, meta: Metadata, selector: LabelSelector, replicas: int | None) -> PodSelector:
    return PodSelector(kind, meta.namespace, meta.name, () if replicas == 0 else label_selector(selector))
