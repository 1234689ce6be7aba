"""PodDisruptionBudgets as a watched kind."""

from __future__ import annotations

from msgspec import Raw

from eclectus.kube.budgets import budget_from, decode_budget
from eclectus.kube.objects import full_name
from eclectus.live.watch.named import NamedKind
from eclectus.live.watch.watched import ObservedObject
from eclectus.model.events import BudgetGone, BudgetSeen, Event


class WatchedBudgets(NamedKind):
    """PodDisruptionBudgets, keyed by namespace/name."""

    name, kind = "poddisruptionbudgets", "PodDisruptionBudget"
    path = "/apis/policy/v1/poddisruptionbudgets"

    def observe(self, raw: Raw, now: float) -> ObservedObject:
        """BudgetSeen."""
        del now
        budget = decode_budget(raw)
        meta = budget.metadata
        key = full_name(meta.namespace, meta.name)
        return ObservedObject(key, meta.resource_version, BudgetSeen(budget_from(budget)))

    def gone(self, key: str) -> Event:
        """BudgetGone."""
        namespace, _, name = key.partition("/")
        return BudgetGone(namespace, name)
