"""Topology spread and inter-pod affinity as the API writes them: what becomes of each field."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import Raw, json
from msgspec.structs import replace

from eclectus.kube.objects import decode_pod
from eclectus.kube.translate import task_from
from eclectus.model.objects import PodAffinityTerm, Requirement, Spec, SpreadConstraint, Task, WeightedTerm

WEB = Requirement("app", "In", ("web",))
SELECTOR = {"matchLabels": {"app": "web"}}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def task(spec: dict[str, Any], known: Spec | None = None, **labels: str) -> Task:
    meta = {"name": "a", "namespace": "shop", "uid": "u", "labels": labels}
    pod = {"metadata": meta, "spec": {"containers": [], **spec}}
    return task_from(decode_pod(Raw(json.encode(pod))), known)


def spread(**fields: Any) -> dict[str, Any]:
    return {"topologySpreadConstraints": [{"topologyKey": "zone", "labelSelector": SELECTOR, **fields}]}


def near(*terms: Any) -> dict[str, Any]:
    return {"affinity": {"podAffinity": {REQUIRED: list(terms)}}}


def test_a_spread_constraint_counts_pods_of_the_pods_namespace() -> None:
    of_pod = task(spread(maxSkew=2, whenUnsatisfiable="DoNotSchedule"), app="web").spec
    assert of_pod.spread == (SpreadConstraint("zone", "shop", (WEB,), counts_itself=True, max_skew=2),)
    assert of_pod.topology_keys == ("zone",)
    assert not task(spread(), app="db").spec.spread[0].counts_itself


def test_policies_for_nodes_and_the_least_number_of_domains() -> None:
    fields = {"minDomains": 3, "nodeAffinityPolicy": "Ignore", "nodeTaintsPolicy": "Honor"}
    (found,) = task(spread(**fields)).spec.spread
    assert (found.min_domains, found.honors_affinity, found.honors_taints) == (3, False, True)


def test_a_soft_constraint_is_a_preference_and_no_rule() -> None:
    found = task(spread(whenUnsatisfiable="ScheduleAnyway", maxSkew=3, minDomains=None), app="web").spec
    constraint = SpreadConstraint("zone", "shop", (WEB,), counts_itself=True, max_skew=3)
    assert found == Spec(preferred_spread=(constraint,), long_running=True)
    assert (found.has_pod_rules, found.prefers_by_pods) == (False, True)


def preferred(kind: str, *terms: tuple[int, Any]) -> dict[str, Any]:
    weighted = [{"weight": weight, "podAffinityTerm": term} for weight, term in terms]
    return {"affinity": {kind: {"preferredDuringSchedulingIgnoredDuringExecution": weighted}}}


HOST, IN_SHOP = {"topologyKey": "host", "labelSelector": SELECTOR}, PodAffinityTerm("host", (WEB,), ("shop",))


@pytest.mark.parametrize(("kind", "sign"), [("podAffinity", 1), ("podAntiAffinity", -1)])
def test_preferred_terms_have_a_weight_below_zero_to_keep_away(kind: str, sign: int) -> None:
    found = task(preferred(kind, (7, HOST), (9, {**HOST, "namespaces": ["bank"]}))).spec
    heavier = WeightedTerm(sign * 9, PodAffinityTerm("host", (WEB,), ("bank",)))
    assert found.preferred_terms == (heavier, WeightedTerm(sign * 7, IN_SHOP))
    assert not found.has_pod_rules


def test_of_preferred_terms_those_that_count_nobody_are_left_out_and_the_heaviest_remain() -> None:
    none, by_team = {"topologyKey": "host"}, {**HOST, "namespaceSelector": {"matchLabels": {"a": "b"}}}
    everywhere = {**HOST, "namespaceSelector": {}}
    terms = [(1 + at, HOST) for at in range(40)] + [(100, none), (100, by_team), (99, everywhere)]
    found = task(preferred("podAffinity", *terms)).spec.preferred_terms
    assert [each.term.namespace_selector for each in found[:2]] == [(Requirement("a", "In", ("b",)),), None]
    assert found[1] == WeightedTerm(99, PodAffinityTerm("host", (WEB,), None))
    assert [each.weight for each in found] == [100, 99, *range(40, 10, -1)]


def test_match_label_keys_are_part_of_the_selector_once() -> None:
    fields = {"matchLabelKeys": ["app", "hash", "absent"]}
    expected = (WEB, Requirement("hash", "In", ("h1",)))
    assert task(spread(**fields), app="web", hash="h1").spec.spread[0].selector == expected


def test_no_selector_counts_no_pod_and_an_empty_one_counts_the_pod_alone() -> None:
    for selector, expected in ((None, (None, False)), ({}, ((), True))):
        (found,) = task(spread(labelSelector=selector), app="web").spec.spread
        assert (found.selector, found.counts_itself) == expected


def test_required_affinity_and_whether_the_pod_matches_itself() -> None:
    term = {"topologyKey": "host", "labelSelector": SELECTOR}
    of_pod = task(near(term), app="web").spec
    assert of_pod.affinity_terms == (PodAffinityTerm("host", (WEB,), ("shop",)),)
    assert (of_pod.topology_keys, of_pod.matches_itself) == (("host",), True)
    assert not task(near(term), app="db").spec.matches_itself
    assert not task(near({**term, "namespaces": ["bank"]}), app="web").spec.matches_itself
    everywhere = task(near({**term, "namespaceSelector": {}}), app="web").spec
    assert everywhere.affinity_terms[0].namespaces is None


def test_affinity_without_a_selector_matches_no_pod() -> None:
    of_pod = task(near({"topologyKey": "host"}), app="web").spec
    assert len(of_pod.affinity_terms) == 1
    assert not of_pod.matches_itself


def test_required_anti_affinity_holds_both_ways() -> None:
    rules = {REQUIRED: [{"topologyKey": "host", "labelSelector": SELECTOR}]}
    found = task({"affinity": {"podAntiAffinity": rules}})
    assert found.spec.own_anti_affinity == found.anti_affinity_terms
    assert found.anti_affinity_terms == (PodAffinityTerm("host", (WEB,), ("shop",)),)
    assert found.spec.topology_keys == ()


def test_labels_that_change_count_although_the_rest_of_the_spec_is_reused() -> None:
    before = task(spread(), app="db")
    assert task(spread(), before.spec, app="web").spec == task(spread(), app="web").spec


def test_pods_of_one_template_share_a_class() -> None:
    one, other = (task(spread(), app="web", index=index) for index in ("1", "2"))
    assert one.spec == other.spec
    assert replace(one, labels=()) == replace(other, labels=())


BY_NAME = {"topologyKey": "host", "labelSelector": {"matchLabels": {"app": "web"}}}


def selecting(at: int) -> dict[str, Any]:
    return {**BY_NAME, "namespaceSelector": {"matchLabels": {"team": str(at)}}}


@pytest.mark.parametrize("kind", ["podAffinity", "podAntiAffinity"])
def test_of_a_pod_on_a_node_only_so_many_terms_count(kind: str) -> None:
    """Another scheduler may have placed it there, and each pod that comes is compared with its terms."""

    def terms_of(*terms: Any) -> Any:
        found = task({"nodeName": "n1", "affinity": {kind: {REQUIRED: list(terms)}}})
        return found.spec.affinity_terms if kind == "podAffinity" else found.anti_affinity_terms

    keys = [
        each.topology_key for each in terms_of(*({**BY_NAME, "topologyKey": f"k{at}"} for at in range(40)))
    ]
    assert keys == [f"k{at}" for at in range(32)]
    mixed = [each for at in range(12) for each in (selecting(at), {**BY_NAME, "topologyKey": f"k{at}"})]
    by_labels = [each.namespace_selector is not None for each in terms_of(*mixed)]
    assert by_labels == 8 * [True, False] + 4 * [False]


def test_of_preferred_terms_with_a_selector_of_namespaces_the_heaviest_count() -> None:
    found = task(preferred("podAffinity", *((1 + at, selecting(at)) for at in range(12)))).spec
    assert [each.weight for each in found.preferred_terms] == list(range(12, 4, -1))
