"""How far tasks may go: the settings of `hold: delay`, and what it answers."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from builders import make_engine, make_node, make_task
from eclectus.config.profiles import read_profile
from eclectus.engine.engine import Engine
from eclectus.framework import Reach, Waited
from eclectus.model.errors import SettingsError
from eclectus.model.events import NodeSeen, Resumed
from eclectus.model.objects import Input, Task
from eclectus.policies.hold.delay import Delay, Level
from eclectus.policies.hold.none import NoHold
from eclectus.policies.place.fit import BestFit

TWO = Delay(node_wait=4, levels=(Level("rack", 8),))


def engine(nodes: int) -> Engine:
    made = make_engine(BestFit())
    made.step([Resumed(), *(NodeSeen(make_node(f"n{at}")) for at in range(nodes))], 0.0)
    return made


def reach(hold: Delay, waited: Waited, *, nodes: int = 1, task: Task | None = None) -> Reach:
    return hold.reach(engine(nodes)._state.view, task or make_task(), waited)


@pytest.mark.parametrize(
    ("level", "seconds", "expected"),
    [
        (0, 0.0, Reach(0, 4)),
        (0, 3.9, Reach(0, 4)),
        (0, 4.0, Reach(1, 12)),
        (0, 11.9, Reach(1, 12)),
        (0, 12.0, Reach(2)),
        (1, 0.0, Reach(1, 8)),
        (1, 8.0, Reach(2)),
        (2, 0.0, Reach(2)),
    ],
)
def test_it_widens_level_by_level(level: int, seconds: float, expected: Reach) -> None:
    assert reach(TWO, Waited(level, seconds)) == expected


def test_a_start_begins_the_wait_again_and_the_count_only_at_the_data() -> None:
    waited = Waited(2, 11.0, 7, tasks=9)
    assert TWO.launched(waited, 0) == Waited(0, 0.0, 0, 9)
    assert TWO.launched(waited, 1) == Waited(1, 0.0, 7, 9)
    assert TWO.launched(waited, 2) == Waited(2, 0.0, 7, 9)


def test_a_start_that_the_waits_did_not_allow_opens_no_level() -> None:
    assert TWO.launched(Waited(0, 1.0, 7), 2) == Waited(0, offers=7)
    assert TWO.launched(Waited(0, 4.0, 7), 2) == Waited(1, offers=7)
    assert TWO.launched(Waited(1, 8.0), 2) == Waited(2)


def test_so_many_skips_widen_to_any_node() -> None:
    hold = Delay(node_wait=4, skips=3)
    assert reach(hold, Waited(offers=2)) == Reach(0, 4, 3)
    assert reach(hold, Waited(offers=3)) == Reach(1)


def test_skips_by_the_formula() -> None:
    hold = Delay(node_wait=9, target_locality=0.8)
    task = make_task(inputs=(Input("a", 1, ("n1", "n2", "n3", "no-node")),))
    assert reach(hold, Waited(offers=13, tasks=5), nodes=60, task=task) == Reach(0, 9, 14)
    assert reach(hold, Waited(offers=14, tasks=5), nodes=60, task=task) == Reach(1)


class Claiming:
    """What the view says of starved pools: this pool is one."""

    def __init__(self, pool: str) -> None:
        self.pool = pool

    def claims(self, task: Task, now: float) -> list[str]:
        return ["claim"] if task.pool == self.pool else []


def test_ds7_the_pods_of_a_starved_pool_go_anywhere() -> None:
    view = replace(engine(1)._state.view, starvation=Claiming("poor"))  # type: ignore[arg-type]
    assert TWO.reach(view, make_task(pool="poor"), Waited()) == Reach(2)
    assert TWO.reach(view, make_task(pool="rich"), Waited()) == Reach(0, 4)


def test_none_lets_everything_go() -> None:
    assert NoHold().reach(engine(1)._state.view, make_task(), Waited()) == Reach(1)
    assert not NoHold().traits.waits


def profile(**fields: Any) -> Any:
    return read_profile({"schedulerName": "a", "place": {"policy": "kube"}, **fields}, "profile")


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        (
            {"hold": {"policy": "delay", "nodeWait": 100}, "waitLimit": 60},
            "profile.hold: waits of 100 s in all",
        ),
        (
            {"hold": {"policy": "delay", "levels": [{"key": "rack", "wait": 55}]}, "waitLimit": 60},
            "profile.hold: waits of 60 s in all",
        ),
        ({"hold": {"policy": "delay"}, "place": {"policy": "rosella"}}, "profile.hold: lets pods wait"),
        ({"hold": {"policy": "delay"}, "place": {"policy": "tetris"}}, "profile.hold: lets pods wait"),
        (
            {"hold": {"policy": "delay", "skips": 1, "targetLocality": 0.9}},
            "profile.hold.targetLocality: makes",
        ),
        (
            {"hold": {"policy": "delay", "levels": [{"key": "a"}, {"key": "a"}]}},
            "profile.hold.levels: name a",
        ),
        ({"hold": {"policy": "delay", "levels": [{"key": ""}]}}, "profile.hold.levels[0].key: must name"),
    ],
)
def test_what_is_refused(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(SettingsError) as caught:
        profile(**fields)
    assert problem in str(caught.value)


def test_what_is_accepted() -> None:
    found = profile(
        hold={"policy": "delay", "nodeWait": "3s", "levels": [{"key": "rack", "wait": 7}]}, waitLimit=11
    )
    assert (found.hold.traits.longest, found.hold.traits.levels) == (10.0, ("rack",))
    assert profile(hold={"policy": "delay"}, waitLimit=None).hold.traits.longest == 5.0
