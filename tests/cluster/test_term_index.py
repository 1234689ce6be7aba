"""The index of anti-affinity terms finds what comparing a pod with every term finds."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from eclectus.cluster.alike_pods import TermIndex
from eclectus.model.objects import PodAffinityTerm, Requirement, selects

REQUIREMENTS = st.builds(
    Requirement,
    st.sampled_from(["app", "tier"]),
    st.sampled_from(["In", "In", "NotIn", "Exists", "DoesNotExist"]),
    st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=3).map(tuple),
)
TERMS = st.builds(
    PodAffinityTerm,
    st.sampled_from(["zone", "host"]),
    st.lists(REQUIREMENTS, max_size=3).map(tuple),
    st.sampled_from([None, (), ("n1",), ("n1", "n2"), ("n1", "n1")]),
)
LABELS = st.dictionaries(st.sampled_from(["app", "tier"]), st.sampled_from(["a", "b", "d"]))


def matches(term: PodAffinityTerm, namespace: str, labels: dict[str, str]) -> bool:
    return (term.namespaces is None or namespace in term.namespaces) and selects(term.selector, labels)


@settings(deadline=None, max_examples=300)
@given(st.lists(TERMS, max_size=12, unique=True), st.sets(st.integers(0, 11)), LABELS)
def test_it_finds_what_comparing_with_every_term_finds(
    terms: list[PodAffinityTerm], removed: set[int], labels: dict[str, str]
) -> None:
    index = TermIndex()
    for term in terms:
        index.add(term)
    for term in [term for at, term in enumerate(terms) if at in removed]:
        index.discard(term)
    left = [term for at, term in enumerate(terms) if at not in removed]
    for namespace in ("n1", "n2", "n3"):
        found = list(index.matching(namespace, tuple(sorted(labels.items()))))
        assert len(found) == len(set(found))
        assert set(found) == {term for term in left if matches(term, namespace, labels)}
    for term in left:
        index.discard(term)
    assert not index._filed
    assert not index._places


def test_of_the_labels_that_a_selector_asks_for_it_is_filed_under_that_of_the_fewest() -> None:
    """Otherwise terms that share a label with all pods, and ask for another one, would all be compared."""

    def term(at: int) -> PodAffinityTerm:
        asked: Any = Requirement("app", "In", ("web",)), Requirement("index", "In", (f"x{at}",))
        return PodAffinityTerm("zone", asked, ("default",))

    index = TermIndex()
    for at in range(100):
        index.add(term(at))
    under_app = index._filed["default", "app", "web"]
    assert len(under_app) == 1
