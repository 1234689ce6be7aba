"""etcd is restored from a backup: pods that had gone exist again, with their uids."""

from builders import make_engine, make_node, make_task
from eclectus.model.commands import Bind
from eclectus.model.events import NodeSeen, PodsListed, Resumed, TaskGone, TaskSeen
from eclectus.policies.place.fit import BestFit

RUNS = make_task("runs", cpu=3, node="n", phase="Running")
WAITS = make_task("waits", cpu=1)
NEW = make_task("new", cpu=2)


def binds_after(*before: object) -> list[str]:
    """What is bound when two pods that have gone are seen again, with a new one."""
    engine = make_engine(BestFit())
    engine.step([Resumed(), NodeSeen(make_node("n", cpu=4)), TaskSeen(RUNS)], 1.0)
    engine.step([TaskGone(RUNS.uid), TaskGone(WAITS.uid)], 2.0)
    seen = [TaskSeen(task) for task in (RUNS, WAITS, NEW)]
    commands = engine.step([*before, *seen], 3.0)  # type: ignore[list-item]
    return [command.name for command in commands if isinstance(command, Bind)]


def test_a_late_event_of_a_pod_that_has_gone_brings_it_not_back() -> None:
    assert binds_after() == ["new"]


def test_a_new_list_brings_it_back_with_what_it_holds() -> None:
    assert binds_after(PodsListed()) == ["waits"]


def binds_of_one_that_ran(*before: object) -> list[str]:
    """What is bound when a pod that was shown on a node is seen without one."""
    engine = make_engine(BestFit())
    engine.step([Resumed(), NodeSeen(make_node("n", cpu=4)), TaskSeen(RUNS)], 1.0)
    seen = TaskSeen(make_task("runs", cpu=3))
    first = engine.step([*before, seen], 2.0)  # type: ignore[list-item]
    return [command.name for command in [*first, *engine.step([seen], 3.0)] if isinstance(command, Bind)]


def test_a_late_event_of_a_bound_pod_does_not_unbind_it() -> None:
    assert binds_of_one_that_ran() == []


def test_a_new_list_without_its_bind_has_it_placed_again_once() -> None:
    assert binds_of_one_that_ran(PodsListed()) == ["runs"]
