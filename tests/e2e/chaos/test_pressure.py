"""A seed climbs to the same world, and each bound that is removed is found by a climb."""

import gc
import math
import random
import time
from types import SimpleNamespace

import pytest

from eclectus.cluster import budgets, resources
from eclectus.engine.engine import Engine
from eclectus.engine.pod_specs import late_pods
from eclectus.engine.scheduling_cycle import SchedulingCycle
from eclectus.policies.carbyne import planner
from eclectus_e2e.chaos.pressure import climbing, command, worlds
from eclectus_e2e.chaos.pressure.kinds import KINDS
from eclectus_e2e.chaos.pressure.worlds import CALLS_MOST, CONTEXT, Candidate, Party, Work, beyond_empty
from eclectus_e2e.errors import UsageError

SECONDS = 60.0  # far more than a world of a test takes
QUIET = dict.fromkeys(CONTEXT, 0)


def party(kind, count, **shape):
    return Party(kind, count, {**dict.fromkeys(KINDS[kind].shape, 0), **shape})


def world(first, second, **context):
    return Candidate((first, second), {**QUIET, **context})


SERVICES_AND_PODS = world(party("waiting", 50, labels=40, distinct=1), party("services", 50, keys=8))


def longest_steps(monkeypatch, comparisons):
    """Of the world and of one with twice as many objects, where a step may make so many comparisons."""
    monkeypatch.setattr(late_pods, "COMPARISONS_MOST", comparisons)
    monkeypatch.setattr(late_pods, "OF_ONE_NAMESPACE_MOST", comparisons)
    return [beyond_empty(SERVICES_AND_PODS.times(factor), SECONDS).step for factor in (1, 2)]


def test_a_bound_that_is_removed_is_found(monkeypatch):
    once, twice = longest_steps(monkeypatch, 1_000)
    assert twice < 2 * once
    once, twice = longest_steps(monkeypatch, 10**12)
    assert twice > 3 * once, "a product"


def test_jobs_of_one_task_beside_gangs_cost_a_step_what_their_number_says():
    few, many = (
        beyond_empty(
            world(
                party("gangs", 16, members=16, fits=1),
                party("jobs", jobs, stages=1, tasks=1, started=1),
                reversed=1,
            ),
            SECONDS,
        ).step
        for jobs in (64, 128)
    )
    assert many < 2 * few


# What a tenant could do by making many of two things: the pair of kinds, the objective, a seed that draws the
# attack among two starts, and the bounds that stand against it, each with what removes it.
NO_BOUND = 10**12
FUEL = [(late_pods, name, NO_BOUND) for name in ("COMPARISONS_MOST", "OF_ONE_NAMESPACE_MOST")]
ALL_TERMS = [*FUEL, (late_pods, "TERMS_MOST", NO_BOUND)]
ALL_BUDGETS = [(budgets, name, NO_BOUND) for name in ("COMPARISONS_MOST", "BUDGETS_MOST")]
ALL_STAGES = [(planner, "STAGES_MOST", NO_BOUND)]
ALL_MEMBERS = [(SchedulingCycle, "count_classes", lambda *_: None)]
ALL_NAMES = [(resources, name, NO_BOUND) for name in ("COLUMNS_OF_NODE_MOST", "COLUMNS_MOST")]
ATTACKS = {
    "labels x services": (("waiting", "services"), "step", 11128, FUEL),
    "budgets x victims": (("placed", "budgets"), "step", 140, ALL_BUDGETS),
    "terms x pods of others": (("waiting", "namespaces"), "beside", 4900, ALL_TERMS),
    "stages x jobs": (("jobs", "namespaces"), "step", 12, ALL_STAGES),
    "members x classes": (("gangs", "namespaces"), "step", 112, ALL_MEMBERS),
}


@pytest.fixture
def climbed(monkeypatch):
    """What a short climb finds without some bounds."""

    def climb(pair, objective, seed, bounds, generations=1):
        with monkeypatch.context() as without:
            without.setattr(climbing, "SCREENED", 2)
            without.setattr(climbing, "STARTS", 0)
            for bound in bounds:
                without.setattr(*bound)
            drawn = climbing.screen(pair, seed, SECONDS)
            return climbing.search(drawn, objective, generations, SECONDS, math.inf)

    return climb


# Half a minute each; what they find is what `make pressure` is for, and each bound has a test of its own.
@pytest.mark.slow
@pytest.mark.parametrize("attack", ATTACKS)
def test_a_climb_finds_the_attack_that_a_bound_stands_against(attack, climbed):
    found = climbed(*ATTACKS[attack])
    assert found.is_over, "there is no end to it"
    mended = beyond_empty(found.candidate.times(found.factor), SECONDS)
    assert not mended.is_beyond
    assert not mended.is_over


@pytest.mark.slow
def test_a_climb_finds_that_names_of_resources_times_nodes_are_kept(climbed):
    found = climbed(("nodes", "nodes"), "kept", 81, ALL_NAMES, generations=0)
    assert found.is_finding
    assert not climbing.judged(found.pair, "kept", found.candidate, SECONDS).is_finding


def made_up(candidate):
    """Work that is greatest for many Services and pods of many labels."""
    waiting, services = candidate.parties
    return Work(step=waiting.count * services.count * (1 + waiting.shape["labels"]))


def never():
    return False


PAIR, PLACED = ("waiting", "services"), ("placed", "budgets")


def made_up_climb(seed, generations):
    """The best world of a climb by costs that are made up."""
    start = climbing.screened(PAIR, seed, made_up).best("step")
    found, _ = climbing.climb(start, "step", random.Random(seed), generations, made_up, is_spent=never)
    return climbing.candidate_of(found.genes), found.work


def test_a_climb_finds_the_product_of_two_counts_and_a_shape(monkeypatch):
    monkeypatch.setattr(climbing, "PATIENCE", 40)
    candidate, work = made_up_climb(1, 40)
    assert work == made_up(candidate)
    assert [party.count for party in candidate.parties] == [max(climbing.COUNTS)] * 2
    assert candidate.parties[0].shape["labels"] == 40


def test_a_seed_climbs_to_the_same_world():
    assert made_up_climb(1, 2) == made_up_climb(1, 2)
    assert made_up_climb(1, 2)[0] != made_up_climb(2, 2)[0]


def test_a_climb_that_gets_no_better_ends():
    start = climbing.screened(PAIR, 1, made_up).best("step")
    found, worlds = climbing.climb(start, "step", random.Random(1), 40, lambda _: Work(), is_spent=never)
    assert found is start
    assert worlds == climbing.STARTS + climbing.PATIENCE * climbing.CHILDREN


def test_a_climb_ends_when_its_share_of_the_time_is_spent():
    start = climbing.screened(PAIR, 1, made_up).best("step")
    looks = iter((False, False, True))
    _, worlds = climbing.climb(start, "step", random.Random(1), 40, made_up, is_spent=lambda: next(looks))
    assert worlds == 2


def test_climbs_begin_with_the_pairs_whose_objects_cost_most():
    few, many = (
        climbing.Screened(PAIR, seed, climbing.screened(PAIR, 1, lambda _, work=work: work).worlds)
        for seed, work in enumerate((Work(step=2, kept=7), Work(step=9, kept=3)))
    )
    order = climbing.in_order([few, many], ["step", "kept"])
    assert order == [(many, "step"), (few, "kept"), (few, "step"), (many, "kept")]


def screened_as(*costs):
    """Pairs by their kinds, each with worlds of which a step costs so much."""
    return [climbing.screened(pair, 1, lambda _, step=step: Work(step=step)) for pair, step in costs]


def test_a_kind_whose_objects_are_costly_does_not_have_all_the_time(monkeypatch):
    monkeypatch.setattr(climbing, "COUNTS", (16,))
    costs = (("gangs", "jobs"), 900), (("gangs", "claims"), 800), (("jobs", "claims"), 700), (PLACED, 600)
    order = [each.pair for each, _ in climbing.in_order(screened_as(*costs), ["step"])]
    assert order == [("gangs", "jobs"), PLACED, ("gangs", "claims"), ("jobs", "claims")]


def test_what_is_beyond_a_bound_comes_first():
    found = screened_as((PAIR, 5), (("gangs", "jobs"), CALLS_MOST))
    order = [(each.pair, objective) for each, objective in climbing.in_order(found, ["step", "kept"])]
    assert order == [(("gangs", "jobs"), "step"), (("gangs", "jobs"), "kept"), (PAIR, "step"), (PAIR, "kept")]


def test_the_same_world_costs_the_same_calls():
    candidate = world(party("placed", 31, labels=40), party("budgets", 10), preemptors=16)
    first, *others = (beyond_empty(candidate, SECONDS, counting) for counting in ("calls", "calls", "all"))
    assert first.step > 0
    assert {(each.step, each.beside) for each in others} == {(first.step, first.beside)}
    kept = beyond_empty(candidate, SECONDS, "bytes").kept
    assert others[1].kept == pytest.approx(kept, rel=0.3), "the profiler's are among them"
    assert kept > 0


@pytest.mark.parametrize("kind", KINDS)
def test_objects_of_every_shape_are_read_by_the_scheduler(kind):
    rng = random.Random(kind)
    for _ in range(5):
        candidate = climbing.candidate_of(climbing.drawn((kind, kind), rng))
        events = list(KINDS[kind].make(candidate.parties[0].shape, 3))
        assert len(events) >= 3
        assert all(event.task.namespace for event in events if hasattr(event, "task"))


def test_a_climb_ends_where_a_step_is_beyond_the_bound():
    start = climbing.screened(PAIR, 1, made_up).best("step")
    costs = iter((1, 2, CALLS_MOST))
    world, worlds = climbing.climb(
        start, "beside", random.Random(1), 40, lambda _: Work(step=next(costs)), is_spent=never
    )
    assert worlds == 3
    found = climbing.Found(PAIR, "beside", climbing.candidate_of(world.genes), world.work, world.work)
    assert found.is_finding, "though it does not grow"


def test_no_world_is_drawn_after_one_that_is_beyond_the_bound():
    costs = iter((1, CALLS_MOST))
    drawn = climbing.screened(PAIR, 1, lambda _: Work(step=next(costs)))
    assert [each.work.step for each in drawn.worlds] == [1, CALLS_MOST]
    assert climbing.search(drawn, "kept", 5, SECONDS, math.inf).is_finding


def test_a_step_that_makes_too_many_calls_ends_its_world(monkeypatch):
    monkeypatch.setattr(worlds, "CALLS_MOST", 30_000)
    monkeypatch.setattr(worlds, "_TICK_SECONDS", 0.001)
    work = beyond_empty(SERVICES_AND_PODS, SECONDS)
    assert (work.step, work.beside) == (30_000, 0)
    assert work.is_beyond


def test_looking_at_a_step_is_not_counted(monkeypatch):
    calls = beyond_empty(SERVICES_AND_PODS, SECONDS).step
    monkeypatch.setattr(worlds, "_TICK_SECONDS", 0.001)
    assert beyond_empty(SERVICES_AND_PODS, SECONDS).step == calls


def test_collecting_garbage_is_not_counted():
    def noted(phase, _):
        time.process_time()

    calls = worlds.measured(SERVICES_AND_PODS, SECONDS).step
    gc.callbacks.append(noted)  # as Hypothesis does
    try:
        assert worlds.measured(SERVICES_AND_PODS, SECONDS).step == calls
    finally:
        gc.callbacks.remove(noted)


def test_a_step_beyond_the_limit_of_its_world_is_ended(monkeypatch):
    def endless(*_):
        while True:
            pass

    monkeypatch.setattr(Engine, "step", endless)
    assert worlds.measured(SERVICES_AND_PODS, 1.0).is_over


@pytest.mark.parametrize(
    ("few", "many", "grows"), [(9**6, 4 * 9**6, True), (9**6, 2 * 9**6, False), (9, 36, False)]
)
def test_much_work_that_grows_faster_than_the_objects_is_a_finding(few, many, grows):
    pair = "waiting", "services"
    found = climbing.Found(pair, "step", SERVICES_AND_PODS, Work(step=few), Work(step=many))
    assert found.is_finding is grows


def test_the_command_prints_a_row_for_each_pair_and_objective(capsys):
    arguments = ["--pairs", "namespaces,services", "--climbs", "1", "--generations", "1", "--jobs", "1"]
    assert command.pressure([*arguments, "--objectives", "step"]) == 0
    printed = capsys.readouterr().out
    assert "services x namespaces step" in printed
    assert "none of 1 cost too much (" in printed


def test_a_limit_that_is_lost_in_a_callback_is_not_printed(capsys):
    """It is raised again where it can be caught."""
    worlds._without_limits(SimpleNamespace(exc_type=worlds._OverError))
    assert capsys.readouterr().err == ""


def test_a_pair_of_unknown_kinds_is_refused():
    with pytest.raises(UsageError, match="expected two of nodes, waiting"):
        command.pressure(["--pairs", "waiting,cats"])
