"""PodDisruptionBudgets of the API, and as budgets of the model."""

from __future__ import annotations

from msgspec import Raw, field
from msgspec.json import Decoder

from eclectus.kube.constraints import label_selector
from eclectus.kube.decoding import decode
from eclectus.kube.objects import Metadata
from eclectus.kube.placement import ApiObject, LabelSelector
from eclectus.model.objects import Budget


class BudgetSpec(ApiObject, frozen=True):
    """spec of a PodDisruptionBudget."""

    selector: LabelSelector | None = None


class BudgetStatus(ApiObject, frozen=True):
    """status of a PodDisruptionBudget."""

    disruptions_allowed: int = 0
    # Pod name -> when its eviction was granted; null for the zero time.
    disrupted_pods: dict[str, str | None] = field(default_factory=dict)


class PodDisruptionBudget(ApiObject, frozen=True):
    """policy/v1 PodDisruptionBudget."""

    metadata: Metadata
    spec: BudgetSpec = BudgetSpec()
    status: BudgetStatus = BudgetStatus()


def decode_budget(raw: bytes | Raw) -> PodDisruptionBudget:
    """A PodDisruptionBudget. Raises MalformedError naming the object and the field."""
    return decode(_BUDGET, "PodDisruptionBudget", raw)


def budget_from(budget: PodDisruptionBudget) -> Budget:
    """The budget in the model."""
    selector = budget.spec.selector
    return Budget(
        namespace=budget.metadata.namespace,
        name=budget.metadata.name,
        selector=() if selector is None else label_selector(selector),
        allowed=budget.status.disruptions_allowed,
        disrupted=tuple(sorted(budget.status.disrupted_pods)),
    )


_BUDGET = Decoder(PodDisruptionBudget)
