"""All that selects a pod, joined to one selector: by example, and against a loop over everything there is."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eclectus.engine.pod_specs.default_spread import PodSelectors
from eclectus.model.objects import PodSelector, Requirement, Selector, selects


def equal(**labels: str) -> Selector:
    return tuple(Requirement(key, "In", (value,)) for key, value in sorted(labels.items()))


EXISTS = Requirement("app", "Exists")
POD = (("app", "web"), ("tier", "front"))


@pytest.mark.parametrize(
    ("there", "expected"),
    [
        ([], ()),
        ([("Service", "a", equal(app="web"))], equal(app="web")),
        ([("Service", "a", equal(app="db"))], ()),
        ([("Service", "a", equal(app="web", tier="back"))], ()),
        ([("Service", "a", equal(app="web")), ("Service", "b", equal(tier="front"))], equal(**dict(POD))),
        ([("ReplicaSet", "r", (EXISTS,))], (EXISTS,)),
        ([("ReplicaSet", "r", equal(app="other"))], equal(app="other")),
        ([("ReplicaSet", "another", equal(app="web"))], ()),
        ([("StatefulSet", "r", equal(app="web"))], ()),
        ([("Service", "a", equal(app="web")), ("ReplicaSet", "r", equal(app="web"))], equal(app="web")),
        (
            [("Service", "a", equal(tier="front")), ("ReplicaSet", "r", (EXISTS,))],
            (EXISTS, *equal(tier="front")),
        ),
    ],
)
def test_a_pod_of_a_replica_set_is_selected_by_it_and_by_services_that_match(
    there: list[tuple[str, str, Selector]], expected: Selector
) -> None:
    selectors = PodSelectors()
    for kind, name, selector in there:
        selectors.set(PodSelector(kind, "default", name, selector))
        selectors.set(PodSelector(kind, "elsewhere", name, equal(app="web", tier="front")))
    assert selectors.joined("default", POD, "ReplicaSet/r") == expected


NAMES, SPACES = st.sampled_from(["a", "b", "c"]), st.sampled_from(["default", "shop"])
LABELS = st.dictionaries(st.sampled_from("kl"), st.sampled_from("xy"), min_size=1)
KINDS = st.sampled_from(["Service", "Service", "ReplicaSet", "StatefulSet"])
CHANGES = st.lists(st.tuples(KINDS, SPACES, NAMES, st.one_of(st.none(), LABELS)), max_size=20)


@settings(deadline=None, max_examples=200)
@given(CHANGES, SPACES, LABELS, NAMES)
def test_it_is_what_a_loop_over_all_finds(changes: Any, space: str, labels: Any, controller: str) -> None:
    selectors, there = PodSelectors(), dict[tuple[str, str, str], Selector]()
    for kind, namespace, name, of in changes:
        key = (kind, namespace, name)
        if of is None:
            assert selectors.remove(*key) == (there.pop(key, None) is not None)
        else:
            found = equal(**of)
            assert selectors.set(PodSelector(*key, found)) == (there.get(key) != found)
            there[key] = found
    expected = set[Requirement]()
    for (kind, namespace, name), selector in there.items():
        owns = kind == "ReplicaSet" and name == controller
        if namespace == space and (owns or (kind == "Service" and selects(selector, labels))):
            expected |= set(selector)
    found = selectors.joined(space, tuple(sorted(labels.items())), f"ReplicaSet/{controller}")
    assert (len(found), set(found)) == (len(expected), expected)
    assert len(selectors) == len(there)


def test_nothing_is_left_of_services_that_are_gone() -> None:
    selectors = PodSelectors()
    for name in "ab":
        selectors.set(PodSelector("Service", "default", name, equal(app="web")))
        selectors.set(PodSelector("Service", "default", name, equal(app="db")))
    for name in "ab":
        selectors.remove("Service", "default", name)
    assert (len(selectors), selectors._indexed, selectors._with_label) == (0, {}, {})
