"""Quincy's rounds: what is asked, and what of an answer is committed if the cluster has changed meanwhile."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from builders import ExactSpeeds, make_engine, make_node, make_task
from eclectus.config.profiles import read_profiles
from eclectus.engine import effects
from eclectus.engine.engine import Engine
from eclectus.maths.min_cost_flow import min_cost_flow
from eclectus.model.commands import Bind, Solve
from eclectus.model.events import NodeGone, NodeSeen, Resumed, Solved, TaskGone, TaskSeen
from eclectus.policies.learn.none import Unlearned
from eclectus.policies.quincy import draft
from eclectus.policies.quincy.place import ROUND_MOST, Quincy
from flow_answers import answer
from worlds import World, numbered, small_world


def world(
    *nodes: Any, answers: bool = True, speeds: dict[str, float] | None = None, **settings: Any
) -> World:
    learn = {"learn": ExactSpeeds(speeds)} if speeds is not None else {}
    made = World(make_engine(Quincy(**settings), **learn), *nodes)
    made.answers_solves = answers
    return made


def nodes(count: int, cpu: float = 1, **fields: Any) -> list[Any]:
    return [make_node(f"n{at}", cpu=cpu, **fields) for at in range(count)]


def test_all_pods_together_get_the_nodes_that_suit_them() -> None:
    """The long one has the most to gain from the fast node, and comes last."""
    short, long = numbered(1, "short", workload="short"), numbered(1, "long", workload="long")

    class Speeds(ExactSpeeds):
        def speeds(self, workload: str) -> Any:
            found = super().speeds(workload)
            return replace(found, rate=found.rate / 100) if workload == "long" else found

    made = World(make_engine(Quincy(), learn=Speeds({"n0": 1.5})), *nodes(2))
    made.add(*short, *long)
    assert made.placed() == {"short0": "n1", "long0": "n0"}


def test_a_batch_is_spread_over_nodes() -> None:
    made = world(*nodes(3, cpu=4), costs="load-spreading")
    made.add(*numbered(6))
    assert sorted(made.placed().values()) == ["n0", "n0", "n1", "n1", "n2", "n2"]


def test_bandwidth_bounds_and_spreads() -> None:
    made = World(
        make_engine(Quincy("network", bandwidth="net")),
        *(make_node(f"n{at}", cpu=9) for at in range(1)),
    )
    made.engine.step([NodeSeen(node_with("a", 1000)), NodeSeen(node_with("b", 700)), NodeGone("n0")], 0.0)
    made.add(*(with_net(task, 400) for task in numbered(4)))
    assert sorted(made.placed().values()) == ["a", "a", "b"]


def node_with(name: str, net: int) -> Any:
    found = make_node(name, cpu=9)
    return replace(found, allocatable=tuple(sorted((*found.allocatable, ("net", net)))))


def with_net(task: Any, net: int) -> Any:
    return replace(task, spec=replace(task.spec, requests=tuple(sorted((*task.spec.requests, ("net", net))))))


def test_a_pod_waits_for_a_fast_node_until_waiting_costs_more() -> None:
    made = world(*nodes(2), speeds={"n0": 1.0, "n1": 0.1})
    made.add(make_task("first"))
    made.add(make_task("second", created=0.0))
    assert made.placed() == {"first": "n0"}  # another second here, ten there
    made.sleep(3.0)
    assert made.messages("second")[-1][0] == "WaitingForNode"
    made.sleep(30.0)
    assert made.placed() == {"first": "n0", "second": "n1"}


@pytest.mark.parametrize("costs", ["rosella", "quincy", "load-spreading", "network"])
def test_a_pod_of_higher_priority_gets_a_node_first(costs: Any) -> None:
    made = world(*nodes(2), speeds={"n0": 1.0, "n1": 0.3}, costs=costs)
    made.add(*numbered(3, "low"), *numbered(2, "high", priority=5))
    assert set(made.placed()) == {"high0", "high1"}


def test_a_copy_comes_behind_first_attempts() -> None:
    made = world(*nodes(1))
    made.add(make_task("copy", copy_of="uid-other"), make_task("first", created=1.0))
    assert set(made.placed()) == {"first"}


def test_a_pod_of_higher_priority_goes_to_no_dead_node() -> None:
    made = world(*nodes(2), speeds={"n0": 1.0, "n1": 0.0})
    made.add(*numbered(1, "low"), *numbered(2, "high", priority=5))
    assert list(made.placed().values()) == ["n0"]


def test_a_fair_part_of_the_slots_for_each_job() -> None:
    pods = [*numbered(6, "a", job="a"), *numbered(6, "b", job="b", priority=-1)]
    greedy, fair = (world(*nodes(6), fair_share=each) for each in (False, True))
    for made in (greedy, fair):
        made.add(*pods)
    assert len(fair.placed()) == 6
    assert sum(name.startswith("a") for name in fair.placed()) == 3
    assert sum(name.startswith("a") for name in greedy.placed()) == 6


# -- answers that come late --------------------------------------------------------------------------


def asked(*of: Any, **settings: Any) -> tuple[World, Solved]:
    """A world in which a problem is asked, and the answer that is not given yet."""
    made = world(*of, answers=False, **settings)
    made.add(*numbered(2))
    assert made.placed() == {}
    found = answer(made.engine, made.solves[-1])
    assert found is not None
    assert found.status == "optimal"
    return made, found


def test_an_answer_is_committed_when_it_comes() -> None:
    made, solved = asked(*nodes(2))
    made.step(solved, after=3.0)
    made.settle()
    assert set(made.placed().values()) == {"n0", "n1"}
    assert made.engine.problem(made.solves[-1].serial) is None


def test_a_node_that_has_gone_gets_nothing() -> None:
    made, solved = asked(*nodes(2))
    made.step(NodeGone("n0"), solved, after=1.0)
    made.settle()
    assert list(made.placed().values()) == ["n1"]
    assert made.faults == []


def test_a_node_in_the_row_of_one_that_has_gone_is_another_one() -> None:
    made, solved = asked(*nodes(2))
    made.step(NodeGone("n0"), NodeSeen(make_node("other", cpu=1)), solved, after=1.0)
    made.settle()
    assert made.placed()["t0" if "t0" in made.placed() else "t1"] == "n1"
    made.answers_solves = True
    made.sleep(5.0)
    assert set(made.placed().values()) == {"n1", "other"}


def test_a_pod_that_has_gone_is_not_bound_and_leaves_its_room() -> None:
    made, solved = asked(*nodes(2))
    made.tasks.pop("t0")
    made.step(TaskGone("uid-t0"), TaskSeen(make_task("late")), solved, after=1.0)
    made.tasks["late"] = make_task("late")
    made.settle()
    made.answers_solves = True
    made.sleep(5.0)
    assert set(made.placed()) == {"t1", "late"}


def test_a_pod_of_a_name_that_was_asked_about_is_another_pod() -> None:
    """A controller has replaced it (kubernetes-retired/poseidon#171)."""
    made, solved = asked(*nodes(2))
    again = replace(made.tasks["t0"], uid="uid-again")
    made.tasks["t0"] = again
    made.step(TaskGone("uid-t0"), TaskSeen(again), solved, after=1.0)
    made.settle()
    made.answers_solves = True
    made.sleep(5.0)
    assert set(made.placed()) == {"t0", "t1"}


def test_room_that_others_have_taken_is_not_given_twice() -> None:
    made, solved = asked(*nodes(2))
    foreign = make_task("foreign", profile="other", node="n0")
    made.step(TaskSeen(foreign), solved, after=1.0)
    made.settle()
    assert list(made.placed().values()) == ["n1"]
    assert made.faults == []


def test_the_number_of_pods_of_a_node_bounds_its_slots() -> None:
    """kubernetes-retired/poseidon#182 and #112."""
    made = world(*nodes(2, cpu=9, pods=1))
    made.add(*numbered(3))
    assert sorted(made.placed().values()) == ["n0", "n1"]


def test_a_bind_that_is_refused_is_planned_again() -> None:
    """kubernetes-retired/poseidon#1."""
    made = world(*nodes(2))
    made.refuse = lambda bind: "already assigned" if len(made.binds) <= 2 else ""
    made.add(*numbered(2))
    made.sleep(10.0)
    assert set(made.placed()) == {"t0", "t1"}


def test_a_late_or_unknown_answer_does_no_harm() -> None:
    made, solved = asked(*nodes(2))
    made.step(Solved(99, "optimal", ((0, 0, 1),)), Solved(solved.serial, "failed"))
    made.settle()
    placed = made.placed()
    assert len(placed) == 2
    made.step(solved, Solved(solved.serial, "optimal", ((0, 999, 10**6),)), after=1.0)
    assert made.placed() == placed
    assert made.faults == []


def test_without_an_answer_pods_are_placed_by_the_same_costs_after_the_time_limit() -> None:
    made, solved = asked(*nodes(3), speeds={"n0": 1.0, "n1": 3.0, "n2": 2.0})
    assert solved is not None
    made.sleep(4.9)
    assert made.placed() == {}
    made.sleep(0.2)
    assert made.placed() == {"t0": "n1", "t1": "n2"}


class Moody:
    """A solver that answers, fails, or says nothing, at any time; and how long each pod has waited."""

    def __init__(self, made: World, seed: int) -> None:
        self._made, self._random = made, Random(seed)
        self._answers: list[tuple[float, Solved]] = []  # when each comes
        self._asked = 0
        self.waits: dict[str, float] = {}

    def run(self, until: float) -> None:
        """Every step up to a time."""
        made = self._made
        while (at := min(self._next(until), until)) < until:
            due = [solved for when, solved in self._answers if when <= at]
            self._answers = [each for each in self._answers if each[0] > at]
            made.step(*due, after=max(at - made.now, 0.0))
            self.look()
        made.now = until

    def _next(self, otherwise: float) -> float:
        at = self._made.engine.next_step_at()
        return min([when for when, _ in self._answers] + [otherwise if at is None else at])

    def look(self) -> None:
        """Note which pods are bound, and decide about what is asked."""
        made = self._made
        made.settle()
        for name in made.placed():
            self.waits.setdefault(name, made.now - made.tasks[name].created)
        for solve in made.solves[self._asked :]:
            choices = (answer(made.engine, solve), Solved(solve.serial, "failed"), None)
            if (found := self._random.choice(choices)) is not None:
                self._answers.append((made.now + self._random.uniform(0.0, 4.9), found))
        self._asked = len(made.solves)


@pytest.mark.parametrize("seed", range(5))
def test_no_pod_waits_beyond_the_time_limit_whatever_the_solver_does(seed: int) -> None:
    random = Random(seed)
    made = world(*(make_node(f"n{at}", cpu=40) for at in range(5)), answers=False, solve_timeout=5.0)
    moody = Moody(made, seed)
    for number in range(200):
        moody.run(made.now + random.expovariate(3.0))
        made.add(make_task(f"t{number}", cpu=random.choice((0.3, 0.5)), created=made.now))
        moody.look()
    moody.run(made.now + 10.0)
    assert len(moody.waits) == 200
    assert made.faults == []
    assert max(moody.waits.values()) <= 5.0 + 1.0


def test_rounds_after_misfits_end_within_the_time_limit_of_the_first() -> None:
    """The solver answers late, what it says does not fit any more, and then it hangs."""
    made, solved = asked(*nodes(2))
    foreign = [TaskSeen(make_task(f"foreign{at}", profile="other", node=f"n{at}")) for at in range(2)]
    more = [NodeSeen(make_node(name, cpu=1)) for name in ("n2", "n3")]
    made.step(*foreign, *more, solved, after=4.0)
    made.settle()
    made.sleep(0.9)
    assert made.placed() == {}
    assert len(made.solves) == 2
    made.sleep(0.2)
    assert set(made.placed().values()) == {"n2", "n3"}


def test_a_solver_that_has_failed_costs_no_time() -> None:
    made, solved = asked(*nodes(2))
    made.step(Solved(solved.serial, "failed"), after=0.1)
    made.settle()
    assert len(made.placed()) == 2


def test_pods_of_several_classes_that_do_not_fit_together_are_solved_again() -> None:
    made = world(make_node("n0", cpu=4), make_node("n1", cpu=4))
    made.add(*numbered(4, "small", cpu=1), *numbered(2, "large", cpu=2))
    made.sleep(3.0)
    assert len(made.placed()) == 6
    assert made.faults == []


def test_a_round_has_as_many_pods_as_a_step_may_place() -> None:
    made = world(make_node("n0", cpu=1, pods=10**6), answers=False)
    made.add(*numbered(ROUND_MOST + 5, cpu=0))
    problem = made.engine.problem(made.solves[-1].serial)
    assert problem is not None
    assert problem.supplies[problem.supplies > 0].sum() <= ROUND_MOST
    made.answers_solves = True
    made.sleep(20.0)
    assert len(made.placed()) == ROUND_MOST + 5


def test_of_very_many_nodes_a_class_has_arcs_to_the_cheapest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draft, "ARCS_MOST", 4)
    monkeypatch.setattr(draft, "NODES_LEAST", 1)
    made = world(*nodes(9), speeds={"n3": 4.0, "n5": 3.0, "n6": 2.5, "n8": 2.1}, answers=False)
    made.add(*numbered(5))
    assert made.solves[-1].arcs == 2 + 1 + 4 + 4  # of a group, of its job, to four nodes, from them
    made.step(answer(made.engine, made.solves[-1]), after=0.1)
    made.settle()
    assert set(made.placed().values()) == {"n3", "n5", "n6", "n8"}


@pytest.mark.parametrize("costs", ["rosella", "load-spreading"])
@pytest.mark.parametrize("seed", range(10))
def test_each_class_needs_no_more_nodes_than_pods_are_in_the_round(
    seed: int, costs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The least sum of costs is that of the whole network."""
    rng = Random(seed)
    speeds = {f"n{at}": rng.choice((0.2, 0.5, 1.0, 1.7)) for at in range(30)}
    sizes = [rng.choice((1, 2, 4)) for _ in speeds]
    taken = [make_task(f"there{at}", node=f"n{rng.randrange(30)}", cpu=0.5) for at in range(12)]
    pods = [
        *numbered(rng.randint(1, 4), "large", cpu=rng.choice((1, 2)), workload="large"),
        *numbered(rng.randint(1, 4), "small", cpu=0.5),
    ]
    found = []
    for least in (1, 1000):
        monkeypatch.setattr(draft, "NODES_LEAST", least)
        cluster = (make_node(name, cpu=cpu) for name, cpu in zip(speeds, sizes, strict=True))
        made = world(*cluster, answers=False, costs=costs, speeds=speeds)
        made.add(*taken)
        made.add(*pods)
        problem = made.engine.problem(made.solves[-1].serial)
        assert problem is not None
        flows = min_cost_flow(problem)
        assert flows is not None
        found.append((int(flows @ problem.costs), len(problem.tails)))
    (few_cost, few_arcs), (cost, arcs) = found
    assert few_cost == cost
    assert few_arcs < arcs / 2


def test_a_problem_of_too_many_arcs_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effects, "ARCS_MOST", 3)
    made = world(*nodes(3))
    made.add(make_task("a"))
    assert "arcs, more than 3" in made.faults[0].message


@pytest.mark.parametrize("job", ["one", "", "uid-t{at}"])
def test_equal_pods_are_one_group(job: str) -> None:
    """Arcs depend on classes and nodes, not on the number of pods, whether or not these have a controller."""
    counts = []
    for pods in (10, 500):
        made = world(*nodes(5, cpu=1000), answers=False)
        made.add(*(make_task(f"t{at}", job=job.format(at=at)) for at in range(pods)))
        counts.append(made.solves[-1].arcs)
    assert counts[0] == counts[1]


def test_rounds_are_apart_and_the_first_is_at_once() -> None:
    made = world(*nodes(9))
    made.step(after=100.0)
    made.add(make_task("a"))
    assert len(made.solves) == 1
    made.add(make_task("b"))
    assert len(made.solves) == 1
    made.sleep(1.0)
    assert len(made.solves) == 2
    assert set(made.placed()) == {"a", "b"}


def test_pods_without_room_anywhere_ask_for_nothing() -> None:
    made = small_world(make_engine(Quincy()), cpu=1)
    made.add(make_task("big", cpu=2))
    made.sleep(100.0)
    assert made.solves == []


def test_two_profiles_ask_for_themselves() -> None:
    written = [{"schedulerName": name, "place": {"policy": "quincy"}} for name in ("one", "two")]
    engine = Engine(read_profiles(written, "profiles"), Unlearned())
    seen = [TaskSeen(make_task(name, profile=name)) for name in ("one", "two")]
    commands = engine.step([Resumed(), *(NodeSeen(each) for each in nodes(2)), *seen], 0.0)
    solves = [each for each in commands if isinstance(each, Solve)]
    assert [each.profile for each in solves] == ["one", "two"]
    answers = [answer(engine, each) for each in solves]
    first = engine.step([answers[0]], 0.1)
    assert [each.name for each in first if isinstance(each, Bind)] == ["one"]
    engine.step([answers[1]], 0.2)  # both were given the same node
    again = next(each for each in engine.step([], 0.3) if isinstance(each, Solve))
    second = engine.step([answer(engine, again)], 0.4)
    assert [each.name for each in second if isinstance(each, Bind)] == ["two"]


def test_a_tape_replays_without_a_solver_and_compares_what_was_asked() -> None:
    steps = []
    made = world(*nodes(3))
    step = made.engine.step
    made.engine.step = lambda events, now: (
        steps.append((now, list(events), found := step(events, now))) or found
    )  # type: ignore[method-assign]
    made.add(*numbered(5))
    made.sleep(5.0)
    again = make_engine(Quincy())
    again.step([Resumed(), *(NodeSeen(each) for each in nodes(3))], 0.0)
    assert [again.step(events, now) for now, events, _ in steps] == [commands for *_, commands in steps]
    assert any(isinstance(each, Solve) for *_, commands in steps for each in commands)


def test_equal_engines_ask_the_same() -> None:
    digests = []
    for _ in range(2):
        made = world(*nodes(4), speeds={"n0": 3.0})
        made.add(*numbered(9))
        digests.append([each.digest for each in made.solves])
    assert digests[0] == digests[1]
    assert digests[0]


def test_a_problem_that_no_solver_may_be_given_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """Solvers cut fractions off without a word."""
    made = world(*nodes(1))
    begun = Quincy._begun

    def with_fractions(self: Quincy, *of: Any) -> Any:
        found = begun(self, *of)
        problem = found.network.problem._replace(costs=np.array([1.5] * len(found.network.problem.costs)))
        return found._replace(network=found.network._replace(problem=problem))

    monkeypatch.setattr(Quincy, "_begun", with_fractions)
    made.add(make_task("a"))
    assert "integers" in made.faults[0].message
    assert made.solves == []
