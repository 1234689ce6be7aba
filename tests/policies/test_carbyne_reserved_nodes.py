"""Carbyne keeps a node free for a due task that has found no room for long: where, and until when."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from builders import ExactSpeeds, make_engine, make_node, make_task
from checked_worlds import run_checked
from dag_world import DagWorld, job, stage
from eclectus.model.commands import Evict, Nominate
from eclectus.model.events import JobSeen, NodeSeen, TaskSeen
from eclectus.model.job import Job
from eclectus.model.objects import Task
from eclectus.policies.carbyne import Carbyne
from eclectus.policies.place.fit import BestFit
from short_scenarios import scenario
from staged_jobs import written
from worlds import World

LARGE = job("large", stage("s", 1, 3000, 30.0))


def small_jobs(tasks: int = 60) -> list[Job]:
    """Six jobs whose tasks end at different times, so that room comes a core at a time."""
    return [job(f"small-{at}", stage("s", tasks, 1000, 7.0 + at)) for at in range(6)]


def world(nodes: int = 2, **settings: Any) -> DagWorld:
    engine = make_engine(BestFit(), order=Carbyne(**settings))
    return DagWorld(engine, [make_node(f"n{at}", cpu=4) for at in range(nodes)])


def start_of_large(after: float, *jobs: Job) -> float:
    run = world(reserve_after=after)
    run.submit(*small_jobs())
    run.run(until=5.0)
    run.submit(*(jobs or (LARGE,)))
    run.run()
    return next(at for at, name, _ in run.starts if name.startswith("large"))


def nominated(run: DagWorld) -> list[tuple[str, str]]:
    """Task and node of each nomination, in order; empty: withdrawn."""
    return [(each.name, each.node) for each in run.commands if isinstance(each, Nominate)]


def test_the_wait_of_a_large_task_is_bounded_by_a_reservation() -> None:
    """Asked about at 31 s, the first time after 20 s; the longest small task runs for 12 s."""
    waits = {after: start_of_large(after) - 5.0 for after in (0.0, 20.0)}
    assert waits[0.0] > 60.0
    assert waits[20.0] <= 31.0 + 12.0


def test_nobody_is_evicted_and_the_plan_names_the_node_while_it_is_reserved() -> None:
    run = world(reserve_after=20.0)
    run.submit(*small_jobs())
    run.run(until=5.0)
    run.submit(LARGE)
    run.run()
    assert not any(isinstance(each, Evict) for each in run.commands)
    ((task, node),) = nominated(run)
    assert task.startswith("large")
    assert [plan.reserved_node for plan in run.plans["large"]] == ["", node, ""]


def test_a_job_has_one_reserved_node_at_a_time() -> None:
    run = world(nodes=40, reserve_after=20.0)
    run.submit(*(job(f"small-{at}", stage("s", 300, 1000, 7.0 + at)) for at in range(12)))
    run.run(until=5.0)
    run.submit(job("large", stage("s", 12, 3000, 30.0)))
    held: set[str] = set()
    while run.now < 200.0 and run.jobs.keys() - run.ends.keys():
        run.advance()
        for each in run.commands:
            if isinstance(each, Nominate) and each.node:
                held.add(each.uid)
        run.commands.clear()
        held -= {task.uid for task in run.tasks.values() if task.node}
        assert len(held) <= 1


def test_few_nodes_are_reserved_for_all_jobs_together() -> None:
    run = world(reserve_after=20.0)  # two nodes: one of them at a time
    run.submit(*small_jobs())
    run.run(until=5.0)
    run.submit(*(replace(LARGE, uid=f"uid-large-{at}", name=f"large-{at}") for at in range(3)))
    run.run(until=46.0)
    assert len(nominated(run)) - sum(name.startswith("large") for _, name, _ in run.starts) <= 1
    run.run()


def test_a_restart_keeps_the_reservation() -> None:
    run = world(reserve_after=20.0)
    run.submit(*small_jobs())
    run.run(until=5.0)
    run.submit(LARGE)
    run.run(until=36.5)
    ((name, node),) = nominated(run)
    task = next(each for each in run.tasks.values() if each.name == name)
    run.tasks[task.uid] = replace(task, nominated=node)  # as its status says
    run.restart(make_engine(BestFit(), order=Carbyne(reserve_after=20.0)))
    run.run()
    assert nominated(run) == [(name, node)]
    assert next(at for at, of, _ in run.starts if of == "large") <= 36.5 + 12.0


def test_no_node_is_reserved_for_a_task_that_is_not_due() -> None:
    """The large job lends: its stage can wait for the chain beside it."""
    patient = job("large", stage("chain", 1, 500, 500.0), stage("wide", 1, 3000, 1.0))
    run = world(reserve_after=1.0)
    run.submit(*small_jobs(), patient)
    run.run(until=60.0)
    assert nominated(run) == []


# -- on one node, step by step --------------------------------------------------------------------------


def busy_node(estimate: float | None, **settings: Any) -> tuple[World, Task]:
    """Two pods of another job hold a node of two cores; a task of job `large` needs both."""
    world = World(make_engine(BestFit(), order=Carbyne(**settings)), make_node("n", 2))
    world.step(JobSeen(job("large", stage("s", 1, 2000, 30.0))))
    world.add(*(make_task(f"other-{at}", estimate=estimate) for at in range(2)))
    large = make_task("large", cpu=2, created=1.0, job="uid-large", stage="s", estimate=30.0)
    world.add(large)
    return world, large


@pytest.mark.parametrize(("estimate", "seconds"), [(None, 300.0), (10.0, 300.0), (1000.0, 1878.0)])
def test_a_reservation_is_given_up_after_twice_the_expected_time(
    estimate: float | None, seconds: float
) -> None:
    """Or 300 s, if that is longer or the time is unknown; then the task waits as before for another."""
    world, _ = busy_node(estimate, reserve_after=60.0)
    times = []
    for node in ("n", "", "n"):
        while world.tasks["large"].nominated != node:
            world.sleep(1.0)
        times.append(world.now)
    assert times[0] == pytest.approx(75.0, abs=15.0)
    assert times[1] - times[0] == pytest.approx(seconds + 15.0, abs=20.0)  # it is looked at every 30 s
    assert times[2] - times[1] == pytest.approx(75.0, abs=20.0)


def test_a_reservation_that_is_given_up_is_no_lost_work() -> None:
    order = Carbyne(reserve_after=60.0)
    world = World(make_engine(BestFit(), order=order), make_node("n", 2))
    world.step(JobSeen(job("large", stage("s", 1, 2000, 30.0))))
    world.add(*(make_task(f"other-{at}", estimate=None) for at in range(2)))
    world.add(make_task("large", cpu=2, created=1.0, job="uid-large", stage="s", estimate=30.0))
    for node in ("n", ""):
        while world.tasks["large"].nominated != node:
            world.sleep(1.0)
    assert order._planner.jobs["uid-large"].deadline.slips == 0


def test_a_reservation_ends_when_its_job_is_suspended() -> None:
    world, _ = busy_node(10.0, reserve_after=1.0)
    world.sleep(5.0)
    assert world.tasks["large"].nominated == "n"
    world.step(JobSeen(job("large", stage("s", 1, 2000, 30.0), suspended=True)))
    world.end("other-0")
    assert world.tasks["large"].nominated == ""


def test_no_node_is_reserved_for_a_task_of_a_suspended_job() -> None:
    """It would be given up in the same step, and reserved again half a minute later."""
    world, _ = busy_node(10.0, reserve_after=1.0)
    world.step(JobSeen(job("large", stage("s", 1, 2000, 30.0), suspended=True)))
    world.sleep(100.0)
    assert world.nominations == []
    world.step(JobSeen(job("large", stage("s", 1, 2000, 30.0))))
    world.sleep(65.0)  # it is asked about every 30 s
    assert world.tasks["large"].nominated == "n"


def test_a_reservation_is_kept_for_a_pod_that_requests_more_than_its_stage_says() -> None:
    """As where a sidecar is added to it."""
    world = World(make_engine(BestFit(), order=Carbyne(reserve_after=1.0)), make_node("n", 2))
    world.step(JobSeen(job("large", stage("s", 1, 1000, 30.0))))
    world.add(*(make_task(f"other-{at}", estimate=10.0) for at in range(2)))
    world.add(make_task("large", cpu=2, created=1.0, job="uid-large", stage="s", estimate=30.0))
    world.sleep(100.0)
    assert [each.node for each in world.nominations] == ["n"]


def test_the_node_that_has_room_first_is_reserved() -> None:
    world, _ = busy_node(100.0, reserve_after=5.0)
    running = {"phase": "Running", "started": 0.0}
    world.step(
        NodeSeen(make_node("soon", 2)),
        NodeSeen(make_node("service", 2)),
        TaskSeen(make_task("short", cpu=2, estimate=20.0, node="soon", **running)),
        TaskSeen(make_task("web", long_running=True, node="service", **running)),
    )
    world.sleep(20.0)
    assert world.tasks["large"].nominated == "soon"


def test_a_pod_with_much_work_on_a_fast_node_ends_sooner_than_one_with_less_on_a_slow_node() -> None:
    """Work of 200 s and of 60 s; the nodes are 1.8 and 0.2 times as fast as both in the mean."""
    learn = ExactSpeeds({"fast": 4.0, "slow": 0.5})
    world = World(make_engine(BestFit(), learn, order=Carbyne(reserve_after=5.0)))
    world.step(JobSeen(job("large", stage("s", 1, 2000, 30.0))))
    for node, work in (("slow", 60.0), ("fast", 200.0)):
        world.step(NodeSeen(make_node(node, 2)))
        there = make_task(f"on-{node}", cpu=2, estimate=work, node=node, phase="Running", started=0.0)
        world.step(TaskSeen(there))
    world.add(make_task("large", cpu=2, created=1.0, job="uid-large", stage="s", estimate=30.0))
    world.sleep(20.0)
    assert world.tasks["large"].nominated == "fast"


def test_no_node_is_reserved_where_services_are_in_the_way() -> None:
    world, _ = busy_node(10.0, reserve_after=1.0)
    for at in range(2):
        world.put(
            replace(world.tasks[f"other-{at}"], spec=replace(world.tasks["other-0"].spec, long_running=True))
        )
    world.sleep(40.0)
    assert world.tasks["large"].nominated == ""


# -- in the simulator -----------------------------------------------------------------------------------


def small_in_a_file(at: int) -> dict[str, Any]:
    stages = [{"name": "s", "tasks": 60, "seconds": 7 + at, "requests": {"cpu": 1}}]
    return {"name": f"small-{at}", "arrival": 0, "stages": stages}


def responses(folder: Path, after: float) -> tuple[float, float]:
    """Seconds that the large job takes beside small ones, and the mean of these."""
    large = {"name": "large", "arrival": 5, "stages": [{"name": "s", "seconds": 30, "requests": {"cpu": 3}}]}
    jobs = written(folder, *map(small_in_a_file, range(6)), large)
    profile = {
        "schedulerName": "it",
        "order": {"policy": "carbyne", "reserveAfter": after},
        "place": {"policy": "best-fit"},
        "learn": {"policy": "none"},
    }
    read = scenario(
        workload={"dags": jobs | {"arrivals": "recorded"}},
        cluster={"groups": [{"count": 2, "resources": {"cpu": 4}}]},
        profiles=[profile],
        measure={},
        allowUnstable=True,
    )
    found = run_checked(read, read.profiles[0], 1)
    assert found.faults == 0
    assert found.dags is not None
    times = {each.name: each.response for each in found.dags.jobs}
    own = times.pop("large")
    return own, sum(times.values()) / len(times)


def test_a_large_due_task_starves_behind_small_ones_unless_a_node_is_reserved(tmp_path: Path) -> None:
    without, with_it = responses(tmp_path, 0.0), responses(tmp_path, 20.0)
    assert with_it[0] <= 31.0 + 12.0 + 30.0 < without[0]
    assert with_it[1] < 1.1 * without[1]
