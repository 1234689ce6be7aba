"""Combinations of policies that are refused: each with its path and what to do, and each voids a policy."""

from __future__ import annotations

from collections import Counter
from itertools import islice, product
from pathlib import Path
from typing import Literal

import pytest
import yaml
from msgspec.structs import replace

from builders import make_engine, make_node
from configurations import HEAD, error_of
from eclectus.config.configuration import parse
from eclectus.framework import Line, Place, Profile
from eclectus.model.errors import SettingsError
from eclectus.model.objects import Task
from eclectus.policies.line.fifo import FifoLine
from eclectus.policies.line.srpt import ShortestRemaining
from eclectus.policies.order.drf import DominantShare
from eclectus.policies.place.clwl import CentralLeastWait
from eclectus.policies.place.eagle import Eagle
from eclectus.policies.place.power_of_two import Uniform
from eclectus.policies.place.sparrow import Sparrow
from eclectus.policies.rosella import RosellaLine
from eclectus.policies.table import CLASHES, ROLES, clashes_in
from eclectus.sim.scenario import load
from eclectus_e2e.paths import CHECKOUT
from policy_choices import Way, Ways
from short_scenarios import scenario
from worlds import numbered, small_world

UNUSED = "profiles[0].line: orders node queues, but with this place no pod enters one; leave it out"
HAWK = "profiles[0].line: hawk needs {policy: stealing}"
EAGLE = "profiles[0].line: eagle needs {policy: srpt}"
PAPER = "profiles[0].line: contradicts place's mode: paper"
DRF = "profiles[0].order: ranks groups by what their bound pods hold"
HOLD = "profiles[0].hold: " + next(each.problem for each in CLASHES if each.at == "hold")
REFUSED = {
    "line: {policy: rosella}": UNUSED,
    "line: {policy: stealing}, place: {policy: least-allocated}": UNUSED,
    "line: {policy: srpt}, place: {policy: uniform}": UNUSED,
    "line: {policy: srpt}, place: {policy: rosella, theta: 3}": UNUSED,
    "line: {policy: rosella}, place: {policy: rosella, mode: paper}": PAPER,
    "line: {policy: srpt}, place: {policy: rosella, mode: paper}": PAPER,
    "place: {policy: rosella, mode: paper}, relieve: {policy: preemption}": (
        "profiles[0].relieve: contradicts place's mode: paper, in which no pod is ended for another"
    ),
    "place: {policy: hawk}": HAWK,
    "place: {policy: hawk}, line: {policy: srpt}": HAWK,
    "place: {policy: eagle}": EAGLE,
    "place: {policy: eagle}, line: {policy: stealing}": EAGLE,
    "place: {policy: sparrow}, line: {policy: rosella}": "profiles[0].line: moves pods that wait at one node",
    "place: {policy: dlwl}, line: {policy: rosella}": "profiles[0].line: moves long pods to nodes that clwl",
    "order: {policy: drf}, place: {policy: sparrow}": DRF,
    "order: {policy: drf}, place: {policy: tetris}": DRF,
    "order: {policy: drf, by: job}, place: {policy: rosella, view: sample}": DRF,
    "order: {policy: drf}, place: {policy: round-robin, queue: lines}": DRF,
    "hold: {policy: delay}": HOLD,
    "hold: {policy: delay}, place: {policy: tetris}": HOLD,
    "hold: {policy: delay}, place: {policy: sparrow}": HOLD,
    "hold: {policy: delay}, place: {policy: quincy}": HOLD,
}
ACCEPTED = [
    "line: {policy: srpt}, place: {policy: rosella, replan: false}",
    "line: {policy: rosella}, place: {policy: rosella, view: sample}",
    "line: {policy: stealing}, place: {policy: pot, queue: lines}",
    "place: {policy: hawk}, line: {policy: stealing, attempts: 0}",
    "place: {policy: eagle}, line: {policy: srpt, slack: 0}",
    "order: {policy: drf, by: job}, place: {policy: best-fit}",
    "hold: {policy: delay}, place: {policy: kube}, order: {policy: drf, by: job}",
    "order: {policy: srtf}, place: {policy: tetris}",
    "order: {policy: sjf}, place: {policy: sparrow}",
    "place: {policy: rosella, view: sample}, relieve: {policy: preemption}",
]


def text(said: str) -> str:
    return f"{HEAD}profiles: [{{schedulerName: a, {said}}}]\n"


@pytest.mark.parametrize(("said", "problem"), REFUSED.items())
def test_it_is_refused_with_its_path(said: str, problem: str) -> None:
    assert problem in error_of(text(said))


@pytest.mark.parametrize("said", ACCEPTED)
def test_it_is_accepted(said: str) -> None:
    assert parse(text(said)).profiles


def test_ways_of_the_contract_suite_are_accepted_as_configurations_are() -> None:
    ways = (dict(zip(ROLES, each, strict=True)) for each in product(*Ways().representatives.values()))
    found = []
    for choices in islice(ways, 0, None, 101):
        roles = {role: choice.policy for role, choice in choices.items() if role != "learn"}
        found.append(Way(choices).is_accepted)
        assert found[-1] != any(clashes_in(Profile("any", **roles)))
    assert {True, False} == set(found)


def test_every_row_is_tried() -> None:
    tried = "".join(error_of(text(said)) for said in REFUSED)
    assert [clash.problem for clash in CLASHES if clash.problem not in tried] == []


def test_two_combinations_of_one_profile_are_both_reported() -> None:
    found = error_of(text("order: {policy: drf}, place: {policy: hawk}"))
    assert DRF in found
    assert HAWK in found


def test_a_scenario_is_refused_with_the_path_of_its_profile() -> None:
    with pytest.raises(SettingsError, match=r"^profiles\[1\]\.line: eagle needs"):
        scenario(profiles=[{"schedulerName": "a"}, {"schedulerName": "b", "place": {"policy": "eagle"}}])


@pytest.mark.parametrize("file", sorted((CHECKOUT / "scenarios").glob("*.yaml")), ids=lambda file: file.stem)
def test_what_the_shipped_scenarios_compare_is_accepted(file: Path) -> None:
    names = [profile["schedulerName"] for profile in yaml.safe_load(file.read_text())["profiles"]]
    assert [profile.name for profile in load(file).profiles] == names


# -- what is void, in engines that are not asked whether their policies make sense ------------------------


def binds(place: Place, line: Line, *tasks: Task) -> list[tuple[str, str]]:
    """Pod and node of every bind on three nodes of one slot, where pods end one by one, those of n2 first."""
    world = small_world(make_engine(place, line=line), nodes=3, cpu=1)
    world.add(*tasks)
    while placed := world.placed():
        world.end(max(placed, key=lambda name: (placed[name], name)))
    return [(bind.name, bind.node) for bind in world.binds]


def test_rosellas_line_moves_none_of_sparrows_pods() -> None:
    assert binds(Sparrow(), RosellaLine(), *numbered(12)) == binds(Sparrow(), FifoLine(), *numbered(12))
    alone = [binds(Uniform("lines"), line, *numbered(12)) for line in (RosellaLine(), FifoLine())]
    assert alone[0] != alone[1]


@pytest.mark.parametrize(("line", "node"), [(FifoLine(), ""), (RosellaLine(), "n0")], ids=["fifo", "rosella"])
def test_rosellas_line_moves_a_long_pod_to_a_node_kept_for_short_ones(line: Line, node: str) -> None:
    world = small_world(make_engine(CentralLeastWait(), line=line), nodes=10, cpu=1)
    world.add(*numbered(10, estimate=200.0))
    world.put_node(make_node("n0", cpu=1, labels={"changed": ""}))
    assert world.node_of("t9") == node


@pytest.mark.parametrize(("queue", "held"), [("central", {"a": 2, "b": 2}), ("lines", {"a": 4})])
def test_drf_shares_nothing_where_pods_get_a_node_on_arrival(
    queue: Literal["central", "lines"], held: dict[str, int]
) -> None:
    world = small_world(make_engine(Uniform(queue), order=DominantShare()), cpu=4)
    world.add(*(replace(task, namespace="a") for task in numbered(8, "a")))
    world.add(*(replace(task, namespace="b") for task in numbered(8, "b")))
    world.end("a0")
    world.end("a1")
    assert Counter(name[0] for name in world.placed()) == held


@pytest.mark.parametrize(
    ("line", "order"),
    [(ShortestRemaining(), "a0 b0 a1 a2"), (FifoLine(), "a0 a1 a2 b0")],
    ids=["srpt", "fifo"],
)
def test_a_large_job_of_eagle_holds_up_others_in_another_order_than_srpt(line: Line, order: str) -> None:
    world = small_world(make_engine(Eagle(), line=line), nodes=1, cpu=1)
    world.add(*numbered(3, "a", job="a", estimate=50.0), *numbered(1, "b", job="b", estimate=40.0))
    while placed := world.placed():
        world.end(*placed)
    assert [bind.name for bind in world.binds] == order.split()
