"""What is not supported: two tables that documentation is made from, and how use is recognised."""

from typing import Any

import pytest
from msgspec import Raw, json

from eclectus.kube.decoding import decode_pod
from eclectus.kube.unsupported import IGNORED, REFUSED, ignored, unsupported

TERM = {"weight": 1, "podAffinityTerm": {"topologyKey": "zone"}}
PREFERRED = {"preferredDuringSchedulingIgnoredDuringExecution": [TERM]}
SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}


def spec_of(spec: dict[str, Any]) -> Any:
    pod = {"metadata": {"name": "a", "uid": "u"}, "spec": {"containers": [], **spec}}
    return decode_pod(Raw(json.encode(pod))).spec


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        ({}, ()),
        ({"affinity": {"nodeAffinity": {}}}, ()),
        ({"affinity": {"podAffinity": PREFERRED}}, ("preferred pod affinity",)),
        ({"affinity": {"podAntiAffinity": PREFERRED}}, ("preferred pod anti-affinity",)),
        ({"topologySpreadConstraints": [SPREAD]}, ("topology spread with ScheduleAnyway",)),
    ],
)
def test_a_preference_that_no_rule_reads_is_recognised(spec, found):
    assert ignored(spec_of(spec)) == found
    assert unsupported(spec_of(spec)) == ()


def test_the_tables_have_words_for_users_and_share_no_name():
    assert not REFUSED.keys() & IGNORED.keys()
    for name, feature in {**REFUSED, **IGNORED}.items():
        assert feature.words.endswith("."), name
        assert feature.is_used is not None or name == "preemption"
