"""The cases of `--only engine` are what their names say, and their figures are judged."""

import pytest

from eclectus.model.events import TaskSeen
from eclectus_bench import engine
from eclectus_bench.engine import EngineCost
from eclectus_bench.steps.busy_minute import BusyMinute, Size
from eclectus_bench.steps.driver import Driver, make_node, make_task

SMALL = engine.Course(
    nodes=20,
    held_back=40,
    jobs=(10,),
    pools=(10,),
    in_pools=60,
    jobs_in_pools=5,
    unplaceable=5,
    terms=2,
    pending=10,
    minute=Size(nodes=20, workloads=3, pods_per_second=10.0, seconds=8),
    priced=(20,),
    sets=30,
    streamed=10,
    rounds=((20, 4, 12),),
    steps=2,
)


@pytest.mark.parametrize("case", [case for case, _ in engine._cases(SMALL)], ids=lambda case: case.__name__)
def test_every_case_runs_and_has_its_figures(case):
    for cost in case(SMALL):
        assert 0 < cost.least_ms <= cost.median_ms <= cost.most_ms


@pytest.mark.parametrize("kind", [engine.drf_jobs, engine.h_drf_jobs])
def test_each_number_of_jobs_is_a_case_of_its_own(kind):
    found = [course.jobs for case, course in engine._cases(engine.FULL) if case is kind]
    assert found == [(jobs,) for jobs in engine.FULL.jobs]


def test_a_median_is_judged_where_a_figure_is_wanted():
    costs = [EngineCost("case", median, 0.1, 9.0, wanted) for median, wanted in ((1, 2), (2, 2), (3, None))]
    assert [cost.met for cost in costs] == [True, False, None]
    first, second, third = engine.lines(costs)
    assert first.endswith("median < 2 met")
    assert second.endswith("median < 2 MISSED")
    assert third.split() == ["case", "3.000", "0.100", "9.000"]


def test_where_the_longest_step_counts_the_median_does_not():
    (line,) = engine.lines([EngineCost("case", 1.0, 0.1, 9.0, 2.0, "most")])
    assert line.endswith("most < 2 MISSED")


def test_in_the_busy_minute_everything_happens_that_costs_the_engine_time():
    minute, kinds, pods = BusyMinute(SMALL.minute), set(), {}
    for now, events in minute.steps():
        for event in events:
            kinds.add(type(event).__name__)
            if isinstance(event, TaskSeen):
                pods.setdefault(event.task.uid, []).append(event.task)
                if not event.task.node:
                    minute.bound(event.task.uid, "node-00003", now)
    everything = "NodeSeen NodeGone NodeRecalled LoadSeen TaskSeen TaskGone BindConfirmed"
    assert kinds == set(everything.split())
    lives = {tuple((bool(task.node), task.phase) for task in seen) for seen in pods.values()}
    assert ((False, "Pending"), (True, "Pending"), (True, "Running"), (True, "Succeeded")) in lives
    assert any(task.notional_requests for seen in pods.values() for task in seen)


def test_a_pod_that_should_wait_and_is_placed_is_an_error():
    from eclectus.policies.order.fifo import FifoOrder

    with pytest.raises(RuntimeError, match="should wait"):
        Driver(FifoOrder(), [make_node(0)]).wait(make_task("a"))
