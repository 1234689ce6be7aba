"""Which keys are taken when more are due than one question allows: namespaces take turns."""

from __future__ import annotations

from math import inf

from eclectus.cluster.due_times import DueInTurns


def looks(**counts: int) -> DueInTurns:
    """So many pods of each namespace, of which the first is due first."""
    found = DueInTurns()
    for namespace, count in counts.items():
        for at in range(count):
            found.set(namespace, f"{namespace}{at}", float(at))
    return found


def test_of_one_namespace_those_that_are_due_for_longest_come_first() -> None:
    found = looks(a=5)
    assert found.take(3.0, 2) == ["a0", "a1"]
    assert found.take(3.0, 9) == ["a2", "a3"]
    assert found.take(3.0, 9) == []
    assert found.next_due() == 4.0


def test_a_namespace_with_many_pods_takes_no_look_of_another() -> None:
    found = looks(a=1000, b=3)
    assert sorted(found.take(2000.0, 10)) == sorted(["b0", "b1", "b2", *(f"a{at}" for at in range(7))])
    found.set("b", "b3", 1999.0)
    assert "b3" in found.take(2000.0, 2)


def test_with_more_namespaces_than_looks_each_has_its_turn() -> None:
    found = looks(**{f"n{at}": 40 for at in range(20)})
    first, second = found.take(100.0, 10), found.take(100.0, 10)
    assert sorted(first + second) == sorted(f"n{at}0" for at in range(20))


def test_what_is_discarded_or_due_anew_is_not_taken() -> None:
    found = looks(a=2, b=1)
    found.discard("a", "a0")
    found.discard("b", "b0")
    found.discard("c", "never seen")
    found.set("a", "a1", 7.0)
    assert found.take(6.0, 9) == []
    assert found.next_due() == 7.0
    found.discard("a", "a1")
    assert found.next_due() == inf
    assert found._by_namespace == {}, "nothing is kept of namespaces without pods"
