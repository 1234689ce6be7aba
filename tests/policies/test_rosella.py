"""Rosella's placement: the three keys, the draws, the ties."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from builders import ExactSpeeds, make_cluster, make_engine, make_node, make_spec, make_task
from eclectus.feasibility.task_class import TaskClass
from eclectus.framework import Action, Enqueue, Place
from eclectus.maths import numbers
from eclectus.model.errors import SettingsError
from eclectus.model.events import NodeSeen, Resumed
from eclectus.model.objects import Preference, Requirement, Task, Term
from eclectus.policies.rosella import Rosella
from eclectus.policies.rosella.place import KEYS
from worlds import World

ROW = np.array([0])


@pytest.fixture(autouse=True)
def _as_in_the_engine() -> Iterator[None]:
    """The engine ignores numpy's warnings, so policies may divide by 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        yield


def key(name: str, queue: int, slots: int, rate: float, services: int = 0) -> float:
    """The key of a node of `slots` slots with `queue` tasks running or queued there."""
    cluster = make_cluster(make_node(cpu=slots + services))
    for at in range(queue):
        cluster.add_tentative(0, make_spec(cpu=1).requests)
        if at % 2:  # half of them run, half are queued
            cluster.add_tentative(0, make_spec(cpu=1).requests, -1)
            cluster.hold(0, make_task(str(at)))
    for at in range(services):
        cluster.hold(0, make_task(f"s{at}", long_running=True))
    task_class, rates = TaskClass(cluster, make_spec(cpu=1), ""), np.full(cluster.capacity, rate)
    (of_many,) = KEYS[name](np, task_class, rates, ROW)
    of_one = KEYS[name](numbers, task_class.scalars, rates.tolist(), 0)
    assert of_one == of_many
    return of_one  # type: ignore[no-any-return]


@pytest.mark.parametrize("queue", range(6))
@pytest.mark.parametrize("rate", [0.25, 1.0, 8.0])
def test_with_one_slot_the_keys_are_the_papers(queue: int, rate: float) -> None:
    assert key("sq", queue, 1, rate) == queue
    assert key("wait", queue, 1, rate) == pytest.approx(queue / rate)
    assert key("sed", queue, 1, rate) == pytest.approx((queue + 1) / rate)


@pytest.mark.parametrize(
    ("queue", "slots", "sq", "wait", "sed"),
    [
        (0, 4, 0.0, 0.0, 2.0),
        (3, 4, 0.75, 0.0, 2.0),
        (4, 4, 1.0, 0.5, 2.5),
        (6, 4, 1.5, 1.5, 3.5),
        (12, 4, 3.0, 4.5, 6.5),
    ],
)
def test_with_four_slots_of_half_a_task_a_second(
    queue: int, slots: int, sq: float, wait: float, sed: float
) -> None:
    """sq = q / k, wait = max(0, q - k + 1) / (k rate), sed = wait + 1 / rate."""
    found = [key(name, queue, slots, 0.5) for name in ("sq", "wait", "sed")]
    assert found == pytest.approx([sq, wait, sed])


def test_services_take_slots_away_instead_of_queueing() -> None:
    with_services = [key(name, 6, 4, 0.5, services=3) for name in ("sq", "wait", "sed")]
    assert with_services == pytest.approx([key(name, 6, 4, 0.5) for name in ("sq", "wait", "sed")])


@pytest.mark.parametrize("name", KEYS)
def test_where_services_leave_no_slot_all_keys_are_infinite(name: str) -> None:
    assert key(name, 0, 0, 1.0, services=4) == np.inf


def test_an_idle_node_of_speed_0_has_no_wait_but_an_infinite_delay() -> None:
    assert key("wait", 0, 1, 0.0) == 0.0
    assert key("sed", 0, 1, 0.0) == np.inf
    assert key("wait", 1, 1, 0.0) == np.inf


# -- draws ---------------------------------------------------------------------------------------


def choices(policy: Place, rates: dict[str, float], times: int, task: Task | None = None) -> Counter[str]:
    """The nodes of tasks in an idle cluster, each placed as if it were the first."""
    engine = make_engine(policy, ExactSpeeds(rates), seed=3)
    labels = {name: {"name": name} for name in rates}
    nodes = [NodeSeen(make_node(name, cpu=1, labels=labels[name])) for name in rates]
    engine.step([Resumed(), *nodes], 0.0)
    view = engine._state.view
    answers: Iterator[Action] = policy.place(view, iter([task or make_task()] * times))
    return Counter(view.cluster.names[answer.row] for answer in answers if isinstance(answer, Enqueue))


EXAMPLE_1 = {**{f"slow{at}": 1.0 for at in range(9)}, "fast": 6.0}


def test_example_one_sends_an_idle_cluster_64_of_100_to_the_fast_worker() -> None:
    """p = .4; the fast node is drawn with probability 1 - .6^2, and wins every tie."""
    found = choices(Rosella(view="sample"), EXAMPLE_1, 8000)
    assert found["fast"] / 8000 == pytest.approx(0.64, abs=0.02)
    slow = [found[name] for name in EXAMPLE_1 if name != "fast"]
    assert max(slow) - min(slow) < 120


def test_distinct_draws_include_the_fast_worker_more_often() -> None:
    """1 - .6 x sum over the slow of p_j / (1 - p_i): the second draw is over the other nine."""
    missed = sum((1 / 15) * (8 / 15) / (1 - 1 / 15) for _ in range(9))
    found = choices(Rosella(view="sample", distinct=True), EXAMPLE_1, 8000)
    assert found["fast"] / 8000 == pytest.approx(1 - missed, abs=0.02)


def test_of_two_nodes_distinct_draws_always_compare_both() -> None:
    assert choices(Rosella(view="sample", distinct=True), {"slow": 1.0, "fast": 2.0}, 200) == {"fast": 200}


@pytest.mark.parametrize("query", ["proportional", "uniform"])
def test_a_node_without_speed_gets_no_work(query: str) -> None:
    policy = Rosella(view="sample", query=query)  # type: ignore[arg-type]
    found = choices(policy, {"dead": 0.0, "one": 1.0, "two": 1.0}, 500)
    assert found["dead"] == 0


def test_uniform_draws_include_the_fast_worker_as_often_as_any() -> None:
    """Example 2: both draws are slow with probability .9^2 with replacement, .8 without."""
    for distinct, both_slow in ((False, 0.81), (True, 0.8)):
        policy = Rosella(view="sample", query="uniform", distinct=distinct)
        found = choices(policy, EXAMPLE_1, 8000)
        assert found["fast"] / 8000 == pytest.approx(1 - both_slow, abs=0.02)


@pytest.mark.parametrize("drawn", [1, 3, 5])
def test_of_so_many_draws_the_best_gets_the_task(drawn: int) -> None:
    """Example 1: the fast node is not drawn with probability .6^d, and wins every tie."""
    found = choices(Rosella(view="sample", choices=drawn), EXAMPLE_1, 8000)
    assert found["fast"] / 8000 == pytest.approx(1 - 0.6**drawn, abs=0.02)


@pytest.mark.parametrize("query", ["proportional", "uniform"])
@pytest.mark.parametrize("compare", ["sq", "wait", "sed"])
def test_any_query_works_with_any_assignment(query: str, compare: str) -> None:
    """Two nodes, both drawn: only the assignment rule decides."""
    policy = Rosella(view="sample", query=query, compare=compare, distinct=True)  # type: ignore[arg-type]
    world = World(make_engine(policy, ExactSpeeds({"slow": 1.0, "fast": 8.0})))
    world.step(NodeSeen(make_node("slow", cpu=1)), NodeSeen(make_node("fast", cpu=1)))
    world.add(make_task("first"))
    assert world.node_of("first") == "fast"
    world.add(make_task("second", created=1))
    assert world.node_of("second") == ("" if compare == "sed" else "slow")


def test_more_distinct_draws_than_nodes_include_all_of_them() -> None:
    policy = Rosella(view="sample", query="uniform", choices=9, distinct=True)
    assert choices(policy, {"slow": 1.0, "mid": 2.0, "fast": 4.0}, 200) == {"fast": 200}


@pytest.mark.parametrize("said", [{"query": "uniform"}, {"choices": 3}, {"distinct": True}])
def test_drawing_from_the_full_view_is_refused_with_a_remedy(said: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match="view: the full view draws no nodes; leave out query, choices"):
        Rosella(**said)


@pytest.mark.parametrize("compare", ["sq", "wait", "sed"])
def test_a_tie_goes_to_the_faster(compare: str) -> None:
    policy = Rosella(replan=False, compare=compare)  # type: ignore[arg-type]
    assert choices(policy, {"slow": 1.0, "fast": 2.0, "slower": 0.5}, 1) == {"fast": 1}


@pytest.mark.parametrize(("weight", "node"), [(0.0, "fast"), (1.0, "slow")])
def test_preferences_weigh_as_set(weight: float, node: str) -> None:
    likes = (Preference(1, Term((Requirement("name", "In", ("slow",)),))),)
    policy = Rosella(replan=False, compare="sed", soft_weight=weight)
    task = make_task(preferences=likes)
    assert choices(policy, {"slow": 1.0, "fast": 1.3}, 1, task) == {node: 1}


def test_the_three_rules_differ_as_in_the_paper() -> None:
    """A fast node with a short queue against an idle slow one."""
    for compare, node in (("sq", "slow"), ("wait", "slow"), ("sed", "fast")):
        policy = Rosella(replan=False, compare=compare)  # type: ignore[arg-type]
        engine = make_engine(policy, ExactSpeeds({"slow": 1.0, "fast": 8.0}))
        engine.step([Resumed(), NodeSeen(make_node("slow", cpu=1)), NodeSeen(make_node("fast", cpu=1))], 0.0)
        cluster = engine._state.cluster
        cluster.hold(cluster.rows["fast"], make_task("placed"))
        [answer] = policy.place(engine._state.view, iter([make_task()]))
        assert cluster.names[answer.row] == node, compare  # type: ignore[union-attr]


def test_replanning_a_sample_is_refused_with_a_remedy() -> None:
    with pytest.raises(SettingsError, match="replan: re-planning needs the full view"):
        Rosella(view="sample", replan=True)
