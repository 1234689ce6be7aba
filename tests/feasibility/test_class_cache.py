"""Classes share what they have in common, and as many are kept as are in use."""

from __future__ import annotations

import weakref

import numpy as np
import pytest

from builders import make_cluster, make_node, make_spec, make_task
from eclectus.cluster.nodes import Cluster
from eclectus.feasibility import task_class
from eclectus.feasibility.task_class import MAX_BYTES, MAX_SHARED_TERMS, ClassCache, TaskClass
from eclectus.framework.view import Ranking
from eclectus.model.objects import Preference, Requirement, Spec, Term

MOST_NODES = 16_384  # rows in the arrays of 15,000 nodes


def preferring(at: int, **fields: object) -> Spec:
    """A spec whose preferences no other has: the same terms, weighed otherwise."""
    terms = [Term((Requirement("zone", "In", (f"z{zone}",)),)) for zone in range(2)]
    preferences = tuple(map(Preference, (1 + at // 100, 101 + at % 100), terms))
    return make_spec(1, preferences=preferences, **fields)


def cache_of(rows: int = 64, share_of_memory: float = 1.0) -> ClassCache:
    """A cache as on 15,000 nodes, in small: less memory in proportion to the rows."""
    cluster = Cluster(rows)
    for at in range(3):
        cluster.set_node(make_node(f"n{at}", labels={"zone": f"z{at}"}))
    return ClassCache(cluster, int(share_of_memory * MAX_BYTES * rows / MOST_NODES))


def asked(cache: ClassCache, specs: list[Spec]) -> list[TaskClass]:
    """The classes, asked for in a cycle of their own."""
    cache.begin_cycle()
    return [cache.current(spec, "") for spec in specs]


# -- shared parts ----------------------------------------------------------------------------------


def test_classes_that_differ_in_preferences_share_all_but_the_score() -> None:
    one, other = asked(cache_of(), [preferring(1), preferring(2)])
    assert one.fits_now is other.fits_now
    assert one.feasible is other.feasible
    assert one.overflow is other.overflow
    assert one.preference_score[:3].tolist() != other.preference_score[:3].tolist()


def test_classes_that_differ_in_where_they_may_run_share_the_room() -> None:
    plain, selective = asked(cache_of(), [preferring(1), preferring(1, node_selector=(("zone", "z1"),))])
    assert plain.overflow is selective.overflow
    assert plain.preference_score is selective.preference_score
    assert (plain.feasible_count, selective.feasible_count) == (3, 1)


def test_another_workload_or_kind_of_pod_shares_everything() -> None:
    cache = cache_of()
    one = cache.current(preferring(1), "a")
    for other in (cache.current(preferring(1), "b"), cache.current(preferring(1, long_running=True), "a")):
        assert one is not other
        assert one.fits_now is other.fits_now
        assert one.preference_score is other.preference_score


def test_a_term_is_evaluated_once_for_all_preferences_that_weigh_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    evaluated = []
    holds = task_class.term_holds
    monkeypatch.setattr(task_class, "term_holds", lambda *given: evaluated.append(given[1]) or holds(*given))
    cache = cache_of()
    specs = [preferring(at) for at in range(50)]
    asked(cache, specs)
    assert len(evaluated) == 2
    cache.cluster.set_node(make_node("n1", labels={"zone": "z0"}))
    asked(cache, specs)
    assert len(evaluated) == 4


def test_parts_go_with_their_last_class() -> None:
    cache = cache_of()
    parts, dropped = cache._parts, weakref.ref(asked(cache, [preferring(1)])[0])
    assert parts.bytes_per_node > 0
    cache._drop(list(cache._classes))
    assert dropped() is None
    assert parts.bytes_per_node == 0


# -- how many are kept -----------------------------------------------------------------------------


def test_a_thousand_classes_in_use_on_15_000_nodes_are_made_once() -> None:
    cache, specs = cache_of(), [preferring(at) for at in range(1000)]
    first = asked(cache, specs)
    for _ in range(3):
        assert all(now is then for now, then in zip(asked(cache, specs), first, strict=True))


def test_classes_that_nothing_asks_for_again_are_dropped_and_those_in_use_are_not() -> None:
    cache, in_use = cache_of(), [preferring(at, node_selector=(("zone", "z1"),)) for at in range(20)]
    first, most = asked(cache, in_use), 0
    for at in range(2000):
        assert all(now is then for now, then in zip(asked(cache, in_use), first, strict=True))
        cache.current(preferring(at), "")
        most = max(most, len(cache))
    assert most <= 350


def test_the_memory_of_many_classes_in_use_is_given_back_when_they_are_not() -> None:
    cache = cache_of()
    for at in range(1000):
        cache.current(preferring(at), "")
    assert len(cache) == 1000
    for at in range(1000):
        asked(cache, [preferring(10_000 + at)])
    assert len(cache) <= 350


def test_more_classes_in_use_than_the_memory_holds_are_bounded_by_it() -> None:
    cache = cache_of(share_of_memory=0.1)
    for at in range(1000):
        cache.current(preferring(at), "")
        assert len(cache) <= 135
    assert len(cache) >= 60


@pytest.mark.parametrize(
    ("terms", "shared"), [(MAX_SHARED_TERMS, MAX_SHARED_TERMS), (MAX_SHARED_TERMS + 1, 0)]
)
def test_of_a_pod_with_very_many_preferences_no_mask_is_kept(
    terms: int, shared: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[object] = []
    holds = task_class.term_holds
    monkeypatch.setattr(task_class, "term_holds", lambda *given: kept.append(given[1]) or holds(*given))
    preferences = (Preference(1, Term((Requirement("zone", "In", (f"z{at}",)),))) for at in range(terms))
    (made,) = asked(cache_of(), [make_spec(1, preferences=tuple(preferences))])
    assert (made.preference_score[:3] > 0.6).all(), "a node's own zone is preferred, others are not"
    assert len(kept) == shared


def test_a_class_is_freed_with_its_rankings() -> None:
    cache = cache_of()
    task_class = asked(cache, [preferring(1)])[0]
    ranking = Ranking(task_class, lambda _class, rows: np.ones(len(rows)))
    task_class.derived["owner"] = ranking
    freed = weakref.ref(task_class), weakref.ref(ranking)
    del task_class, ranking
    cache._drop(list(cache._classes))
    assert [each() for each in freed] == [None, None]  # at once, not when garbage is collected


# -- the check -------------------------------------------------------------------------------------


def test_a_defect_of_a_shared_part_is_mended_for_all_its_classes() -> None:
    cluster = make_cluster(make_node("n", cpu=1))
    cache, specs = ClassCache(cluster), [preferring(1), preferring(2)]
    for each in asked(cache, specs):
        each._fit.refresh_usage = lambda: None  # type: ignore[method-assign]
    cluster.hold(0, make_task("there"))
    assert [each.fits_now_count for each in asked(cache, specs)] == [1, 1]
    assert not cache.recheck(specs[0], "")
    assert [each.fits_now_count for each in asked(cache, specs)] == [0, 0]
    assert all(cache.recheck(spec, "") for spec in specs)
