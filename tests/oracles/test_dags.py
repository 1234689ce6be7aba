"""Jobs with stages against the bounds of every work-conserving schedule.

With work W, longest path C and m equal slots the makespan of a lone job, all its tasks as long as their
stage's mean, lies between max(C, W/m) and W/m + (1 - 1/m) C (Graham, "Bounds on Multiprocessing Timing
Anomalies", 1969). Checked for every published TPC-H profile, on as many slots as it was measured with
(maxCores), and for every published Alibaba job on 4 and on 32 slots, one per instance: so few that most
jobs queue, and so many that paths bind.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from eclectus.sim.base.work import Arrival, Dag
from eclectus.sim.runs import build_world
from eclectus.sim.scenario import Scenario
from published_data import published
from short_scenarios import near, scenario

QUICK_TASKS = 400  # the quick tests run jobs of at most so many tasks
ALIBABA_SLOTS = (4, 32)
COLUMNS = [(size, cores) for size in ("50g", "100g", "250g", "500g") for cores in (50, 75, 100, 200)]
ROUNDING = 1e-9  # relative: sums of the same numbers in another order

GOLDEN = {  # query, size, maxCores -> stages, tasks, W, C, both bounds
    ("Q1", "50g", 50): (3, 297, 2879.8, 11.00, 57.60, 68.37),
    ("Q6", "50g", 50): (2, 296, 1762.4, 6.69, 35.25, 41.81),
    ("Q2", "100g", 100): (17, 639, 2314.3, 17.19, 23.14, 40.16),
    ("Q9", "100g", 100): (13, 1590, 14864.6, 21.79, 148.65, 170.22),
    ("Q21", "500g", 200): (14, 11106, 274367.1, 76.63, 1371.84, 1448.08),
}


def lone(workload: dict[str, Any], slots: int, order: str = "fifo", place: str = "best-fit") -> Scenario:
    """A cluster with so many slots, at most 25 per node."""
    count = next(count for count in range(1, slots + 1) if slots % count == 0 and slots // count <= 25)
    profile = {"schedulerName": "it", "order": {"policy": order}, "place": {"policy": place}}
    return scenario(
        cluster={"groups": [{"count": count, "slots": slots // count}]},
        workload={"dags": workload},
        profiles=[profile | {"learn": {"policy": "none"}}],
        measure={},
    )


@cache
def tpch(size: str, cores: int, **policies: str) -> Scenario:
    files = {
        "file": str(published("tpch-dags/cloudlab_22query_tpch_profiles.json.gz")),
        "graphs": str(published("tpch-dags/queries.yaml.gz")),
    }
    return lone({"format": "tpch", "size": size, "cores": cores} | files, cores, **policies)


@cache
def alibaba(slots: int) -> Scenario:
    file = str(published("alibaba2018-dags/alibaba_random_50_dags.jsonl.gz"))
    return lone({"format": "alibaba", "file": file, "tasks": {}}, slots)


def jobs(asked: Scenario) -> dict[str, Arrival]:
    return {arrival.dag.name: arrival for arrival in asked.plan.arrivals(1) if arrival.dag is not None}


def makespan(asked: Scenario, job: Arrival) -> float:
    """The makespan of the job alone."""
    plan = replace(asked.plan, arrivals=lambda seed: iter([job]), measured=range(len(job.sizes)))
    alone = replace(asked, plan=plan)
    world = build_world(alone, alone.profiles[0], seed=1)
    assert world.run()
    assert world.fault_count == 0
    return world.now


def bounds(dag: Dag, slots: int) -> tuple[float, float]:
    return max(dag.path, dag.work / slots), dag.work / slots + (1 - 1 / slots) * dag.path


def outside(asked: Scenario, slots: int, chosen: Iterable[Arrival]) -> list[str]:
    """Jobs whose makespan is outside of the bounds."""
    found = []
    for job in chosen:
        assert job.dag is not None
        least, most = bounds(job.dag, slots)
        took = makespan(asked, job)
        if not least * (1 - ROUNDING) <= took <= most * (1 + ROUNDING):
            found.append(f"{job.dag.name} took {took}, not {least} to {most}")
    return found


def small(asked: Scenario) -> list[Arrival]:
    return [job for job in jobs(asked).values() if len(job.sizes) <= QUICK_TASKS]


# -- what is read ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", GOLDEN, ids=lambda profile: "-".join(map(str, profile)))
def test_graphs_have_the_work_the_path_and_the_bounds_of_the_published_table(
    profile: tuple[str, str, int],
) -> None:
    query, size, cores = profile
    dag = jobs(tpch(size, cores))[query].dag
    assert dag is not None
    lower, upper = bounds(dag, cores)
    found = (len(dag.stages), dag.tasks, round(dag.work, 1), *(round(x, 2) for x in (dag.path, lower, upper)))
    assert found == GOLDEN[profile]
    assert near(f"TPC-H {query} {size} on {cores}: work, slot-s", [dag.work], GOLDEN[profile][2], within=1e-4)


def test_every_published_graph_is_read_whole() -> None:
    queries = [job.dag for column in COLUMNS for job in jobs(tpch(*column)).values() if job.dag is not None]
    assert (len(queries), sum(len(dag.stages) for dag in queries)) == (352, 2736)
    assert sum(dag.tasks for dag in queries) == 685_116
    assert (min(dag.path for dag in queries), max(dag.path for dag in queries)) == pytest.approx(
        (3.25, 76.63), abs=0.005
    )
    batch = [job.dag for job in jobs(alibaba(4)).values() if job.dag is not None]
    edges = sum(len(stage.parents) for dag in batch for stage in dag.stages)
    assert (len(batch), sum(len(dag.stages) for dag in batch), edges) == (50, 197, 155)
    assert (sum(dag.tasks for dag in batch), round(sum(dag.work for dag in batch))) == (31_236, 1_551_058)
    assert (min(dag.path for dag in batch), max(dag.path for dag in batch)) == pytest.approx(
        (1.0, 1234.7), abs=0.05
    )


# -- how long it takes -----------------------------------------------------------------------------------


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: f"{column[0]}-{column[1]}")
def test_small_queries_keep_the_bounds(column: tuple[str, int]) -> None:
    asked = tpch(*column)
    assert outside(asked, column[1], small(asked)) == []


@pytest.mark.parametrize("order", ["sjf", "srtf", "drf"])
def test_so_they_do_under_every_order(order: str) -> None:
    asked = tpch("50g", 50, order=order)
    assert outside(asked, 50, small(asked)) == []


def test_and_where_tasks_are_packed() -> None:
    asked = tpch("50g", 50, place="tetris")
    assert outside(asked, 50, small(asked)) == []


@pytest.mark.parametrize("slots", ALIBABA_SLOTS)
def test_small_batch_jobs_keep_the_bounds(slots: int) -> None:
    asked = alibaba(slots)
    assert outside(asked, slots, small(asked)) == []


@pytest.mark.slow
@pytest.mark.parametrize("size", sorted({size for size, _ in COLUMNS}))
def test_all_queries_keep_the_bounds(size: str) -> None:
    kept = 0
    for cores in (cores for each, cores in COLUMNS if each == size):
        asked = tpch(size, cores)
        assert outside(asked, cores, jobs(asked).values()) == []
        kept += len(jobs(asked))
    assert near(f"TPC-H {size}: lone queries within Graham's bounds", [float(kept)], 88, within=0)


@pytest.mark.slow
@pytest.mark.parametrize("slots", ALIBABA_SLOTS)
def test_all_50_batch_jobs_keep_the_bounds(slots: int) -> None:
    asked = alibaba(slots)
    assert outside(asked, slots, jobs(asked).values()) == []
    kept = float(len(jobs(asked)))
    assert near(f"Alibaba: lone jobs within Graham's bounds, {slots} slots", [kept], 50, within=0)
