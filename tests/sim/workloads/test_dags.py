"""Jobs that are graphs of stages: critical paths, arrivals, simulated runs and orders."""

from __future__ import annotations

from collections import defaultdict
from itertools import islice, pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from checked_worlds import build_checked, run_checked
from eclectus.model.errors import SettingsError
from eclectus.model.events import TaskSeen
from eclectus.model.objects import Task
from eclectus.sim.base.work import build_dag
from eclectus.sim.runs import run
from eclectus.sim.world.world import World
from short_scenarios import scenario
from staged_jobs import DIAMOND, Stage, drafts, job, written

# -- graphs ------------------------------------------------------------------------------------------


def test_paths_are_the_critical_path_method_s_bottom_levels() -> None:
    dag = build_dag("j", drafts(*DIAMOND))
    assert {stage.name: stage.path for stage in dag.stages} == {"a": 9.0, "b": 6.0, "c": 3.0, "d": 2.0}
    assert (dag.tasks, dag.work, dag.path) == (7, 15.0, 9.0)


def test_stages_are_sorted_topologically() -> None:
    dag = build_dag("j", drafts(*reversed(DIAMOND)))
    for at, stage in enumerate(dag.stages):
        assert all(parent < at for parent in stage.parents)
        assert all(at in dag.stages[child].parents for child in stage.children)


@pytest.mark.parametrize("seed", range(5))
def test_the_critical_path_is_the_longest_of_all_paths(seed: int) -> None:
    chance = Random(seed)
    names = "abcdefgh"
    stages = [
        (
            name,
            chance.randrange(1, 4),
            float(chance.randrange(1, 9)),
            "".join(chance.sample(names[:at], min(at, 2))),
        )
        for at, name in enumerate(names)
    ]
    seconds = {name: each for name, _, each, _ in stages}
    below = {name: [child for child, _, _, parents in stages if name in parents] for name in names}

    def longest(name: str) -> float:
        return seconds[name] + max(map(longest, below[name]), default=0.0)

    chance.shuffle(stages)
    for stage in build_dag("j", drafts(*stages)).stages:
        assert stage.path == longest(stage.name)


def test_a_parent_named_twice_is_one_parent() -> None:
    assert [stage.parents for stage in build_dag("j", drafts(("a", 1, 1, ""), ("b", 1, 1, "aa"))).stages] == [
        (),
        (0,),
    ]


@pytest.mark.parametrize(
    ("stages", "words"),
    [
        ([("a", 1, 1, "a")], "form a cycle: a -> a"),
        (
            [("ab", 1, 1, ""), ("b", 1, 1, "x")],
            "stage 'b' has a parent 'x' that is not a stage; known are: ab, b",
        ),
        ([("a", 1, 1, ""), ("a", 1, 1, "")], "has two stages 'a'"),
        ([], "has no stage"),
    ],
)
def test_an_invalid_graph_is_refused_by_name(stages: list[Stage], words: str) -> None:
    with pytest.raises(ValueError, match="job 'j'") as refused:
        build_dag("j", drafts(*stages))
    assert words in str(refused.value)


def test_a_cycle_is_reported_from_child_to_parent() -> None:
    with pytest.raises(ValueError, match="form a cycle: ") as refused:
        build_dag("j", drafts(("z", 1, 1, ""), ("a", 1, 1, "bz"), ("b", 1, 1, "c"), ("c", 1, 1, "a")))
    cycle = str(refused.value).rpartition(": ")[2].split(" -> ")
    assert cycle[0] == cycle[-1]
    assert set(pairwise(cycle)) == {("a", "b"), ("b", "c"), ("c", "a")}


# -- arrivals ------------------------------------------------------------------------------------------

THREE = [
    job(name, ("a", 2, 4.0, ""), ("b", 1, 2.0, "a"), arrival=at)
    for name, at in (("x", 9), ("y", 5), ("z", 7))
]


def arrivals(folder: Path, seed: int = 1, most: int = 99, **said: Any) -> list[tuple[float, str]]:
    read = scenario(
        workload={"dags": written(folder, *THREE) | said},
        cluster={"groups": [{"slots": 50}]},
        measure={},
    )
    return [(each.at, each.dag.name if each.dag else "") for each in islice(read.plan.arrivals(seed), most)]


def test_together_is_each_job_once_at_0_in_a_random_order(tmp_path: Path) -> None:
    orders = {tuple(name for _, name in arrivals(tmp_path, seed)) for seed in range(20)}
    assert {at for at, _ in arrivals(tmp_path)} == {0.0}
    assert {tuple(sorted(order)) for order in orders} == {("x", "y", "z")}
    assert len(orders) > 3
    assert sorted(name for _, name in arrivals(tmp_path, jobs=5)) == ["x", "x", "y", "y", "z"]


def test_recorded_is_from_the_first_arrival_on(tmp_path: Path) -> None:
    assert arrivals(tmp_path, arrivals="recorded", stretch=0.5) == [(0.0, "y"), (1.0, "z"), (2.0, "x")]
    assert arrivals(tmp_path, arrivals="recorded", jobs=2) == [(0.0, "y"), (4.0, "x")]
    with pytest.raises(SettingsError, match="jobs: is more than the file contains"):
        arrivals(tmp_path, arrivals="recorded", jobs=4)


def test_poisson_repeats_all_jobs_equally_often(tmp_path: Path) -> None:
    found = arrivals(tmp_path, most=3000, arrivals="poisson", rate=2.0)
    times = [at for at, _ in found]
    assert times[-1] == pytest.approx(1500, rel=0.05)
    assert np.diff(times).std() == pytest.approx(0.5, rel=0.1)
    assert all({name for _, name in found[at : at + 3]} == {"x", "y", "z"} for at in range(0, 3000, 3))
    assert len(arrivals(tmp_path, arrivals="poisson", rate=2.0, jobs=7)) == 7


def test_load_is_work_over_capacity(tmp_path: Path) -> None:
    cluster = {"groups": [{"slots": 10, "speed": 2}]}
    workload = written(tmp_path, *THREE) | {"arrivals": "poisson", "load": 0.5}
    read = scenario(workload={"dags": workload}, cluster=cluster)
    assert read.load == pytest.approx(0.5)
    assert read.plan.tasks_a_second == pytest.approx(3.0)  # three tasks and ten seconds of work a job


def test_sizes_have_their_stage_s_mean_and_the_given_distribution(tmp_path: Path) -> None:
    many = job("m", ("a", 20_000, 4.0, ""))

    def sizes(**said: Any) -> np.ndarray[Any, Any]:
        read = scenario(workload={"dags": written(tmp_path, many) | said}, measure={})
        return np.array(next(read.plan.arrivals(1)).sizes)

    assert set(sizes()) == {4.0}
    drawn = sizes(sizes={"law": "exponential"})
    assert (drawn.mean(), drawn.std()) == (pytest.approx(4.0, rel=0.03), pytest.approx(4.0, rel=0.05))


# -- in the world ----------------------------------------------------------------------------------------


class StepObserver:
    """Collects the events of the engine."""

    def __init__(self, world: World) -> None:
        self.pending: dict[str, Task] = {}
        self.ended: dict[str, float] = {}
        self.moments: dict[str, float] = {}
        world.on_step = self._on_step

    def _on_step(self, now: float, events: Any, commands: Any) -> None:
        for event in events:
            if isinstance(event, TaskSeen) and event.task.phase == "Pending":
                self.pending[event.task.name] = event.task
                self.moments[event.task.name] = now
            elif isinstance(event, TaskSeen) and event.task.phase == "Succeeded":
                self.ended[event.task.name] = now


def lived(
    folder: Path, *jobs: dict[str, Any], order: str = "fifo", slots: int = 2, **more: Any
) -> tuple[World, StepObserver]:
    """A world with one machine, after its run."""
    profile = {"schedulerName": "it", "order": {"policy": order}, "place": {"policy": "best-fit"}}
    read = scenario(
        workload={"dags": written(folder, *jobs)},
        profiles=[profile | {"learn": {"policy": "none"}}],
        **{"cluster": {"groups": [{"slots": slots}]}, "measure": {}} | more,
    )
    world = build_checked(read, read.profiles[0], seed=1)
    observer = StepObserver(world)
    world.run()
    return world, observer


def by_stage(observer: StepObserver) -> dict[int, list[str]]:
    found: dict[int, list[str]] = defaultdict(list)
    for name in observer.pending:
        found[int(name.split("-")[2].split(".")[0])].append(name)
    return found


def test_pods_of_a_stage_appear_when_the_last_task_of_its_parents_has_ended(tmp_path: Path) -> None:
    world, observer = lived(tmp_path, job("j", *DIAMOND))  # a: 2 at once; b beside c, c, then c; d
    stages = by_stage(observer)
    assert {at: len(names) for at, names in stages.items()} == {0: 2, 1: 1, 2: 3, 3: 1}
    assert [observer.moments[stages[at][0]] for at in range(4)] == [0.0, 3.0, 3.0, 7.0]
    assert world.now == 9.0
    assert world.record.response_seconds == pytest.approx(world.record.system_seconds)


def test_what_the_scheduler_sees_of_a_job(tmp_path: Path) -> None:
    _, observer = lived(tmp_path, job("j", *DIAMOND))
    found = {
        at: {
            (observer.pending[name].estimate, observer.pending[name].path, observer.pending[name].job_work)
            for name in names
        }
        for at, names in by_stage(observer).items()
    }
    assert found == {0: {(3.0, 9.0, 15.0)}, 1: {(4.0, 6.0, 9.0)}, 2: {(1.0, 3.0, 9.0)}, 3: {(2.0, 2.0, 2.0)}}
    assert {task.job for task in observer.pending.values()} == {"job-0"}


def test_lost_tasks_are_submitted_again_and_their_children_wait(tmp_path: Path) -> None:
    events = [{"at": 1, "action": "fail", "group": "g0"}, {"at": 5, "action": "recover", "group": "g0"}]
    world, observer = lived(tmp_path, job("j", *DIAMOND), events=events)
    assert world.now == 14.0  # everything again, from 5 on
    assert {name for name in observer.pending if name.startswith("job-0-0")} == {
        "job-0-0.0", "job-0-0.1", "job-0-0.0-1", "job-0-0.1-1",
    }  # fmt: skip
    again = {name: observer.pending[name].job_work for name in ("job-0-0.0-1", "job-0-0.1-1")}
    assert again == {"job-0-0.0-1": 12.0, "job-0-0.1-1": 15.0}
    assert observer.moments["job-0-1.0"] == 8.0


def test_every_hop_of_the_network_costs_its_delay_for_every_stage(tmp_path: Path) -> None:
    chain = job("j", ("a", 1, 3.0, ""), ("b", 1, 2.0, "a"))
    delayed = {"groups": [{"slots": 2}], "networkDelay": "1s"}
    world, _ = lived(tmp_path, chain, cluster=delayed)
    assert world.now == 3.0 + 2.0 + 2 * 2.0  # each pod is seen, each bind arrives


def test_a_job_s_response_is_from_its_arrival_to_its_last_stage_s_end(tmp_path: Path) -> None:
    read = scenario(
        workload={"dags": written(tmp_path, job("j", *DIAMOND))},
        cluster={"groups": [{"slots": 2}]},
        measure={},
    )
    (found,) = [run_checked(read, read.profiles[0], 1)]
    assert (found.jobs.count, found.jobs.mean, found.seconds) == (1, 9.0, 9.0)
    assert found.response.count == 7
    assert found.response.mean == pytest.approx((3 + 3 + 4 + 1 + 2 + 3 + 2) / 7)  # each from its submission


def test_with_perturbations_every_stage_ends_under_every_order(tmp_path: Path) -> None:
    rough = [
        {"at": 30, "action": "fail", "group": "g0", "count": 1},
        {"at": 60, "action": "recover", "group": "g0"},
        {"at": 90, "action": "scale", "group": "g0", "factor": 0.5},
    ]
    jobs = [job(f"j{at}", *DIAMOND) for at in range(3)]
    for order in ("fifo", "sjf", "srtf", "drf"):
        profile = {"schedulerName": "it", "order": {"policy": order}, "learn": {"policy": "rosella"}}
        read = scenario(
            workload={
                "dags": written(tmp_path, *jobs)
                | {"arrivals": "poisson", "load": 0.5, "sizes": {"law": "exponential"}}
            },
            cluster={"groups": [{"count": 3, "slots": 2}], "networkDelay": "50ms"},
            events=rough,
            profiles=[profile],
            measure={"tasks": 700},
        )
        found = run_checked(read, read.profiles[0], 1)
        assert (found.complete, found.faults, found.tasks) == (True, 0, 700)
        assert found.jobs.count == 70


def test_orders_and_tetris_work_with_stale_views(tmp_path: Path) -> None:
    profile = {"schedulerName": "it", "order": {"policy": "srtf"}, "place": {"policy": "tetris"}}
    read = scenario(
        workload={"dags": written(tmp_path, *(job(f"j{at}", *DIAMOND) for at in range(8)))},
        cluster={"groups": [{"count": 3, "slots": 2}]},
        profiles=[profile | {"dispatchers": {"count": 2, "age": 5}, "learn": {"policy": "none"}}],
        measure={},
    )
    found = run(read, read.profiles[0], 1)
    assert (found.jobs.count, found.faults) == (8, 0)


# -- orders compared -------------------------------------------------------------------------------------


def mean_response(folder: Path, order: str, *jobs: dict[str, Any], slots: int = 4) -> float:
    profile = {"schedulerName": "it", "order": {"policy": order}, "place": {"policy": "best-fit"}}
    read = scenario(
        workload={"dags": written(folder, *jobs)},
        cluster={"groups": [{"slots": slots}]},
        profiles=[profile | {"learn": {"policy": "none"}}],
        measure={},
    )
    return sum(run(read, read.profiles[0], seed).jobs.mean for seed in range(1, 6)) / 5


SHORT = [job(f"short{at}", ("a", 4, 2.0, ""), ("b", 1, 1.0, "a")) for at in range(6)]
LONG = [job(f"long{at}", ("a", 4, 20.0, ""), ("b", 4, 10.0, "a")) for at in range(3)]
WIDE = [job(f"wide{at}", ("a", 60, 1.5, "")) for at in range(3)]  # a short path, and much work
NARROW = [job(f"narrow{at}", ("a", 2, 5.0, ""), ("b", 1, 3.0, "a")) for at in range(6)]


def test_sjf_has_a_better_mean_than_fifo(tmp_path: Path) -> None:
    assert mean_response(tmp_path, "sjf", *SHORT, *LONG) < 0.8 * mean_response(
        tmp_path, "fifo", *SHORT, *LONG
    )


def test_srtf_has_a_better_mean_than_sjf(tmp_path: Path) -> None:
    assert mean_response(tmp_path, "srtf", *WIDE, *NARROW) < 0.8 * mean_response(
        tmp_path, "sjf", *WIDE, *NARROW
    )
