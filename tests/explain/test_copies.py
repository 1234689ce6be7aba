"""What is explained of pods that may have copies, and of copies."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from builders import make_engine, make_node, make_task
from eclectus.engine.engine import Engine
from eclectus.explain.copies import REFUSED
from eclectus.explain.pod import explain_pod
from eclectus.model.commands import MarkStraggling
from eclectus.model.events import NodeSeen, Resumed, TaskGone, TaskSeen
from eclectus.model.objects import Task
from eclectus.policies.place.fit import BestFit
from eclectus.policies.speculate.late import Late
from eclectus.policies.speculate.mantri import MantriLite
from eclectus.policies.speculate.none import NoCopies


class Running:
    """An engine whose pods take 10 s, as five of them have shown."""

    def __init__(self, policy: Any) -> None:
        self.engine: Engine = make_engine(BestFit(), speculate=policy)
        self.engine.step([*(NodeSeen(make_node(f"n{at}")) for at in range(3)), Resumed()], 0.0)
        for task in [self.start(f"past{at}", 0.0) for at in range(5)]:
            ended = replace(task, phase="Succeeded", finished=10.0)
            self.engine.step([TaskSeen(ended), TaskGone(task.uid)], 10.0)

    def start(self, name: str, now: float, **fields: Any) -> Task:
        given = {"speculative": True, "workload": "w", "phase": "Running", "started": now, **fields}
        task = make_task(name, node="n0", **given)
        self.engine.step([TaskSeen(task)], now)
        return task

    def said(self, name: str, now: float) -> str:
        return explain_pod(self.engine, "default", name, now).copies


def test_the_life_of_a_pod_and_its_copy() -> None:
    world = Running(Late())
    task = world.start("a", 10.0)
    assert world.said("a", 10.0) == "it may have a copy; it is not late, or a copy would end no sooner"
    (mark,) = (each for each in world.engine.step([], 40.0) if isinstance(each, MarkStraggling))
    assert mark.is_straggling
    late = "it is late: expected to need 25 s more, and the operator is to make a copy of it"
    assert world.said("a", 45.0) == late
    copy = make_task("a-copy", copy_of=task.uid, workload="w", node="n1", phase="Running", started=45.0)
    world.engine.step([TaskSeen(copy)], 45.0)
    assert world.said("a", 45.0).startswith("its copy a-copy does the same work")
    expected = "it is a copy of a, which is expected to need 25 s more; it wins if it ends first"
    assert world.said("a-copy", 45.0) == expected
    world.engine.step([TaskGone(copy.uid)], 46.0)
    assert world.said("a", 46.0) == "it has had a copy, which is gone; no second one is made"


def test_a_copy_that_waits_says_of_which_pod_and_names_none_of_another_namespace() -> None:
    world = Running(Late())
    task = world.start("a", 10.0)
    world.engine.step([], 40.0)
    world.engine.step([TaskSeen(make_task("a-copy", cpu=9, copy_of=task.uid, workload="w"))], 41.0)
    assert world.said("a-copy", 41.0).startswith("it is a copy of a, which is expected to need")
    forged = replace(make_task("forged", cpu=9, copy_of=task.uid), namespace="n")
    world.engine.step([TaskSeen(forged)], 42.0)
    said = explain_pod(world.engine, "n", "forged", 42.0).copies
    assert said == "it is a copy of a pod that is gone, and does its work alone"


def test_why_a_late_pod_gets_no_copy() -> None:
    world = Running(Late())
    world.start("a", 10.0)
    world.engine.step([TaskSeen(make_task("full", cpu=3, node="n1"))], 11.0)
    world.engine.step([TaskSeen(make_task("full too", cpu=3, node="n2"))], 11.0)
    world.engine.step([TaskSeen(make_task("first", cpu=4))], 12.0)
    world.engine.step([], 40.0)
    assert world.said("a", 40.0) == f"it is late, and gets no copy: {REFUSED['firstAttemptsWait']}"


def test_nothing_is_said_where_there_are_no_copies_and_of_pods_that_want_none() -> None:
    world = Running(NoCopies())
    world.start("a", 10.0)
    assert world.said("a", 50.0) == ""
    world = Running(Late())
    world.start("a", 10.0, speculative=False)
    assert world.said("a", 50.0) == ""


def test_what_cannot_be_read_of_the_progress_of_a_pod_is_said() -> None:
    world = Running(Late())
    world.start("a", 10.0, unread_progress="eclectus.dev/progress: 'half' is not a list")
    assert world.said("a", 10.0).endswith(
        "no sooner. Its progress is not read as written: eclectus.dev/progress: 'half' is not a list"
    )


def test_a_pod_of_a_job_is_restarted_once() -> None:
    world = Running(MantriLite())
    of_job = {"job": "j", "restartable": True}
    task = world.start("a", 10.0, **of_job)
    world.engine.step([], 40.0)
    said = world.said("a", 40.0)
    assert said.endswith("and the operator is to end it, so that its Job makes another")
    world.engine.step([TaskSeen(replace(task, deleting=True)), TaskGone(task.uid)], 41.0)
    world.start("b", 41.0, **of_job)
    assert world.said("b", 41.0).startswith("its Job has made it for one that was late")
