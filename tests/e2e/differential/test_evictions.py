"""Which evictions are called better, and which are called different."""

from collections import Counter
from typing import Any

import pytest

from eclectus_e2e.differential.case import Case
from eclectus_e2e.differential.comparison import Kind, compare_evictions
from eclectus_e2e.differential.evictions import cost, priority
from eclectus_e2e.differential.generator.words import LOW, PLACED, PREEMPTS
from eclectus_e2e.differential.questions import SILENCE, Answer

PREEMPTOR = {"metadata": {}, "spec": {"priorityClassName": PREEMPTS}}
BUDGET = "/apis/policy/v1/namespaces/lab/poddisruptionbudgets/b"


def path(name: str, namespace: str = "lab") -> str:
    return f"/api/v1/namespaces/{namespace}/pods/{name}"


def pod(node: str, priority_class: str = "", second: int = 0, app: str = "web") -> dict[str, Any]:
    return {
        "metadata": {"labels": {"app": app}},
        "spec": {"nodeName": node, "priorityClassName": priority_class},
        "status": {"startTime": f"2026-01-01T00:00:{second:02}Z"},
    }


def budget(allowed: int) -> dict[str, Any]:
    selector = {"matchLabels": {"app": "web"}}
    return {"spec": {"selector": selector}, "status": {"disruptionsAllowed": allowed}}


def better(one: list[str], other: list[str], **objects: Any) -> bool:
    """Whether the eviction of one costs less; all criteria but the last are better the smaller they are."""
    paths = {path(name): each for name, each in objects.items() if name != "budget"}
    if "budget" in objects:
        paths[BUDGET] = objects["budget"]
    first, second = (cost(paths, map(path, names), PREEMPTOR) for names in (one, other))
    return first[:-1] < second[:-1] or (first[:-1] == second[:-1] and first[-1] > second[-1])


@pytest.mark.parametrize(
    ("one", "other", "objects"),
    [
        pytest.param(
            ["b"],
            ["a"],
            {"a": pod("n1"), "b": pod("n2", PLACED, app="db"), "budget": budget(0)},
            id="no violated budget",
        ),
        pytest.param(["a"], ["b"], {"a": pod("n1", LOW), "b": pod("n2")}, id="lowest highest priority"),
        pytest.param(
            ["a", "b"],
            ["c", "d"],
            {"a": pod("n1"), "b": pod("n1", LOW), "c": pod("n2"), "d": pod("n2")},
            id="smallest sum of priorities",
        ),
        pytest.param(["a"], ["b", "c"], {"a": pod("n1"), "b": pod("n2"), "c": pod("n2", LOW)}, id="fewest"),
        pytest.param(["b"], ["a"], {"a": pod("n1", second=3), "b": pod("n2", second=9)}, id="latest start"),
    ],
)
def test_what_costs_less(one: list[str], other: list[str], objects: dict[str, Any]) -> None:
    assert better(one, other, **objects)
    assert not better(other, one, **objects)


@pytest.mark.parametrize(("allowed", "violated"), [(0, 2), (1, 1), (2, 0)])
def test_a_budget_allows_the_eviction_of_the_most_important_pods_first(allowed: int, violated: int) -> None:
    objects = {path("a"): pod("n1", second=1), path("b"): pod("n1", second=2), BUDGET: budget(allowed)}
    assert cost(objects, [path("a"), path("b")], PREEMPTOR)[0] == violated
    assert cost(objects, [path("a")], PREEMPTOR)[0] == (allowed == 0)
    assert cost(objects, [path("b")], PREEMPTOR)[0] == (allowed < 2)


def test_a_budget_of_another_namespace_protects_nobody() -> None:
    objects = {path("a", "team-a"): pod("n1"), BUDGET: budget(0)}
    assert cost(objects, objects.keys() - {BUDGET}, PREEMPTOR)[0] == 0


def test_what_shrinking_leaves_out_counts_as_not_there() -> None:
    bare = {"metadata": {}, "spec": {"nodeName": "n1"}, "status": {}}
    objects = {path("a"): bare, path("b"): pod("n1", second=9), BUDGET: {"spec": {}, "status": {}}}
    assert cost(objects, [path("a")], PREEMPTOR) == (0, 0, 2**31, 1, "not yet")
    assert cost(objects, [path("b")], PREEMPTOR)[-1] < "not yet"


def test_without_a_class_the_priority_is_0() -> None:
    assert [priority(pod("n1", name)) for name in (LOW, "", PLACED)] == [-10, 0, 1000]


CASE = Case(
    {path("a"): pod("n1"), path("b"): pod("n1"), path("c"): pod("n2"), path("d"): pod("n3", PLACED)},
    "lab",
    PREEMPTOR,
)


def answer(node: str, *victims: str) -> Answer:
    return Answer(node, victims=frozenset(map(path, victims)))


@pytest.mark.parametrize(
    ("theirs", "ours", "kind"),
    [
        (answer("n1", "a"), answer("n1", "a"), None),
        (answer("n1", "a"), answer("n2", "c"), None),
        (answer("n1", "a"), answer("n1", "b"), Kind.VICTIMS),
        (answer("n1", "a"), answer("n3", "d"), Kind.COST),
        (answer("n3", "d"), answer("n1", "a"), Kind.COST),
        (answer("n1", "a"), answer("n3", "c"), Kind.ELSEWHERE),
        (answer("n1", "a"), answer("n2"), Kind.EVICTS),
        (Answer(message="0/3 nodes are available"), answer("n1", "a"), Kind.EVICTS),
        (answer("n1", "a"), Answer(message=SILENCE), Kind.SILENT),
    ],
)
def test_evictions(theirs: Answer, ours: Answer, kind: Kind | None) -> None:
    found = compare_evictions(CASE, theirs, ours, Counter())
    assert (found.kind if found else None) == kind
    assert not found or "n1 in place of a" in str(found) or "n3 in place of d" in str(found)


def test_where_several_budgets_protect_a_pod_their_order_may_decide() -> None:
    objects = {**CASE.objects, BUDGET: budget(0), f"{BUDGET}2": budget(1)}
    used, case = Counter[str](), Case(objects, CASE.namespace, CASE.pod)
    assert compare_evictions(case, answer("n1", "a"), answer("n1", "b"), used) is None
    assert used == {"order of budgets": 1}
    assert compare_evictions(case, answer("n1", "a"), answer("n2"), used) is not None
