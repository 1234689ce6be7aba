"""Who gets what is left over in Carbyne: worked examples of `leftover`, in cores and GiB of one node.

The node has 20 of each. Each job has a long stage that is due at once. All other tasks have 100 s, so they
are started with what is left over.
"""

from __future__ import annotations

import pytest

from builders import amounts, make_engine, make_node
from dag_world import DagWorld, job
from eclectus.model.job import Job, JobStage
from eclectus.model.objects import Spec
from eclectus.policies.carbyne import Carbyne
from eclectus.policies.carbyne.leftover import LeftOver
from eclectus.policies.place.fit import BestFit


def stage(name: str, tasks: int, cpu: float, memory: float, seconds: float, *parents: int) -> JobStage:
    return JobStage(name, tasks, Spec(requests=amounts(cpu, memory)), seconds=seconds, parents=parents)


def starts(leftover: str, *jobs: Job) -> list[tuple[float, str]]:
    """When tasks of stages that are not long start, in this order, and of which stage."""
    order = Carbyne(leftover=leftover)  # type: ignore[arg-type]
    run = DagWorld(make_engine(BestFit(), order=order), [make_node("n", cpu=20, memory=20)])
    run.submit(*jobs)
    run.run(until=50.0)
    return [(at, name) for at, _, name in run.starts if name != "long"]


@pytest.mark.parametrize(
    ("leftover", "expected"),
    [
        ("srtf", [(0.0, "x"), (1.0, "y")]),
        ("srtf-packing", [(0.0, "x"), (1.0, "y")]),
        ("packing", [(0.0, "y"), (2.0, "x")]),
        ("none", []),
    ],
)
def test_the_job_with_the_least_work_or_the_task_that_fills_best_what_is_left(
    leftover: str, expected: list[tuple[float, str]]
) -> None:
    """(3, 8) is left, for one of (2, 1) of the job with less work, or (2, 4).

    Alignments: (2 * 3 + 1 * 8) / 400 = .035 and (2 * 3 + 4 * 8) / 400 = .095.
    """
    first = job("J", stage("long", 1, 9, 6, 100.0), stage("x", 1, 2, 1, 1.0))
    second = job("K", stage("long", 1, 8, 6, 100.0), stage("y", 1, 2, 4, 2.0))
    assert starts(leftover, first, second) == expected


@pytest.mark.parametrize(
    ("leftover", "expected"),
    [
        ("srtf", [(0.0, "x"), (1.0, "y")]),
        ("srtf-packing", [(0.0, "y"), (1.0, "x")]),
        ("packing", [(0.0, "y"), (1.0, "x")]),
    ],
)
def test_of_one_job_the_largest_task_or_the_one_that_fills_best_what_is_left(
    leftover: str, expected: list[tuple[float, str]]
) -> None:
    """(3, 8) is left, for one of (3, 1), the longer demand, or (1, 2).

    Alignments: (3 * 3 + 1 * 8) / 400 = .0425 and (1 * 3 + 2 * 8) / 400 = .0475.
    """
    lends = job("J", stage("long", 1, 9, 6, 100.0), stage("x", 1, 3, 1, 1.0), stage("y", 1, 1, 2, 1.0))
    rival = job("K", stage("long", 1, 8, 6, 100.0), stage("z", 1, 1, 1, 1.0, 0))
    assert starts(leftover, lends, rival) == expected


@pytest.mark.parametrize(
    ("leftover", "expected"), [("srtf", "xxy"), ("srtf-packing", "xxy"), ("packing", "xyx")]
)
def test_what_fills_best_follows_what_is_left_after_each_start(leftover: str, expected: str) -> None:
    """(10, 9) is left, for tasks of (4, 2) and (2, 4): alignments 58 and 56, so x is first.

    (6, 7) is left then: 38 and 40, so y; then (4, 3), for one of x. Remaining work is equal at first, and
    less of the job of which a task has started.
    """
    first = job("J", stage("long", 1, 5, 5, 100.0), stage("x", 2, 4, 2, 1.0))
    second = job("K", stage("long", 1, 5, 6, 100.0), stage("y", 2, 2, 4, 1.0))
    found = [name for at, name in starts(leftover, first, second) if at == 0.0]
    assert "".join(found) == expected


def test_what_waits_is_ranked_anew_only_when_what_is_free_has_changed_by_more_than_a_quarter() -> None:
    left, capacity = LeftOver(), (100.0, 100.0)
    assert list(left.update((20.0, 60.0), capacity)) == []
    assert left.alignment("a", (10.0, 0.0), capacity) == pytest.approx(0.1 * 0.8)
    assert left.alignment("b", (10.0, 20.0), capacity) == pytest.approx(0.1 * 0.8 + 0.2 * 0.4)
    assert list(left.update((39.0, 69.0), capacity)) == []  # 61 and 31 of 80 and 40
    assert left.alignment("a", (10.0, 0.0), capacity) == pytest.approx(0.1 * 0.8)
    assert list(left.update((41.0, 60.0), capacity)) == ["a", "b"]
    assert left.alignment("a", (10.0, 0.0), capacity) == pytest.approx(0.1 * 0.59)
    assert list(left.update((100.0, 60.0), capacity)) == ["a"]
    assert left.alignment("a", (10.0, 0.0), capacity) == 0.0


def test_more_than_there_is_may_be_held_where_nodes_have_gone() -> None:
    left = LeftOver()
    left.update((30.0, 0.0), (20.0, 10.0))
    assert left.alignment("a", (10.0, 10.0), (20.0, 10.0)) == 1.0
