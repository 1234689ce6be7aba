"""Arrivals by class: shares of the recent ones, whatever the pace, in bounded memory."""

from __future__ import annotations

import pytest

from builders import ExactSpeeds, make_engine, make_node, make_task
from eclectus.accounts import accounts as module
from eclectus.accounts.accounts import Arrivals
from eclectus.model.objects import Task
from eclectus.policies.place.allocation import LeastAllocated
from eclectus.policies.rosella import Rosella
from worlds import World

ONE, OTHER = make_task("one", cpu=1), make_task("other", cpu=2)


def key(task: Task) -> tuple[object, str]:
    return task.spec, task.workload


def counted(seconds: float) -> Arrivals:
    """Every fourth of a thousand tasks is of the other class."""
    found = Arrivals()
    for at in range(1000):
        found.add(OTHER if at % 4 == 3 else ONE, at * seconds)
    return found


@pytest.mark.parametrize("seconds", [0.01, 100.0])
def test_rates_are_shares_of_all_arrivals(seconds: float) -> None:
    rates = counted(seconds).rates(1000 * seconds, most=10)
    assert rates == pytest.approx({key(ONE): 0.75 / seconds, key(OTHER): 0.25 / seconds}, rel=0.01)


def test_of_rare_classes_the_arrivals_count_among_the_others() -> None:
    assert counted(1.0).rates(1000.0, most=1) == pytest.approx({key(ONE): 1.0}, rel=0.01)


def test_a_class_that_no_longer_arrives_is_forgotten_by_half_after_500_arrivals() -> None:
    found = counted(1.0)
    before = found.rates(1000.0, most=10)[key(OTHER)]
    for at in range(1000, 1500):
        found.add(ONE, float(at))
    assert found.rates(1500.0, most=10)[key(OTHER)] == pytest.approx(before / 2, rel=0.2)


def test_the_rarest_classes_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_CLASSES", 5)
    found = counted(1.0)
    for at in range(50):
        found.add(make_task(f"t{at}", cpu=3 + at), 1000.0 + at)
    rates = found.rates(1050.0, most=100)
    assert len(rates) <= 10
    assert {key(ONE), key(OTHER)} <= rates.keys()


def test_they_are_counted_once_a_task_and_only_if_a_policy_wants_them() -> None:
    world = World(make_engine(Rosella(), ExactSpeeds({})), make_node("n"))
    for at in range(20):
        world.sleep(1.0)
        world.put(make_task(f"t{at}"))
        world.put(make_task(f"t{at}", priority=1))
        world.put(make_task(f"service{at}", long_running=True))
    found = world.engine._state.view.arrivals
    assert found is not None
    assert found.rates(world.now, most=10) == pytest.approx({key(make_task("t")): 1.0}, rel=0.1)
    assert make_engine(LeastAllocated(), ExactSpeeds({}))._state.view.arrivals is None
