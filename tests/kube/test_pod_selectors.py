"""Services and controllers of the API as selectors of pods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from eclectus.kube.cluster_objects import selected_by_labels, selected_by_selector
from eclectus.model.errors import MalformedError
from eclectus.model.objects import PodSelector, Requirement, Selector

META = {"namespace": "shop", "name": "web", "resourceVersion": "7", "uid": "u"}
WEB, EXISTS = Requirement("app", "In", ("web",)), Requirement("tier", "Exists")
LABELS = {"app": "web"}
EXPRESSIONS = [{"key": "tier", "operator": "Exists"}]


def raw(**spec: Any) -> bytes:
    return msgspec.json.encode({"metadata": META, "spec": spec})


@pytest.mark.parametrize("selected", [selected_by_labels, selected_by_selector])
def test_a_spec_that_is_null_selects_nothing(selected: Callable[[str, bytes], PodSelector]) -> None:
    found = selected("Any", msgspec.json.encode({"metadata": META, "spec": None}))
    assert found == PodSelector("Any", "shop", "web", ())


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"selector": LABELS, "ports": [{"port": 80}], "clusterIP": "None"}, (WEB,)),
        ({"selector": LABELS, "replicas": 2}, (WEB,)),
        ({"selector": LABELS, "replicas": 0}, ()),
        ({"selector": {}}, ()),
        ({"selector": None}, ()),
        ({"type": "ExternalName", "externalName": "web.example.com"}, ()),
    ],
)
def test_services_and_replication_controllers_select_by_labels(spec: Any, expected: Selector) -> None:
    found = selected_by_labels("Service", raw(**spec))
    assert found == PodSelector("Service", "shop", "web", expected)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"selector": {"matchLabels": LABELS, "matchExpressions": EXPRESSIONS}}, (WEB, EXISTS)),
        ({"selector": {"matchLabels": LABELS}, "replicas": 1, "template": {"spec": {}}}, (WEB,)),
        ({"selector": {"matchLabels": LABELS}, "replicas": 0}, ()),
        ({"selector": {}}, ()),
        ({}, ()),
    ],
)
def test_replica_sets_and_stateful_sets_select_by_selectors(spec: Any, expected: Selector) -> None:
    found = selected_by_selector("ReplicaSet", raw(**spec))
    assert found == PodSelector("ReplicaSet", "shop", "web", expected)


@pytest.mark.parametrize("read", [selected_by_labels, selected_by_selector])
def test_what_cannot_be_read_is_named(read: Any) -> None:
    with pytest.raises(MalformedError, match=r"Service shop/web: spec\.selector"):
        read("Service", raw(selector=7))
