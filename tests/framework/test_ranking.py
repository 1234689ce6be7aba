"""The ranking finds the best of all nodes from the rows that changed."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from builders import make_cluster, make_node, make_spec, make_task
from eclectus.feasibility.task_class import TaskClass
from eclectus.framework.view import BLOCK, Ranking
from eclectus.model.objects import Requirement, SpreadConstraint

CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["hold", "release", "resize", "drop", "add", "cordon", "epoch", "forget"]),
        st.integers(0, 3 * BLOCK),
    ),
    max_size=60,
)


@given(CHANGES)
@settings(deadline=None, max_examples=80)
def test_the_ranking_agrees_with_a_full_evaluation(changes: list[tuple[str, int]]) -> None:
    cluster = make_cluster(*(make_node(f"n{at}", cpu=4) for at in range(2 * BLOCK + 3)))
    task_class = TaskClass(cluster, make_spec(cpu=1), "")
    sign = [1.0]

    def cost(each_class: TaskClass, rows: np.ndarray) -> np.ndarray:
        held = cluster.used[rows, cluster.columns["cpu"]]
        return np.where(each_class.fits_now[rows], held * 1000 + sign[0] * (rows * 7919 % 101), np.inf)

    ranking, epoch, held = Ranking(task_class, cost), 0, []
    by_few = Ranking(task_class, cost)
    by_few.cost_of_few = lambda each_class, rows: cost(each_class, np.array(rows, dtype=np.intp)).tolist()
    for change, at in changes:
        name = f"n{at}"
        row = cluster.rows.get(name)
        if change == "hold" and row is not None:
            held.append((row, make_task(str(len(held)))))
            cluster.hold(*held[-1])
        elif change == "release" and held:
            cluster.release(*held.pop(at % len(held)))
        elif change == "drop" and row is not None and row not in {row for row, _ in held}:
            cluster.drop_node(name)
        elif change in ("add", "resize", "cordon"):
            cluster.set_node(make_node(name, cpu=at % 5, unschedulable=change == "cordon"))
        elif change == "epoch":
            epoch, sign[0] = epoch + 1, -sign[0]
        elif change == "forget":
            cluster.shape.truncate(1)
            cluster.usage.truncate(1)
        task_class.refresh()
        ranking.refresh(epoch)
        by_few.refresh(epoch)
        costs = cost(task_class, np.arange(cluster.capacity))
        best = int(costs.argmin())
        assert by_few.best() == ranking.best() == (None if np.isinf(costs[best]) else (best, costs[best]))
        in_order = sorted((cost, row) for row, cost in enumerate(costs.tolist()) if cost < np.inf)
        assert ranking.first(3) == [(row, cost) for cost, row in in_order[:3]]
        assert all(ranking.cost_at(row) == cost for row, cost in enumerate(costs.tolist()))
        drawn = ranking.draw_best(Random(at))
        assert (drawn is None) == np.isinf(costs[best])
        assert drawn is None or drawn[1] == costs[best] == costs[drawn[0]]


def test_equal_costs_go_to_the_lowest_row() -> None:
    cluster = make_cluster(*(make_node(f"n{at}") for at in range(BLOCK + 2)))
    ranking = Ranking(TaskClass(cluster, make_spec(), ""), lambda each_class, rows: np.ones(len(rows)))
    ranking.refresh(0)
    assert ranking.best() == (0, 1.0)


def test_of_equal_costs_each_is_drawn_equally_often() -> None:
    equal = [3, BLOCK, BLOCK + 1, 3 * BLOCK - 1]
    cluster = make_cluster(*(make_node(f"n{at}") for at in range(3 * BLOCK)))
    ranking = Ranking(
        TaskClass(cluster, make_spec(), ""), lambda each_class, rows: np.where(np.isin(rows, equal), 1.0, 2.0)
    )
    ranking.refresh(0)
    rng = Random(1)
    drawn = Counter(ranking.draw_best(rng) for _ in range(4000))
    assert drawn.keys() == {(row, 1.0) for row in equal}
    assert all(abs(count - 1000) < 120 for count in drawn.values())  # four standard deviations


def test_there_is_no_best_node_if_every_cost_is_infinite() -> None:
    cluster = make_cluster(make_node())
    ranking = Ranking(
        TaskClass(cluster, make_spec(), ""), lambda each_class, rows: np.full(len(rows), np.inf)
    )
    ranking.refresh(0)
    assert ranking.best() is None
    assert ranking.draw_best(Random(1)) is None


def test_a_cost_function_that_raised_is_called_again() -> None:
    cluster, failing = make_cluster(make_node()), [True]

    def cost(each_class: TaskClass, rows: np.ndarray) -> np.ndarray:
        if failing[0]:
            raise ValueError("not now")
        return np.ones(len(rows))

    ranking = Ranking(TaskClass(cluster, make_spec(), ""), cost)
    with pytest.raises(ValueError, match="not now"):
        ranking.refresh(0)
    failing[0] = False
    ranking.refresh(0)
    assert ranking.best() == (0, 1.0)


def test_a_change_recomputes_one_row_only() -> None:
    cluster = make_cluster(*(make_node(f"n{at}") for at in range(1000)))
    evaluated: list[int] = []

    def cost(each_class: TaskClass, rows: np.ndarray) -> np.ndarray:
        evaluated.append(len(rows))
        return np.ones(len(rows))

    task_class = TaskClass(cluster, make_spec(), "")
    ranking = Ranking(task_class, cost)
    ranking.refresh(0)
    for row in (5, 500, 5):
        cluster.hold(row, make_task())
        task_class.refresh()
        ranking.refresh(0)
    ranking.refresh(0)
    assert evaluated == [1000, 1, 1, 1]


@pytest.mark.parametrize("count", [1, 5, 60, 2 * BLOCK])
def test_rows_that_change_at_once_are_ranked_anew_few_or_many(count: int) -> None:
    cluster = make_cluster(*(make_node(f"n{at}", cpu=4) for at in range(2 * BLOCK)))
    task_class = TaskClass(cluster, make_spec(cpu=1), "")
    column = cluster.columns["cpu"]
    ranking = Ranking(task_class, lambda _, rows: cluster.used[rows, column] * 1000 + rows)
    for turn in range(3):
        ranking.refresh(0)
        used = cluster.used[: 2 * BLOCK, column] * 1000 + np.arange(2 * BLOCK)
        assert ranking.best() == (int(used.argmin()), float(used.min())), turn
        for row in range(count):
            cluster.hold(row, make_task(f"{turn}-{row}"))
        task_class.refresh()


def test_scores_that_other_pods_change_are_weighed_again_at_the_cost_of_one_node() -> None:
    nodes = (make_node(f"n{at}", labels={"zone": str(at % 3)}) for at in range(3 * BLOCK))
    cluster, evaluated = make_cluster(*nodes), list[int]()
    web = (Requirement("app", "In", ("web",)),)
    spread = SpreadConstraint("zone", "default", web, counts_itself=True)
    task_class = TaskClass(cluster, replace(make_spec(), preferred_spread=(spread,)), "")

    def cost(each_class: TaskClass, rows: np.ndarray) -> np.ndarray:
        evaluated.append(len(rows))
        return np.ones(len(rows))

    def weigh(each_class: TaskClass, unweighed: np.ndarray, rows: np.ndarray | slice) -> np.ndarray:
        return unweighed - each_class.preference_score[rows]

    ranking, best = Ranking(task_class, cost), []
    ranking.weigh = weigh
    for row in (0, 1, 2):
        task_class.refresh()
        ranking.refresh(0)
        best.append(ranking.best())
        cluster.hold(row, replace(make_task(str(row), labels=(("app", "web"),)), node=f"n{row}"))
    assert [found and found[0] for found in best] == [0, 1, 2]
    assert evaluated == [3 * BLOCK, 1, 1]


def test_a_few_costs_are_weighed_like_many() -> None:
    cluster = make_cluster(*(make_node(f"n{at}") for at in range(2 * BLOCK)))
    task_class, rng = TaskClass(cluster, make_spec(), ""), Random(2)
    costs = np.array([1.0 + rng.randrange(3) for _ in range(cluster.capacity)])
    few, many = (Ranking(task_class, lambda _, rows: costs[rows]) for _ in range(2))
    few.cost_of_few = lambda _, rows: costs[list(rows)].tolist()
    for at in range(40):
        row, factor = rng.randrange(2 * BLOCK), 1.0 + at // 4
        costs[row] = rng.choice((0.5, 1.0, 2.0))
        cluster.usage.record(row)
        for each in (few, many):
            each.weigh = lambda _, unweighed, rows, by=factor: unweighed * by
            each.refresh(0, factor)
        weighed = costs[: len(cluster)] * factor
        best = int(weighed.argmin())
        assert few.best() == many.best() == (best, weighed[best])
        row, cost = few.draw_best(Random(at)) or (0, 0.0)
        assert (row, cost) == many.draw_best(Random(at))
        assert cost == weighed[best] == weighed[row]


def test_with_another_epoch_of_weights_no_cost_is_computed_again() -> None:
    cluster, evaluated = make_cluster(*(make_node(f"n{at}") for at in range(5))), list[int]()

    def cost(each_class: TaskClass, rows: np.ndarray) -> np.ndarray:
        evaluated.append(len(rows))
        return rows.astype(float)

    ranking = Ranking(TaskClass(cluster, make_spec(), ""), cost)
    ranking.weigh = lambda _, unweighed, rows: unweighed
    ranking.refresh(0, "first")
    assert ranking.best() == (0, 0.0)
    ranking.weigh = lambda _, unweighed, rows: -unweighed
    ranking.refresh(0, "second")
    assert ranking.best() == (4, -4.0)
    assert evaluated == [5]
