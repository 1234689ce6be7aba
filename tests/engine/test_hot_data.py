"""Hot spots: data sets for whose nodes many pods wait, what is said of them, and how often."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from prometheus_client import CollectorRegistry

from builders import make_engine, make_node, make_task
from eclectus.config.process_settings import MetricsSettings
from eclectus.engine.queues import hot_data
from eclectus.framework import Hold, HoldTraits, Reach, View, Waited
from eclectus.live.metrics_page import register_collectors
from eclectus.model.commands import Warn
from eclectus.model.objects import Input, Task
from eclectus.policies.hold.delay import Delay
from eclectus.policies.place.fit import BestFit
from worlds import World


def reading(name: str, data: str, *nodes: str, **fields: Any) -> Task:
    return make_task(name, inputs=(Input(data, 100, nodes),), **fields)


class Patient(Hold):
    """Waits for ever."""

    traits = HoldTraits(waits=True)

    def reach(self, view: View, head: Task, waited: Waited) -> Reach:
        return Reach(0, 1e6)


class Hot(World):
    """Node `free` has room, `n1` and `n2` have data and none."""

    def __init__(self, hold: Hold | None = None) -> None:
        super().__init__(
            make_engine(BestFit(), hold=hold or Patient(), wait_limit=None),
            make_node("free", cpu=99, pods=999),
            make_node("n1", cpu=1),
            make_node("n2", cpu=1),
        )
        for node in ("n1", "n2"):
            self.add(make_task(f"on-{node}", node=node, phase="Running", profile="other"))

    def readers(self, count: int, data: str = "logs") -> None:
        self.add(*(reading(f"{data}-{at}", data, "n1", "n2") for at in range(count)))

    def until(self, time: float) -> None:
        """A step each second, as something happens all the time."""
        while self.now < time:
            self.step(after=1.0)
            self.settle()

    @property
    def said(self) -> list[Warn]:
        return [each for each in self.faults if isinstance(each, Warn)]  # World keeps others there


def test_after_a_minute_one_pod_says_what_would_help() -> None:
    world = Hot()
    world.readers(12)
    world.until(59)
    assert not world.said
    world.until(80)
    (warn,) = world.said
    assert (warn.namespace, warn.reason, warn.name) == ("default", "DataHot", "logs-11")
    assert warn.message == (
        "data set logs is a hot spot: for 60 s pods have waited for its nodes (n1, n2), now 12, or started "
        "away from them, 0 in 10 s; put copies of it on more nodes"
    )


def test_it_is_said_again_after_ten_minutes_and_not_before() -> None:
    world = Hot()
    world.readers(12)
    world.until(600)
    assert len(world.said) == 1
    world.until(700)
    assert len(world.said) == 2


@pytest.mark.parametrize(("left", "said"), [(6, 1), (4, 0)])
def test_it_stays_hot_until_half_of_the_pods_have_gone(left: int, said: int) -> None:
    world = Hot()
    world.readers(10)
    world.until(30)
    for at in range(left, 10):
        world.delete(f"logs-{at}")
    world.until(45)
    world.add(*(reading(f"later-{at}", "logs", "n1", "n2") for at in range(10)))
    world.until(75)
    assert len(world.said) == said


def test_nine_pods_are_no_hot_spot_nor_are_data_of_their_own() -> None:
    world = Hot()
    world.readers(9)
    for at in range(20):
        world.readers(1, data=f"own-{at}")
    world.until(200)
    assert not world.said


def test_pods_that_have_started_elsewhere_count_too() -> None:
    world = Hot(Delay(node_wait=1))
    for at in range(90):
        world.add(*(reading(f"t{at}-{each}", "logs", "n1", "n2", cpu=0.1) for each in range(2)))
        world.until(world.now + 1)
    (warn,) = world.said
    assert "data set logs is a hot spot" in warn.message


def test_pods_that_are_as_fast_elsewhere_make_no_hot_spot() -> None:
    world = Hot(Delay(node_wait=1))
    for at in range(60):
        data = "free" if at % 2 else "n1"
        world.add(reading(f"run-{at}", "logs", data, node="free", phase="Running"))
        world.end(f"run-{at}", 10.0)
    for at in range(90):
        world.add(*(reading(f"t{at}-{each}", "logs", "n1", "n2", cpu=0.1) for each in range(2)))
        world.until(world.now + 1)
    assert len(world.binds) == 180
    assert not world.said


def test_a_name_is_one_of_its_namespace_and_shows_no_control_characters() -> None:
    world = Hot()
    world.readers(9)
    world.add(*(replace(reading(f"x{at}", "logs", "n1"), namespace="b") for at in range(9)))
    world.add(
        *(replace(reading(f"y{at}", "a\n\x1b[31m" + "z" * 500, "n1"), namespace="c") for at in range(10))
    )
    world.until(100)
    (warn,) = world.said
    assert warn.namespace == "c"
    assert "\n" not in warn.message
    assert "\x1b" not in warn.message
    assert len(warn.message) < 400


def test_of_one_namespace_few_are_said_and_of_all_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hot_data, "SAID_MOST", 7)
    world = Hot()
    for at in range(9):
        world.readers(10, data=f"set-{at}")
    for at in range(3):
        world.add(
            *(replace(reading(f"{at}-{each}", "set", "n1"), namespace=f"other-{at}") for each in range(10))
        )
    world.until(300)
    namespaces = [each.namespace for each in world.said]
    assert namespaces.count("default") == hot_data.SAID_IN_NAMESPACE_MOST
    assert len(namespaces) == 7


def test_of_very_many_pods_some_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hot_data, "TASKS_MOST", 10)
    world = Hot()
    world.readers(35)
    tasks, weight = hot_data.sampled(world.engine._state.held._held())
    assert (len(list(tasks)), weight) == (9, 4)
    assert world.engine._state.held.most_waited_for(1) == [("n2", 36)]


def test_the_metric_has_the_nodes_with_the_most_pods() -> None:
    world, registry = Hot(), CollectorRegistry()
    register_collectors(registry, world.engine, lambda: world.now, MetricsSettings())
    world.readers(3)
    world.add(reading("one", "other", "n1"), reading("none", "other", "no-node"))
    found = {
        node: registry.get_sample_value("eclectus_data_waiting_pods", {"node": node})
        for node in ("n1", "n2", "free", "no-node")
    }
    assert found == {"n1": 4.0, "n2": 3.0, "free": None, "no-node": None}
    world.delete("on-n1")
    assert registry.get_sample_value("eclectus_data_waiting_pods", {"node": "n2"}) == 2.0
