"""A seed climbs to the same world, and each bound that is removed is found by a climb."""

import random

import pytest

from eclectus.cluster import budgets, resources
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


SERVICES_AND_PODS = world(party("waiting", 50, labels=40), party("services", 50, keys=8))


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
    "labels x services": (("waiting", "services"), "step", 547, FUEL),
    "budgets x victims": (("placed", "budgets"), "step", 142, ALL_BUDGETS),
    "terms x pods of others": (("waiting", "namespaces"), "beside", 2506, ALL_TERMS),
    "stages x jobs": (("jobs", "namespaces"), "step", 8, ALL_STAGES),
    "members x classes": (("gangs", "namespaces"), "step", 506, ALL_MEMBERS),
}


@pytest.fixture
def climbed(monkeypatch):
    """What a short climb finds without some bounds."""

    def climb(pair, objective, seed, bounds, generations=1):
        with monkeypatch.context() as without:
            without.setattr(climbing, "STARTS", 2)
            for bound in bounds:
                without.setattr(*bound)
            return climbing.search(pair, objective, seed, generations, SECONDS)

    return climb


@pytest.mark.long
@pytest.mark.parametrize("attack", ATTACKS)
def test_a_climb_finds_the_attack_that_a_bound_stands_against(attack, climbed):
    found = climbed(*ATTACKS[attack])
    assert found.is_over, "there is no end to it"
    mended = beyond_empty(found.candidate.times(found.factor), SECONDS)
    assert not mended.is_beyond
    assert not mended.is_over


@pytest.mark.long
def test_a_climb_finds_that_names_of_resources_times_nodes_are_kept(climbed):
    found = climbed(("nodes", "nodes"), "kept", 38, ALL_NAMES, generations=0)
    assert found.is_finding
    assert not climbing.judged(found.pair, "kept", found.candidate, SECONDS).is_finding


def made_up(candidate):
    """Work that is greatest for many Services and pods of many labels."""
    waiting, services = candidate.parties
    return Work(step=waiting.count * services.count * (1 + waiting.shape["labels"]))


def test_a_climb_finds_the_product_of_two_counts_and_a_shape():
    candidate, work, _ = climbing.climb(("waiting", "services"), "step", 1, 40, made_up)
    assert work == made_up(candidate)
    assert [party.count for party in candidate.parties] == [max(climbing.COUNTS)] * 2
    assert candidate.parties[0].shape["labels"] == 40


def test_a_seed_climbs_to_the_same_world():
    def climbed(seed):
        return climbing.climb(("waiting", "services"), "step", seed, 2, made_up)

    assert climbed(1) == climbed(1)
    assert climbed(1)[0] != climbed(2)[0]


def test_the_same_world_costs_the_same_calls():
    candidate = world(party("placed", 31, labels=40), party("budgets", 10), preemptors=16)
    first, second = (beyond_empty(candidate, SECONDS, "calls") for _ in range(2))
    assert (first.step, first.beside) == (second.step, second.beside)
    assert first.step > 0
    assert beyond_empty(candidate, SECONDS, "bytes").kept > 0


@pytest.mark.parametrize("kind", KINDS)
def test_objects_of_every_shape_are_read_by_the_scheduler(kind):
    rng = random.Random(kind)
    for _ in range(5):
        candidate = climbing.candidate_of(climbing.drawn((kind, kind), rng))
        events = list(KINDS[kind].make(candidate.parties[0].shape, 3))
        assert len(events) >= 3
        assert all(event.task.namespace for event in events if hasattr(event, "task"))


def test_a_climb_ends_where_a_step_is_beyond_the_bound():
    costs = iter((1, 2, CALLS_MOST))
    candidate, work, worlds = climbing.climb(
        ("waiting", "services"), "beside", 1, 40, lambda _: Work(step=next(costs))
    )
    assert worlds == 3
    found = climbing.Found(("waiting", "services"), "beside", candidate, work, work)
    assert found.is_finding, "though it does not grow"


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


def test_a_step_beyond_the_limit_of_its_world_is_ended(monkeypatch):
    for bound in (*FUEL, (worlds, "CALLS_MOST", NO_BOUND)):
        monkeypatch.setattr(*bound)
    heavy = world(party("waiting", 600, labels=40, distinct=1), party("services", 600, keys=8))
    assert beyond_empty(heavy, 2.0).is_over


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


def test_a_pair_of_unknown_kinds_is_refused():
    with pytest.raises(UsageError, match="expected two of nodes, waiting"):
        command.pressure(["--pairs", "waiting,cats"])
