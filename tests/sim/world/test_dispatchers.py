"""Several dispatchers and their stale views of the queues."""

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from builders import make_engine, make_task
from eclectus.framework import Action, Bind, Enqueue, Place, View
from eclectus.model.errors import SettingsError
from eclectus.model.objects import Task
from eclectus.sim.runs import build_world, run
from eclectus.sim.scenario import parse
from eclectus.sim.world.dispatchers import Dispatchers, StaleView
from short_scenarios import document, poisson, runs, scenario
from worlds import World, small_world


class Emptiest(Place):
    """Chooses the shortest queue it sees; with `placing` it binds where it sees room."""

    def __init__(self, placing: bool = False) -> None:
        self.placing = placing

    def place(self, view: View, turns: Iterator[Task]) -> Iterator[Action]:
        for task in turns:
            task_class = view.task_class(task)
            rows = task_class.waitable_rows
            row = int(rows[task_class.overflow[rows].argmin()])
            yield Bind(task, row) if self.placing and task_class.fits_now[row] else Enqueue(task, row)


def old(age: float, corrects: bool, placing: bool = False) -> World:
    policy = StaleView(Emptiest(placing), age, corrects)
    return small_world(make_engine(policy), nodes=3, cpu=1)


def one_by_one(world: World, count: int) -> list[int]:
    for at in range(count):
        world.add(make_task(f"t{at}", created=at))
    lines = world.engine._state.node_queues.by_row
    return [list(world.placed().values()).count(f"n{row}") + len(lines.get(row, ())) for row in range(3)]


def test_without_correction_a_stale_view_does_not_change() -> None:
    assert one_by_one(old(10, corrects=False), 6) == [6, 0, 0]


def test_with_correction_a_dispatcher_sees_its_own_placements() -> None:
    assert one_by_one(old(10, corrects=True), 6) == [2, 2, 2]


def test_the_view_is_renewed_at_every_multiple_of_its_age() -> None:
    world = old(10, corrects=False)
    one_by_one(world, 2)
    world.sleep(9)
    world.add(make_task("early", created=8))
    assert world.node_of("early") == ""
    world.sleep(1)
    world.add(make_task("late", created=9))
    assert world.node_of("late") == "n1"


def test_the_end_of_a_task_is_not_seen_before_the_view_is_renewed() -> None:
    world = old(10, corrects=True)
    one_by_one(world, 3)
    world.end("t2")
    assert one_by_one(world, 0) == [1, 1, 0]
    world.add(make_task("next", created=9))
    assert world.node_of("next") == ""
    assert len(world.engine._state.node_queues.by_row[0]) == 1


def test_a_task_joins_the_node_queue_where_the_room_is_gone() -> None:
    world = old(10, corrects=False, placing=True)
    assert one_by_one(world, 3) == [3, 0, 0]
    assert world.faults == []


def test_a_stale_view_follows_added_and_removed_nodes() -> None:
    world = old(10, corrects=True)
    one_by_one(world, 1)
    world.drop_node("n1")
    world.add(make_task("a"), make_task("b"))
    assert (set(world.placed().values()), world.faults) == ({"n0", "n2"}, [])


# -- in a scenario -----------------------------------------------------------------------------------


def asked(**dispatchers: Any) -> dict[str, Any]:
    profile = {
        "schedulerName": "it",
        "place": {"policy": "pot", "queue": "lines"},
        "dispatchers": dispatchers,
    }
    groups = [{"count": 20, "slots": 1}]
    return document(profiles=[profile], cluster={"groups": groups}, workload=poisson(0.8))


def test_jobs_go_to_the_dispatchers_in_turn() -> None:
    world = build_world(scenario(**asked(count=3)), scenario(**asked(count=3)).profiles[0], seed=1)
    seen: list[str] = []
    world.on_step = lambda now, events, commands: seen.extend(
        event.task.profile for event in events if hasattr(event, "task") and not event.task.node
    )
    world.run()
    assert seen[:6] == ["it-0", "it-1", "it-2", "it-0", "it-1", "it-2"]


def test_a_fresh_view_changes_nothing() -> None:
    fresh, plain = scenario(**asked(age=0)), scenario(**asked())
    assert run(fresh, fresh.profiles[0], 3) == run(plain, plain.profiles[0], 3)


def test_stale_views_make_queues_longer() -> None:
    means = [
        sum(one.response.mean for one in runs(scenario(**asked(**settings)), range(4), checked=True))
        for settings in ({}, {"age": "4s", "count": 4}, {"age": "4s", "localCorrection": False})
    ]
    assert means[0] < means[1] < means[2]


def test_dispatchers_are_read_strictly() -> None:
    with pytest.raises(SettingsError, match=r"profiles\[0\]\.dispatchers\.cuont"):
        parse(yaml.safe_dump(asked(cuont=2)))
    with pytest.raises(SettingsError, match="count"):
        parse(yaml.safe_dump(asked(count=0)))
    assert Dispatchers(2).names("a") == ("a-0", "a-1")
