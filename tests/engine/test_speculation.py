"""Copies of stragglers: which running pods are marked as late, when, and which are not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from msgspec.structs import replace

from builders import ExactSpeeds, make_engine, make_node, make_profile, make_task
from eclectus.engine.attempts import COMPLETION_INDEX_LABEL, ENDED_MOST, KINDS_MOST, PAST_MOST, Attempts
from eclectus.engine.counters import CopyCounters
from eclectus.engine.engine import Engine
from eclectus.engine.speculation import LOOKS_MOST, MARKS_MOST
from eclectus.framework import Attempt, Speculate, SpeculateTraits, Straggler, View
from eclectus.model.commands import Bind, Fault, MarkStraggling, Report
from eclectus.model.events import JobSeen, NodeSeen, PoolSeen, ProgressSaid, Resumed, TaskGone, TaskSeen
from eclectus.model.job import Job, JobStage
from eclectus.model.objects import Spec, Task
from eclectus.model.pool import Pool, PoolAmounts
from eclectus.policies.learn.none import Unlearned
from eclectus.policies.place.fit import BestFit
from eclectus.policies.speculate.late import Late
from eclectus.policies.speculate.late_hadoop import LateOfHadoop
from eclectus.policies.speculate.mantri import MantriLite
from eclectus.policies.speculate.native import Native
from eclectus.policies.speculate.none import NoCopies
from eclectus.policies.speculate.spark import Spark


class Running:
    """An engine with nodes of four cores, and what it has marked."""

    def __init__(self, policy: Speculate, nodes: int = 4, cpu: float = 4, **speeds: float) -> None:
        learn = ExactSpeeds(speeds) if speeds else Unlearned()
        profile = {"place": BestFit(), "learn": learn, "speculate": policy}
        self.engine: Engine = make_engine(**profile)
        self.now = 0.0
        self.marks: list[tuple[float, str, bool]] = []
        self.commands: list[Any] = []
        self.tasks: dict[str, Task] = {}
        self.step(*(NodeSeen(make_node(f"n{at}", cpu=cpu)) for at in range(nodes)), Resumed())

    def step(self, *events: Any) -> None:
        commands = self.engine.step(events, self.now)
        self.commands += commands
        for command in commands:
            if isinstance(command, MarkStraggling):
                self.marks.append((self.now, command.name, command.is_straggling))
                task = self.tasks[command.name]
                self.see(replace(task, straggling=command.is_straggling))

    def see(self, task: Task) -> Task:
        self.tasks[task.name] = task
        self.step(TaskSeen(task))
        return task

    def start(self, name: str, node: str = "n0", **fields: Any) -> Task:
        given = {"workload": "w", "speculative": True, "phase": "Running", "started": self.now, **fields}
        return self.see(make_task(name, node=node, **given))

    def copy(self, name: str, node: str = "n3", **fields: Any) -> Task:
        """A copy of a pod, as the operator makes it."""
        original = self.tasks[name]
        given = {"copy_of": original.uid, "speculative": False, "job": original.job, **fields}
        return self.start(f"{name}-copy", node, **given)

    def end(self, name: str, phase: Any = "Succeeded") -> None:
        task = self.tasks.pop(name)
        self.step(TaskSeen(replace(task, phase=phase, finished=self.now)), TaskGone(task.uid))

    def past(self, count: int = 5, seconds: float = 10.0, node: str = "n1", **fields: Any) -> None:
        """So many tasks of the kind have run for so long."""
        for at in range(count):
            self.start(f"past{self.now}-{at}", node, **fields)
        self.wait(seconds)
        for at in range(count):
            self.end(f"past{self.now - seconds}-{at}")

    def wait(self, seconds: float) -> None:
        """Time passes; the engine steps when it asks for it."""
        until = self.now + seconds
        while (at := self.engine.next_step_at()) is not None and at <= until:
            self.now = max(at, self.now)
            self.step()
        self.now = until

    @property
    def late(self) -> list[str]:
        return [name for _, name, is_late in self.marks if is_late]


def test_a_task_on_a_node_that_is_known_to_be_slow_is_late_at_its_second_second() -> None:
    """40 s on a node of rate .25 instead of 10 s elsewhere; at 60 s, as for the others, it had lost 60 s."""
    world = Running(Late(), n0=0.025, n1=0.1, n2=0.1, n3=0.1)
    world.past()
    began = world.now
    world.start("a")
    world.start("b", "n2")
    world.wait(2.0)
    assert [(at - began, name) for at, name, _ in world.marks] == [(1.0, "a")]


@pytest.mark.parametrize(("age", "is_late"), [(60.0, True), (150.0, False)])
def test_a_copy_must_save_time(age: float, is_late: bool) -> None:
    """Work of 40 s on a node of rate .25, 1 elsewhere, start 2 s: 100 s left at 60 s, 10 s left at 150 s."""
    world = Running(Late(), n0=0.25 / 40, n1=1 / 40, n2=1 / 40, n3=1 / 40)
    world.past(seconds=40.0)
    world.start("a", started=world.now - age)
    world.wait(0.5)
    assert world.late == (["a"] if is_late else [])
    if is_late:
        (mark,) = [each for each in world.commands if isinstance(each, MarkStraggling)]
        assert mark.message.startswith("expected to need 100 s more, a copy 42 s: its node takes 160 s")


def test_a_task_of_a_usual_node_is_late_beyond_one_and_a_half_times_what_it_takes() -> None:
    world = Running(Late())
    world.past()
    began = world.now
    world.start("a")
    world.wait(30.0)
    ((at, name, is_late),) = world.marks
    assert (name, is_late) == ("a", True)
    assert 15.0 <= at - began <= 15.0 * 1.25, (
        "it is looked at whenever it has run for a quarter as long again"
    )


class Waiting(Running):
    """A world in which the copy of a task waits for its node."""

    def copied(self, name: str, **fields: Any) -> Task:
        original = self.tasks[name]
        given = {"copy_of": original.uid, "workload": "w", "created": self.now, **fields}
        return self.see(make_task(f"{name}-copy", **given))

    @property
    def bound(self) -> dict[str, str]:
        return {each.name: each.node for each in self.commands if isinstance(each, Bind)}


SLOW_FITS_BEST = {"n0": 0.1, "n1": 0.1, "n2": 0.1, "n3": 0.025}


def with_a_full_slow_node(policy: Speculate, cpu: float = 4) -> Waiting:
    """Of four nodes n3 is four times slower, and the one that best fit takes."""
    world = Waiting(policy, cpu=cpu, **SLOW_FITS_BEST)
    world.past()
    world.start("other", "n3", cpu=3, speculative=False)
    world.start("a")
    world.wait(1.0)
    return world


@pytest.mark.parametrize("policy", [Late(), LateOfHadoop()], ids=str)
def test_no_copy_is_put_on_a_slow_node_whatever_place_prefers(policy: Speculate) -> None:
    world = with_a_full_slow_node(policy)
    world.copied("a")
    world.see(make_task("plain", workload="w"))
    assert world.bound.pop("plain") == "n3", "the fullest one, by best fit"
    assert world.bound["a-copy"] != "n3"


def test_a_copy_waits_rather_than_run_on_a_slow_node_until_it_is_the_attempt() -> None:
    world = with_a_full_slow_node(Late())
    for node in ("n0", "n1", "n2"):
        world.start(f"full-{node}", node, cpu=4 - (node == "n0"), speculative=False)
    copy = world.copied("a")
    world.wait(2.0)
    assert world.bound == {}
    (why,) = (each.message for each in world.commands if isinstance(each, Report))
    assert "1 node(s) were too slow for a copy" in why
    world.start("full-again", "n0", speculative=False)
    world.end("a", "Failed")
    world.see(copy)
    assert world.bound == {"a-copy": "n3"}


def test_policies_that_know_no_slow_nodes_leave_copies_to_place() -> None:
    world = with_a_full_slow_node(Spark())
    world.copied("a")
    assert world.bound == {"a-copy": "n3"}


def test_where_slow_nodes_alone_have_room_nothing_is_late() -> None:
    """The second time the whole node n2 has room, which is as fast as others."""
    for full, late in ((("n0", "n1", "n2"), []), (("n0", "n1"), ["a"])):
        world = Running(Late(), **SLOW_FITS_BEST)
        world.past()
        world.start("a", cpu=1)
        for node in full:
            world.start(f"full-{node}", node, cpu=4 - (node == "n0"), speculative=False)
        world.wait(60.0)
        assert world.late == late


def test_only_tasks_that_have_opted_in_are_followed() -> None:
    world = Running(Late())
    world.past()
    world.start("a", speculative=False)
    world.wait(100.0)
    assert world.marks == []
    assert world.engine.next_step_at() is None or world.engine.next_step_at() > world.now + 1.0


def test_without_a_policy_nothing_is_followed_and_no_step_is_asked_for() -> None:
    world = Running(NoCopies())
    world.start("a")
    assert world.engine._state.attempts is None
    assert world.engine.next_step_at() is None


def test_no_copy_while_a_first_attempt_of_the_pool_waits() -> None:
    world = Running(Late(), nodes=2, cpu=2)
    world.past()
    world.start("a", cpu=1)
    world.start("wide", "n1", cpu=1, speculative=False)
    waiting = world.see(make_task("b", cpu=2, workload="other"))
    world.wait(60.0)
    assert world.marks == []
    world.see(make_task("never", cpu=64))  # that fits on no node, however empty
    world.step(TaskGone(waiting.uid))
    world.wait(5.0)
    assert world.late == ["a"]


def test_a_pod_that_waits_in_another_pool_forbids_nothing() -> None:
    world = Running(Late(), nodes=2, cpu=2)
    world.step(PoolSeen(Pool("research", namespaces=("default",))), PoolSeen(Pool("other")))
    world.past()
    world.start("a", cpu=1)
    world.start("wide", "n1", cpu=1, speculative=False)
    waiting = replace(make_task("b", cpu=2, workload="other"), namespace="elsewhere")
    world.see(waiting)
    world.wait(60.0)
    assert world.late == ["a"]


def test_a_pool_has_a_tenth_of_its_slots_in_copies_and_those_with_the_most_time_left() -> None:
    """Twenty tasks of twenty jobs of one class, all late: two get copies, and another when one has ended."""
    world = Running(Late(), cpu=64)
    world.past(cpu=0)
    for at in range(20):
        world.start(f"t{at:02}", job=f"job{at}", started=world.now - at / 10, cpu=0)
    world.wait(60.0)
    assert len(world.late) == 2
    world.end(world.late[0])
    world.wait(5.0)
    assert len(world.late) == 3


def test_a_job_has_one_and_more_only_with_many_tasks() -> None:
    world = Running(Late(pool_share=1.0), cpu=64)
    world.past(cpu=0)
    for at in range(19):
        world.start(f"a{at:02}", job="a", cpu=0)
    for at in range(20):
        world.start(f"b{at:02}", job="b", cpu=0)
    world.wait(60.0)
    assert sorted(name[0] for name in world.late) == ["a", "b", "b"]


def test_a_job_of_hadoop_has_ten() -> None:
    """Of twenty tasks five are slow by a deviation; by a tenth of what runs two would have copies."""
    world = Running(LateOfHadoop(pool_share=1.0), cpu=64)
    world.past(cpu=0)
    for at in range(20):
        world.start(f"t{at:02}", job="j", cpu=0, progress=0.05 if at < 5 else 0.9)
    world.wait(80.0)
    assert len(world.late) == 5


def test_a_pool_at_its_limit_gets_none() -> None:
    world = Running(Late())
    limit = PoolAmounts(amounts=(("cpu", 1000),))
    world.step(PoolSeen(Pool("research", namespaces=("default",), max_share=limit)))
    world.past()
    world.start("a", cpu=1, asked_pool="research")
    world.wait(60.0)
    assert world.marks == []


def test_a_task_has_one_copy_and_no_second_one_when_that_is_gone() -> None:
    world = Running(Late())
    world.past()
    world.start("a")
    world.wait(30.0)
    world.copy("a")
    world.wait(60.0)
    assert world.late == ["a"]
    world.end("a-copy", "Failed")
    world.wait(60.0)
    assert [(name, is_late) for _, name, is_late in world.marks] == [("a", True), ("a", False)]
    assert [each.reason for each in world.commands if isinstance(each, MarkStraggling)][1] == "CopyGone"


def test_a_label_on_a_pod_of_another_namespace_makes_no_copy() -> None:
    world = Running(Late())
    world.past()
    world.start("a")
    foreign = make_task(
        "foreign", copy_of="uid-a", workload="w", node="n2", phase="Running", started=world.now
    )
    world.step(TaskSeen(replace(foreign, namespace="elsewhere")))
    world.wait(30.0)
    assert world.late == ["a"]
    world.copy("a")
    world.end("a")
    counters = world.engine._state.counters.copies
    assert (counters.started, counters.lost) == (2, 1)


def test_a_mark_that_does_not_hold_any_more_is_taken_back_while_there_is_no_copy() -> None:
    world = Running(Late(judged_after=10.0))
    world.past()
    for name, progress in (("a", 0.02), ("b", 0.5), ("c", 0.5), ("d", 0.5)):
        world.start(name, progress=progress)
    world.wait(30.0)
    assert world.late == ["a"]
    world.see(replace(world.tasks["a"], progress=0.95))
    world.wait(30.0)
    assert [(name, is_late) for _, name, is_late in world.marks] == [("a", True), ("a", False)]


def test_progress_said_elsewhere_counts_as_that_of_the_annotation_and_neither_falls() -> None:
    world = Running(Late(judged_after=10.0))
    world.past()
    for name, progress in (("a", 0.02), ("b", 0.5), ("c", 0.5), ("d", 0.5)):
        world.start(name)
        world.step(ProgressSaid(f"uid-{name}", progress), ProgressSaid("uid-nobody", 1.0))
    world.step(ProgressSaid("uid-b", 0.01))
    world.see(replace(world.tasks["c"], progress=0.01))
    world.wait(30.0)
    assert world.late == ["a"]
    world.step(ProgressSaid("uid-a", 0.95))
    world.wait(30.0)
    assert [(name, is_late) for _, name, is_late in world.marks] == [("a", True), ("a", False)]


def test_progress_counts_for_nothing_where_no_copies_are_made() -> None:
    world = Running(NoCopies())
    world.start("a")
    world.step(ProgressSaid("uid-a", 0.5))
    assert world.commands == []


def test_after_a_restart_marks_are_known_from_the_pods_and_not_written_again() -> None:
    world = Running(Late())
    world.past()
    world.start("a", straggling=True, started=world.now - 40.0)
    world.start("b", straggling=True, started=world.now - 30.0)
    world.copy("b")
    world.wait(60.0)
    assert world.marks == []


def test_a_mark_that_is_not_seen_on_the_pod_is_written_again() -> None:
    world = Running(Late())
    world.past()
    task = world.start("a")
    world.wait(30.0)
    world.see(replace(task, straggling=False))  # an older version of the pod
    world.wait(60.0)
    assert world.late == ["a", "a"]


def test_a_job_whose_copies_lose_gets_no_more() -> None:
    world = Running(Late(), cpu=64)
    world.past()
    for at in range(20):
        world.start(f"t{at}", job="j")
        world.copy(f"t{at}", job="j")
        world.wait(1.0)
        world.end(f"t{at}")
        world.end(f"t{at}-copy", "Failed")
    counters = world.engine._state.counters.copies
    assert (counters.started, counters.lost, counters.won) == (20, 20, 0)
    assert counters.seconds["lost_copy"] == pytest.approx(20.0)
    marked = len(world.late)
    world.start("late", job="j")
    world.wait(60.0)
    assert len(world.late) == marked
    assert counters.refused == {"copiesLose": 1}


def test_what_a_copy_has_saved_is_by_how_much_its_original_was_expected_to_need_longer() -> None:
    world = Running(Late(), n0=0.025, n1=0.1, n2=0.1, n3=0.1)
    world.past()
    world.start("a")
    world.wait(1.0)
    world.copy("a")
    world.wait(10.0)
    world.end("a-copy")
    counters = world.engine._state.counters.copies
    assert (counters.started, counters.lost, counters.won) == (1, 0, 1)
    assert counters.seconds == pytest.approx({"saved": 29.0, "lost_copy": 0.0, "lost_original": 11.0})


def test_copies_wait_behind_first_attempts_whatever_their_age() -> None:
    world = Running(Late(), nodes=1, cpu=1)
    world.start("full", "n0", speculative=False)
    world.see(make_task("old-copy", copy_of="uid-x", created=1.0))
    world.see(make_task("young", created=2.0))
    world.end("full")
    assert [each.name for each in world.commands if isinstance(each, Bind)] == ["young"]


def test_the_other_rules() -> None:
    """Five tasks of a stage have ended after 10 s; the sixth runs on, the seventh says how slow it is."""
    for policy, expected in (
        (Spark(quantile=0.5), {"a", "b"}),
        (MantriLite(), {"a", "b"}),
        (Native(), {"b"}),
        (LateOfHadoop(deviations=0.5), {"b"}),
    ):
        world = Running(policy, cpu=64)
        world.past(job="j")
        world.start("a", job="j")
        world.start("b", job="j", progress=0.05)
        world.start("c", job="j", progress=0.9)
        world.start("d", job="j", progress=0.95)
        policy.pool_share = policy.job_share = 1.0
        world.wait(100.0)
        assert set(world.late) - {"c", "d"} == expected, policy


@pytest.mark.parametrize(("succeeded", "is_late"), [(14, False), (15, True)])
def test_by_sparks_rule_so_many_of_the_tasks_of_a_dag_job_must_have_ended_as_the_job_says(
    succeeded: int, is_late: bool
) -> None:
    """Five of its twenty tasks were seen to end; those before were, when another process led."""
    world = Running(Spark(quantile=0.75))
    of_stage = {"job": "j", "stage": "s"}
    world.step(JobSeen(Job("j", "default", "j", (JobStage("s", 20, Spec(), succeeded=succeeded),))))
    world.past(**of_stage)
    world.start("a", **of_stage)
    world.wait(100.0)
    assert world.late == (["a"] if is_late else [])


def test_sparks_rule_counts_more_ends_than_it_remembers_run_times_of() -> None:
    """Of a thousand and more the last run times are known, and all are counted."""
    attempts, task = Attempts(CopyCounters()), make_task("a", speculative=True, phase="Running", started=0.0)
    attempts.see(replace(task, node="n0"), 1.0)
    siblings = attempts.running[task.uid].siblings
    for _ in range(2 * ENDED_MOST):
        siblings.end(1.0)
    assert (siblings.ended_count, len(siblings.ended)) == (2 * ENDED_MOST, ENDED_MOST)
    assert siblings.ended_count >= 0.75 * siblings.tasks > len(siblings.ended)


def of_job(index: int) -> dict[str, Any]:
    """What a pod of a Job that may be restarted has."""
    return {"job": "j", "restartable": True, "labels": ((COMPLETION_INDEX_LABEL, str(index)),)}


def test_a_pod_of_a_job_is_worth_restarting_above_twice_the_time_elsewhere_and_a_start() -> None:
    """Tasks take 10 s, and a start 2 s: one that has run for longer is expected to run as long again."""
    world = Running(MantriLite())
    world.past(job="j")
    world.start("a", **of_job(0))
    world.wait(22.0)
    assert world.late == []
    world.wait(8.0)
    assert world.late == ["a"]
    (mark,) = (each for each in world.commands if isinstance(each, MarkStraggling))
    assert mark.reason == "WorthRestarting"
    assert mark.message.startswith("expected to need 2")
    assert mark.message.endswith("s more, a new pod 12 s: a restart saves time of machines")


def test_a_task_of_a_job_is_restarted_once_and_others_as_well() -> None:
    world = Running(MantriLite())
    world.past(job="j")
    first = world.start("a", **of_job(0))
    world.wait(30.0)
    world.see(replace(world.tasks["a"], deleting=True))
    world.end("a", "Failed")
    assert world.late == ["a"]
    world.start("a-again", **of_job(0))
    world.start("b", **of_job(1))
    world.wait(100.0)
    assert world.late == ["a", "b"]
    assert first.uid not in world.engine._state.attempts.marks


def test_the_new_pod_of_a_restarted_task_prefers_other_nodes() -> None:
    world = Running(MantriLite())
    world.past(job="j")
    world.start("a", **of_job(0))
    node = world.tasks["a"].node
    world.wait(30.0)
    world.see(replace(world.tasks["a"], deleting=True))
    world.end("a", "Failed")
    for name, index, preferences in (("a-again", 0, 1), ("b", 1, 0)):
        world.see(make_task(name, speculative=True, cpu=1000, **of_job(index)))
        spec = world.engine._state.pending[f"uid-{name}"].spec
        assert len(spec.preferences) == preferences
        assert all(each.term.fields[0].values == (node,) for each in spec.preferences)


def test_a_restart_that_a_scheduler_before_has_asked_for_is_the_only_one_too() -> None:
    world = Running(MantriLite())
    world.past(job="j")
    world.start("a", straggling=True, **of_job(0))
    world.see(replace(world.tasks["a"], deleting=True))
    world.end("a", "Failed")
    world.start("a-again", **of_job(0))
    world.wait(100.0)
    assert world.late == []


def test_other_rules_restart_nothing() -> None:
    world = Running(Spark(quantile=0.5))
    world.past(job="j")
    world.start("a", **of_job(0))
    world.wait(60.0)
    assert [each.reason for each in world.commands if isinstance(each, MarkStraggling)] == [
        "ExpectedToEndLate"
    ]


class Raising(Speculate):
    traits = SpeculateTraits(copies=True)

    def late(self, view: View, attempt: Attempt) -> Straggler | None:
        raise LookupError("no such thing")


def test_a_policy_that_raises_is_a_fault_and_is_asked_again() -> None:
    world = Running(Raising())
    world.start("a")
    world.wait(3.0)
    faults = [each.message for each in world.commands if isinstance(each, Fault)]
    assert set(faults) == {"LookupError: no such thing"}
    assert len(faults) > 1


class Counting(Speculate):
    """Counts how often it is asked about which task."""

    traits = SpeculateTraits(copies=True)

    def __init__(self) -> None:
        self.asked: list[str] = []

    def late(self, view: View, attempt: Attempt) -> Straggler | None:
        self.asked.append(attempt.task.name)
        return None


def names(tasks: Iterable[int]) -> list[str]:
    return [f"t{at}" for at in tasks]


def test_an_attempt_is_looked_at_sixteen_times_in_its_first_minute_however_many_run() -> None:
    policy = Counting()
    world = Running(policy, cpu=640)
    for name in names(range(100)):
        world.start(name, cpu=0)
    world.wait(60.0)
    asked = {name: policy.asked.count(name) for name in names(range(100))}
    assert set(asked.values()) == {16}
    world.wait(600.0)
    assert policy.asked.count("t0") == 16 + 21, "every 30 s, once it has run for two minutes"


def test_a_question_looks_at_so_many_attempts_and_the_next_one_goes_on() -> None:
    policy = Counting()
    world = Running(policy, cpu=640)
    world.step(
        *(
            TaskSeen(make_task(name, cpu=0, node="n0", phase="Running", speculative=True, started=0.0))
            for name in names(range(300))
        )
    )
    world.wait(1.0)
    assert len(policy.asked) == LOOKS_MOST
    world.wait(1.0)
    assert set(names(range(300))) == set(policy.asked)


def test_a_namespace_with_many_pods_does_not_delay_the_looks_of_another() -> None:
    policy = Counting()
    world = Running(policy, cpu=640)
    fields: Any = {"cpu": 0, "node": "n0", "phase": "Running", "speculative": True, "started": 0.0}
    world.step(
        *(TaskSeen(make_task(name, **fields)) for name in names(range(2 * LOOKS_MOST))),
        TaskSeen(replace(make_task("z", **fields), namespace="other")),
    )
    world.wait(1.0)
    assert "z" in policy.asked


def test_a_step_marks_so_many_pods_and_the_next_one_others() -> None:
    world = Running(Late(pool_share=1.0, job_share=1.0), cpu=64)
    world.past(cpu=0)
    for name in names(range(MARKS_MOST + 8)):
        world.start(name, cpu=0, started=world.now - 30.0)
    world.wait(1.0)
    assert len(world.late) == MARKS_MOST
    world.wait(4.0)
    assert len(world.late) == MARKS_MOST + 8


def test_what_is_remembered_of_kinds_jobs_and_stages_is_bounded() -> None:
    attempts = Attempts(CopyCounters())
    for at in range(KINDS_MOST + 10):
        task = make_task(f"t{at}", workload=f"w{at}", job=f"j{at}", node="n0", phase="Running", started=0.0)
        copy = replace(task, uid=f"copy{at}", copy_of=task.uid)
        for each in (task, copy):
            attempts.see(each, 1.0)
        attempts.end(replace(task, phase="Succeeded", finished=9.0), 9.0)
        attempts.forget(task.uid)
        attempts.forget(copy.uid)
    assert len(attempts._past) == len(attempts._settled) == KINDS_MOST
    assert len(attempts._groups) <= KINDS_MOST + 1
    assert not attempts.running
    assert not attempts._copies
    for at in range(ENDED_MOST + 50):
        task = make_task(f"u{at}", workload="w", job="j", node="n0", phase="Running", started=0.0)
        attempts.see(task, 1.0)
        attempts.end(replace(task, phase="Succeeded", finished=9.0 + at), 9.0)
        ended = attempts.running[task.uid].siblings.ended
        past = attempts.running[task.uid].past
        attempts.forget(task.uid)
    assert (len(ended), ended[0], len(past)) == (ENDED_MOST, 59.0, PAST_MOST)


def test_a_profile_that_makes_no_copies_makes_none_beside_one_that_does() -> None:
    policy = Counting()
    profiles = [make_profile(BestFit(), speculate=policy), make_profile(BestFit(), name="other")]
    engine = Engine(profiles, Unlearned())
    engine.step([NodeSeen(make_node("n0")), Resumed()], 0.0)
    task = make_task("a", node="n0", phase="Running", speculative=True, started=0.0)
    engine.step([TaskSeen(replace(task, profile="other"))], 0.0)
    engine.step([], 10.0)
    assert policy.asked == []
