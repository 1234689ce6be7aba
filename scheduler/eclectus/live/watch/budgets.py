"""PodDisruptionBudgets as a watched kind."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Raw

from eclectus.kube.budgets import budget_from, decode_budget
from eclectus.kube.decoding import decode_head
from eclectus.kube.objects import full_name
from eclectus.live.watch.watched import ObservedObject
from eclectus.model.errors import MalformedError
from eclectus.model.events import BudgetGone, BudgetSeen, Event


class WatchedBudgets:
    """PodDisruptionBudgets, keyed by namespace/name."""

    name = "poddisruptionbudgets"
    path = "/apis/policy/v1/poddisruptionbudgets"
    list_query: Mapping[str, str] = {}
    undefined = ""

    def key(self, raw: Raw) -> tuple[str, str]:
        """namespace/name: a budget that was deleted and created again counts as the same budget."""
        metadata = decode_head(raw).metadata
        if not metadata.name:
            raise MalformedError("PodDisruptionBudget", "?", "metadata.name", "missing")
        return full_name(metadata.namespace, metadata.name), metadata.resource_version

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
