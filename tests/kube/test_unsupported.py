"""What is not supported: two tables that documentation is made from, and how use is recognised."""

from typing import Any

import pytest
from msgspec import Raw, json

from eclectus.kube.decoding import decode_pod
from eclectus.kube.unsupported import IGNORED, REFUSED, ignored, unsupported

TERM = {"topologyKey": "zone", "labelSelector": {}}
BY_TEAM = {**TERM, "namespaceSelector": {"matchLabels": {"team": "a"}}}
SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
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
        ({"affinity": {"podAffinity": preferred(*32 * [TERM])}}, ()),
        ({"affinity": {"podAffinity": preferred({**TERM, "namespaceSelector": {}})}}, ()),
        ({"affinity": {"podAntiAffinity": preferred(TERM, BY_TEAM)}}, ()),
        ({"affinity": {"podAffinity": preferred(*33 * [TERM])}}, (MANY,)),
        ({"topologySpreadConstraints": 32 * [SPREAD]}, ()),
        ({"topologySpreadConstraints": 33 * [SPREAD]}, (MANY,)),
    ],
)
def test_a_preference_that_is_not_counted_is_recognised(spec, found):
    assert ignored(spec_of(spec)) == found
    assert unsupported(spec_of(spec)) == ()


def test_the_tables_have_words_for_users_and_share_no_name():
    assert not REFUSED.keys() & IGNORED.keys()
    for name, feature in {**REFUSED, **IGNORED}.items():
        assert feature.words.endswith("."), name
        assert feature.is_used is not None or name == "preemption"
