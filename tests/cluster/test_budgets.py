"""PodDisruptionBudgets: which select a pod, and what very many of them may cost."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from builders import make_task
from eclectus.cluster.budgets import BUDGETS_MOST, Budgets
from eclectus.model.objects import Budget, Pairs, Requirement, Task, selects

REQUIREMENTS = st.builds(
    Requirement,
    st.sampled_from(["a", "b"]),
    st.sampled_from(["In", "NotIn"]),
    st.sets(st.sampled_from("xyz"), min_size=1).map(lambda values: tuple(sorted(values))),
)
BUDGETS = st.lists(st.tuples(st.sampled_from(["n1", "n2"]), st.lists(REQUIREMENTS, max_size=2).map(tuple)))
LABELS = st.dictionaries(st.sampled_from(["a", "b"]), st.sampled_from("xyz"))


def pod(name: str = "p", labels: Pairs = (("app", "x"),), namespace: str = "default") -> Task:
    return replace(make_task(name, labels=labels), namespace=namespace)


def many(count: int, selector: tuple[Requirement, ...], allowed: int = 0) -> Budgets:
    found = Budgets()
    for at in range(count):
        found.set(Budget("default", f"b{at}", selector, allowed))
    return found


APP = (Requirement("app", "In", ("x",)),)


@settings(max_examples=300)
@given(BUDGETS, st.lists(st.integers(0, 30)), LABELS, st.sampled_from(["n1", "n2"]))
def test_a_pod_has_the_budgets_of_its_namespace_that_select_it(
    given: list[tuple[str, tuple[Requirement, ...]]], gone: list[int], labels: dict[str, str], namespace: str
) -> None:
    budgets = Budgets()
    there = {at: Budget(space, f"b{at}", selector, 0) for at, (space, selector) in enumerate(given)}
    for each in there.values():
        budgets.set(each)
    for at in gone:
        if at in there:
            budgets.remove(there[at].namespace, there.pop(at).name)
    expected = any(
        bool(labels and each.selector) and each.namespace == namespace and selects(each.selector, labels)
        for each in there.values()
    )
    assert budgets.applies_to(pod(labels=tuple(sorted(labels.items())), namespace=namespace)) == expected


def test_the_eviction_of_a_pod_with_very_many_budgets_violates_one() -> None:
    """Kubernetes evicts no pod with more than one: what all of them allow need not be found out."""
    assert many(BUDGETS_MOST, APP, allowed=1).violated_by([pod()]) == [False]
    assert many(BUDGETS_MOST + 1, APP, allowed=1).violated_by([pod()]) == [True]


def test_very_many_budgets_are_not_remembered_for_each_kind_of_pod() -> None:
    budgets = many(10 * BUDGETS_MOST, APP)
    for at in range(100):
        assert budgets.applies_to(pod(labels=(("app", "x"), ("n", str(at)))))
    assert max(map(len, budgets._of.values())) <= BUDGETS_MOST + 1


def test_a_pod_is_compared_with_the_budgets_alone_that_ask_for_its_labels() -> None:
    budgets = Budgets()
    for at in range(500):
        budgets.set(Budget("default", f"b{at}", (Requirement("app", "In", (f"web-{at}",)),), 0))
    assert budgets.applies_to(pod(labels=(("app", "web-7"), ("tier", "front"))))
    assert budgets.compared == 1
