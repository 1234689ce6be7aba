"""Bounds of a step that no other test holds: beyond each, the rest waits for the next step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from builders import make_engine, make_task
from eclectus.engine import event_handlers, gang_attempts, placement, relief, reports, scheduling_cycle
from eclectus.engine.agenda import ReportSchedule
from eclectus.engine.pod_specs import late_pods
from eclectus.framework import Action, Place, RelieveTraits, View
from eclectus.model.commands import Fault, Report
from eclectus.model.events import GangSeen, TaskGone, TaskSeen
from eclectus.model.objects import Gang, GangKey, PodAffinityTerm, Requirement, Task
from eclectus.policies.place.allocation import LeastAllocated
from eclectus.policies.relieve import preemption
from eclectus.policies.relieve.none import NoRelief
from eclectus.policies.relieve.preemption import Preemption
from eclectus.policies.rosella import Rosella, costs
from worlds import numbered, small_world

KEY = GangKey("coscheduling", "default", "g")


def test_errors_of_a_policy_in_one_cycle(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(LeastAllocated):
        asked = 0

        def place(self, view: View, pending: Iterator[Task]) -> Iterator[Action]:
            for _ in pending:
                self.asked += 1
                raise ZeroDivisionError
            yield from ()

    policy = Broken()
    world = small_world(make_engine(policy))
    tasks = numbered(placement.FAULTS_MOST + 20, spec=make_task().spec)
    commands = world.engine.step([TaskSeen(each) for each in tasks], 1.0)
    assert policy.asked == placement.FAULTS_MOST
    faults = [each.message for each in commands if isinstance(each, Fault)]
    assert f"erred {placement.FAULTS_MOST} times in one scheduling cycle" in faults[-1]


def test_pods_that_are_reported_in_one_step() -> None:
    world = small_world(make_engine(), cpu=1)
    tasks = numbered(reports.REPORTS_MOST + 20, cpu=9)
    counts = [len([c for c in world.engine.step([TaskSeen(t) for t in tasks], 1.0) if isinstance(c, Report)])]
    while len(counts) < 10 and sum(counts) < len(tasks):
        at = world.engine.next_step_at()
        assert at is not None
        counts.append(sum(isinstance(each, Report) for each in world.engine.step([], at)))
    assert (sum(counts), max(counts)) == (len(tasks), reports.REPORTS_MOST)


def test_classes_that_are_rechecked_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    world = small_world(make_engine(wait_limit=None), cpu=1)
    world.add(*(make_task(f"t{at}", cpu=9 + at) for at in range(placement.RECHECKS_MOST + 5)))
    asked: list[int] = []
    classes = world.engine._state.view.classes
    recheck = type(classes).recheck
    monkeypatch.setattr(
        type(classes), "recheck", lambda self, *key: asked.append(len(world.reports)) or recheck(self, *key)
    )
    begin = world.now
    times: list[tuple[float, int]] = []
    while world.now < begin + 700.0:
        before = len(asked)
        world.advance_to_next_step()
        times.append((world.now, len(asked) - before))
    assert max(count for _, count in times) == placement.RECHECKS_MOST
    assert len(asked) >= placement.RECHECKS_MOST + 5


def test_classes_for_which_victims_are_searched_in_one_step() -> None:
    class Asked(NoRelief):
        traits = RelieveTraits(evicts=True)

        def relieve(self, view: View, waiting: Any) -> Iterator[Any]:
            asked.append(view.now)
            yield from ()

    asked: list[float] = []
    world = small_world(make_engine(relieve=Asked()), cpu=100)
    world.add(make_task("low", cpu=100, priority=-1))
    tasks = [make_task(f"t{at}", cpu=50 + at) for at in range(2 * relief.CLASSES_MOST + 3)]
    world.engine.step([TaskSeen(each) for each in tasks], 1.0)
    for now in (1.1, 1.2):
        world.engine.step([], now)
    assert Counter(asked) == {1.0: relief.CLASSES_MOST, 1.1: relief.CLASSES_MOST, 1.2: 3}


def test_nodes_of_one_search_for_victims(monkeypatch: pytest.MonkeyPatch) -> None:
    examined: list[int] = []
    monkeypatch.setattr(preemption, "ROWS_MOST", 3)
    monkeypatch.setattr(preemption, "victims_on", lambda view, of, row, _: examined.append(row))
    world = small_world(make_engine(relieve=Preemption()), nodes=8, cpu=1)
    world.add(*(make_task(f"low{at}", priority=-1) for at in range(8)))
    world.add(make_task("high"))
    assert len(examined) == len(set(examined)) == 3
    world.sleep(60.0)
    assert set(examined) == set(range(8)), "the next searches examine others"


def test_pods_that_are_reported_again_in_one_step(monkeypatch: pytest.MonkeyPatch) -> None:
    made, record = Counter[float](), ReportSchedule.record

    def counted(self: ReportSchedule, uid: str, message: str, on_the_pod: str, now: float) -> bool:
        made[now] += 1
        return record(self, uid, message, on_the_pod, now)

    monkeypatch.setattr(ReportSchedule, "record", counted)
    monkeypatch.setattr(reports, "EVALUATED_MOST", 32)  # of its only node
    most = 32 // reports.REPEATED_PART
    world = small_world(make_engine(), cpu=4)
    world.add(*(make_task(f"t{at}", cpu=5 + at) for at in range(3 * most)))
    assert made.total() == 3 * most, "all for the first time"
    made.clear()
    world.sleep(15.0)
    assert list(made.values()) == [most] * 3


def test_pods_of_gangs_that_change_queues_in_one_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gang_attempts, "PODS_MOST", 4)
    world = small_world(make_engine(), cpu=1)
    members = numbered(11, cpu=9, gang=KEY)
    world.engine.step([GangSeen(Gang(KEY, 99)), *(TaskSeen(each) for each in members)], 1.0)
    counts = [world.engine._state.class_queues.count]
    world.engine.step([GangSeen(Gang(KEY, 1))], 2.0)
    for _ in range(3):
        counts.append(world.engine._state.class_queues.count)
        world.engine.step([], 2.0)
    assert counts == [0, 4, 8, 11]


@pytest.mark.parametrize("place", [LeastAllocated(), Rosella()])
def test_comparisons_of_classes_with_pods_on_nodes_in_one_step(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduling_cycle, "COMPARISONS_MOST", 100)
    monkeypatch.setattr(costs, "CELLS_A_STEP", 100 * costs.CELLS_OF_COMPARISON)
    world = small_world(make_engine(place), cpu=100)
    placed = (make_task(f"low{at}", node="n0", labels=(("own", f"v{at}"),)) for at in range(40))
    world.step(*map(TaskSeen, placed))
    not_beside = (Requirement("own", "NotIn", (f"x{at}",)) for at in range(20))
    tasks = [
        make_task(f"t{at}", own_anti_affinity=(PodAffinityTerm("zone", (each,), ("default",)),))
        for at, each in enumerate(not_beside)
    ]
    pods, compared = world.engine._state.cluster.pods, list[int]()
    world.tasks |= {each.name: each for each in tasks}
    for events in (map(TaskSeen, tasks), *[()] * 12):
        before = pods.compared
        world.step(*events, after=0.0)
        compared.append(pods.compared - before)
    of_one = 2 * 40
    assert 100 <= max(compared) <= (2 if isinstance(place, Rosella) else 1) * (100 + of_one), (
        "the last one that is begun is asked about"
    )
    assert all(world.node_of(each.name) for each in tasks)


def test_deleted_pods_that_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_handlers, "TOMBSTONES_MOST", 3)
    world = small_world(make_engine())
    world.engine.step([TaskGone(f"uid-t{at}") for at in range(5)], 1.0)
    world.engine.step([TaskSeen(each) for each in numbered(5)], 2.0)
    seen = {pod.name for pod, _ in world.engine._state.placed.on_row(0)}
    assert seen == {"t0", "t1"}, "of the others it is known that they were deleted"


def test_comparisons_of_one_step_with_services() -> None:
    """One namespace may use up its part, and all together no more than a step bears."""
    fuel = late_pods.Fuel()
    fuel.spend("greedy", late_pods.OF_ONE_NAMESPACE_MOST)
    assert [fuel.lasts("greedy"), fuel.lasts("other")] == [False, True]
    fuel.spend("many", late_pods.COMPARISONS_MOST - late_pods.OF_ONE_NAMESPACE_MOST)
    fuel.spend("other", late_pods.FEW)
    assert [fuel.lasts("other"), fuel.lasts("modest")] == [False, True]
    fuel.renew()
    assert fuel.lasts("greedy")
