"""PodDisruptionBudgets of the API as budgets of the model."""

from __future__ import annotations

import msgspec

from eclectus.kube.cluster_objects import budget_from
from eclectus.model.objects import Budget, Requirement


def test_a_budget_and_the_pods_that_it_counts_already() -> None:
    body = {
        "metadata": {"namespace": "shop", "name": "web"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "minAvailable": "50%"},
        "status": {
            "disruptionsAllowed": 2,
            "disruptedPods": {"web-1": "2026-03-01T12:00:00Z", "web-0": None},  # null is the zero time
        },
    }
    assert budget_from(msgspec.json.encode(body)) == Budget(
        "shop", "web", (Requirement("app", "In", ("web",)),), allowed=2, disrupted=("web-0", "web-1")
    )


def test_a_budget_whose_spec_is_null_has_no_selector() -> None:
    body = {"metadata": {"namespace": "shop", "name": "web"}, "spec": None}
    assert budget_from(msgspec.json.encode(body)) == Budget("shop", "web")
