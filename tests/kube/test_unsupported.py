"""What is not supported: two tables that documentation is made from, and how use is recognised."""

from typing import Any

import pytest
from msgspec import Raw, json

from eclectus.kube.constraints import (
    IGNORED,
    MAX_CLAIMS,
    MAX_NAMESPACE_SELECTORS,
    MAX_POD_RULES,
    REFUSED,
    ignored,
    unsupported,
)
from eclectus.kube.objects import decode_pod

TERM = {"topologyKey": "zone", "labelSelector": {}}
BY_TEAM = {**TERM, "namespaceSelector": {"matchLabels": {"team": "a"}}}
SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
MANY = "more than 32 preferences about other pods"


def preferred(*terms: Any) -> dict[str, Any]:
    weighted = [{"weight": 1, "podAffinityTerm": term} for term in terms]
    return {"preferredDuringSchedulingIgnoredDuringExecution": weighted}


def spec_of(spec: dict[str, Any]) -> Any:
    pod = {"metadata": {"name": "a", "uid": "u"}, "spec": {"containers": [], **spec}}
    return decode_pod(Raw(json.encode(pod))).spec


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        ({}, ()),
        ({"affinity": {"nodeAffinity": {}}}, ()),
        ({"affinity": {"podAffinity": preferred(*MAX_POD_RULES * [TERM])}}, ()),
        ({"affinity": {"podAffinity": preferred({**TERM, "namespaceSelector": {}})}}, ()),
        ({"affinity": {"podAntiAffinity": preferred(TERM, BY_TEAM)}}, ()),
        ({"affinity": {"podAffinity": preferred(*(MAX_POD_RULES + 1) * [TERM])}}, (MANY,)),
        ({"topologySpreadConstraints": MAX_POD_RULES * [SPREAD]}, ()),
        ({"topologySpreadConstraints": (MAX_POD_RULES + 1) * [SPREAD]}, (MANY,)),
    ],
)
def test_a_preference_that_is_not_counted_is_recognised(spec, found):
    assert ignored(spec_of(spec)) == found
    assert unsupported(spec_of(spec)) == ()


def by_team(at: int) -> dict[str, Any]:
    return {**TERM, "namespaceSelector": {"matchLabels": {"team": str(at)}}}


ALL = {**TERM, "namespaceSelector": {}}


@pytest.mark.parametrize(
    ("terms", "is_refused"),
    [
        ([by_team(at) for at in range(MAX_NAMESPACE_SELECTORS)], False),
        ([by_team(at) for at in range(MAX_NAMESPACE_SELECTORS + 1)], True),
        (20 * [ALL], False),
    ],
)
def test_more_terms_with_a_selector_of_namespaces_than_count_are_refused_and_preferred_ones_ignored(
    terms: Any, is_refused: bool
) -> None:
    required = spec_of({"affinity": {"podAntiAffinity": {REQUIRED: terms}}})
    assert bool(unsupported(required)) == is_refused
    soft = spec_of({"affinity": {"podAntiAffinity": preferred(*terms)}})
    assert (unsupported(soft), bool(ignored(soft))) == ((), is_refused)


@pytest.mark.parametrize(("count", "is_refused"), [(MAX_CLAIMS, False), (MAX_CLAIMS + 1, True)])
def test_more_claims_than_any_node_attaches_are_refused(count: int, is_refused: bool) -> None:
    claims = [{"name": f"v{at}", "persistentVolumeClaim": {"claimName": f"c{at}"}} for at in range(count - 1)]
    config = 300 * [{"name": "config", "configMap": {"name": "c"}}]
    spec = spec_of({"volumes": [*claims, {"name": "own", "ephemeral": {}}, *config]})
    assert bool(unsupported(spec)) == is_refused


def test_the_tables_have_words_for_users_and_share_no_name():
    assert not REFUSED.keys() & IGNORED.keys()
    for name, feature in {**REFUSED, **IGNORED}.items():
        assert feature.words.endswith("."), name
        assert feature.is_used is not None or name == "preemption"
