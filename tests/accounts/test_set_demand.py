"""What each set of constraints demands: what is counted, when, and that it is what stands in the queues."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from builders import make_cluster, make_engine, make_node, make_spec, make_task
from eclectus.accounts.node_prices import LONG, SETS_MOST, SetDemand
from eclectus.feasibility.constraint_set import constraint_set, weighted_sets
from eclectus.model.objects import Preference, Requirement, Task, Term
from eclectus.policies.place.phoenix import ScarceNodesLast
from random_stories import Story

ARM = (("arch", "arm"),)
SSD = Term((Requirement("disk", "In", ("ssd",)),))


def counting() -> SetDemand:
    return SetDemand(make_cluster(make_node()))


def cores(demand: SetDemand, task: Task, at: int = 0) -> float:
    """What the set of the task demands, or that of its preference."""
    row = demand.sets.get(weighted_sets(task.spec)[at][0])
    return 0.0 if row is None else float(demand.amounts[row, 1]) / 1000


def test_a_task_counts_while_it_waits_or_holds() -> None:
    demand, task = counting(), make_task(cpu=2, node_selector=ARM)
    demand.wait(task)
    demand.hold(task)
    demand.leave(task.uid)
    assert cores(demand, task) == 2
    demand.release(task.uid)
    assert cores(demand, task) == 0
    assert not demand.amounts.any()


def test_tasks_of_one_set_are_added_whatever_they_request() -> None:
    demand = counting()
    for name, cpu in (("a", 1), ("b", 3)):
        demand.wait(make_task(name, cpu=cpu, workload=name, node_selector=ARM))
    assert cores(demand, make_task(node_selector=ARM)) == 4
    assert len(demand.sets) == 1


def test_a_preference_counts_by_its_weight() -> None:
    demand = counting()
    other = Term((Requirement("zone", "In", ("a",)),))
    task = make_task(cpu=4, preferences=(Preference(3, SSD), Preference(1, other)))
    demand.wait(task)
    assert [cores(demand, task, at) for at in range(3)] == [4, 3, 1]


@pytest.mark.parametrize("field", ["long_running", "probe"])
def test_services_and_probes_do_not_count(field: str) -> None:
    demand, task = counting(), make_task(**{field: True})
    demand.wait(task)
    demand.hold(task)
    demand.release(task.uid)
    assert not demand.sets


def test_a_changed_task_counts_as_it_is_now() -> None:
    demand, task = counting(), make_task(cpu=2)
    demand.wait(task)
    demand.wait(replace(task, spec=make_spec(cpu=3, node_selector=ARM)))
    assert cores(demand, task) == 0
    assert cores(demand, make_task(node_selector=ARM)) == 3


def test_long_tasks_are_those_of_twice_the_mean_estimate() -> None:
    demand = counting()
    for at in range(18):
        demand.wait(make_task(f"short{at}", estimate=5.0))
    demand.wait(make_task("long", cpu=2, estimate=60.0))
    demand.wait(make_task("unknown"))
    assert demand.is_long("uid-long")
    assert not any(map(demand.is_long, ["uid-short3", "uid-unknown", "uid-gone"]))
    assert demand.amounts[LONG, 1] == 2000


def test_of_equal_tasks_none_is_long() -> None:
    demand = counting()
    for at in range(9):
        demand.wait(make_task(f"t{at}", estimate=7.3))
    assert not demand.amounts[LONG].any()


def test_the_number_of_sets_is_bounded_and_rows_are_used_again() -> None:
    demand = counting()
    tasks = [make_task(f"t{at}", node_selector=(("team", f"t{at}"),)) for at in range(SETS_MOST + 1)]
    for task in tasks:
        demand.wait(task)
    assert len(demand.sets) == SETS_MOST
    assert cores(demand, tasks[-1]) == 0
    demand.leave(tasks[0].uid)
    demand.drop(constraint_set(tasks[0].spec))
    demand.wait(replace(tasks[-1], uid="again"))
    assert cores(demand, tasks[-1]) == 1


def test_a_resource_that_nodes_begin_to_offer_is_counted_from_then_on() -> None:
    cluster = make_cluster(make_node())
    demand = SetDemand(cluster)
    demand.wait(make_task("a", gpus=1))
    cluster.set_node(make_node("m", gpus=4))
    demand.wait(make_task("b", gpus=1))
    demand.leave("uid-a")
    assert demand.amounts[:, cluster.columns["gpu"]].sum() == 1
    demand.leave("uid-b")
    assert not demand.amounts.any()


@pytest.mark.parametrize("seed", range(3))
def test_in_a_story_of_everything_what_is_counted_is_what_waits_and_holds(seed: int) -> None:
    engine = make_engine(ScarceNodesLast())
    Story(engine, seed).run(60)
    state = engine._state
    assert state.accounts.pricing is not None
    demand, expected = state.accounts.pricing.demand, SetDemand(state.cluster)
    for task in state.pending.values():
        if not task.gates and not task.deleting:
            expected.wait(task)
    for placed in state.placed._placed.values():
        expected.hold(placed.task)
    counted = {each: demand.amounts[row] for each, row in demand.sets.items() if demand.tasks[row]}
    assert counted.keys() == expected.sets.keys()
    for each, row in expected.sets.items():
        assert np.allclose(counted[each], expected.amounts[row])
