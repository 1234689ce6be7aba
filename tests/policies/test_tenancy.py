"""What the pods of a tenant can change of what is learned for other namespaces: a bounded prior."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from eclectus.maths.service_rates import MOST_PRIOR
from learner_harness import School

WORK, EVIL = "team-a/worker", "evil/worker"


def taught(rows: int = 10, rounds: int = 6, workload: str = WORK) -> School:
    """The first half of the nodes takes 10 s for a task of the namespace, the others 2.5 s."""
    school = School(rows=rows)
    for _ in range(rounds):
        round_of(school, workload)
    return school


def round_of(school: School, workload: str, factor: float = 1.0) -> None:
    rows = len(school.speed)
    for row in range(rows):
        school.end(row, factor * (10.0 if row < rows / 2 else 2.5), workload, after=1.0)


# -- rates ---------------------------------------------------------------------------------------


def test_short_pods_of_another_namespace_do_not_invert_rates() -> None:
    """Twelve of them on the slow node, with the label of the victim, made it the fastest."""
    school = School(rows=2)
    for _ in range(10):
        school.end(0, 100.0, "team-a/train", after=100.0)
        school.end(1, 10.0, "team-a/train", after=10.0)
    assert school.ratio(1, "team-a/train") > 5
    before = school.rate("team-a/train").copy()
    for _ in range(12):
        school.end(0, 1.0, "evil/train", after=1.0)
    school.wait(2.0)
    after = school.rate("team-a/train")
    assert after / before == pytest.approx([1.0, 1.0], rel=0.2)


def rates_of_the_victim(samples: list[int], others: list[tuple[int, int, float]]) -> np.ndarray:
    """Rates of team-a after so many samples of each node, and tasks of others (namespace, row, seconds)."""
    school = School(rows=len(samples))
    for row, count in enumerate(samples):
        for _ in range(count):
            school.end(row, 1.0 + row, WORK, after=1.0)
    school.now = 2000.0
    for namespace, row, seconds in others:
        school.end(row % len(samples), seconds, f"other-{namespace}/w", after=0.01)
    school.now = 2100.0
    school.wait(0.0)
    return school.rate(WORK).copy()


OTHERS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), st.floats(1e-3, 1e5)), max_size=60)


@given(st.lists(st.integers(0, 6), min_size=2, max_size=5), OTHERS)
@example([0, 3], [(0, 0, 1e-3)] * 10 + [(0, 1, 1e5)] * 10)
@settings(deadline=None, max_examples=60)
def test_whatever_others_run_my_rates_move_by_the_bound_at_most(
    samples: list[int], others: list[tuple[int, int, float]]
) -> None:
    """By MOST_PRIOR where I have no samples of a node, and by less the more I have (docs/rosella.md)."""
    alone, beside = rates_of_the_victim(samples, []), rates_of_the_victim(samples, others)
    moved = beside / alone
    assert (np.maximum(moved, 1 / moved) <= MOST_PRIOR * (1 + 1e-9)).all()
    relative = (beside / beside.mean()) / (alone / alone.mean())
    assert (np.maximum(relative, 1 / relative) <= MOST_PRIOR**2 * (1 + 1e-9)).all()


def test_many_samples_leave_little_to_others() -> None:
    """k = 1 beside 64 samples: (1 + 64) / (1 / MOST_PRIOR + 64)."""
    school = taught(rounds=64)
    before = school.rate(WORK).copy()
    for _ in range(10):
        for row in range(10):
            school.end(row, 1.0 if row < 5 else 1000.0, EVIL, after=1.0)
    school.wait(2.0)
    assert school.rate(WORK) / before == pytest.approx(np.ones(10), abs=0.03)


def test_of_equal_nodes_others_say_no_more_than_of_different_ones() -> None:
    """Where nodes are found to be equal the common speed weighs much; what others say of them does not."""
    school = School(rows=6, seed=3)
    school.teach(60, {WORK: 10.0})
    before = school.rate(WORK).copy()
    for tenant in ("evil-1", "evil-2"):
        for _ in range(20):
            for row in range(6):
                school.end(row, 1.0 if row == 0 else 100.0, f"{tenant}/w", after=0.01)
    school.wait(2.0)
    assert school.rate(WORK) / before == pytest.approx(np.ones(6), rel=0.05)


def test_a_new_namespace_begins_with_what_the_others_agree_on() -> None:
    school = taught()
    for _ in range(6):
        round_of(school, "team-b/worker", factor=30.0)
    school.wait(2.0)
    rate = school.rate("team-c/never-seen")
    assert 3.0 < rate[5:].min() / rate[:5].max() <= 4.0
    for _ in range(20):  # one of three disagrees
        for row in range(10):
            school.end(row, 1.0 if row < 5 else 50.0, EVIL, after=0.1)
    school.wait(2.0)
    rate = school.rate("team-c/never-seen")
    assert rate[5:].min() / rate[:5].max() > 2.0


def test_a_shared_class_is_taught_by_every_namespace_and_has_no_vote() -> None:
    school = taught(workload="shared")
    assert school.ratio(9, "shared") > 2
    school.wait(2.0)
    assert school.rate("team-a/worker") == pytest.approx(np.full(10, school.rate("team-a/worker")[0]))


# -- places --------------------------------------------------------------------------------------


def test_more_classes_than_places_evict_only_those_of_their_own_namespace() -> None:
    """65 one-second pods of a tenant, each with a label of its own, made the learner forget all others."""
    school = taught()
    before = school.rate(WORK).copy()
    for number in range(200):
        school.end(0, 1.0, f"evil/x{number}", after=1.0)
    school.wait(2.0)
    assert {WORK} == {cell.workload for cell in school.learn.learned_cells() if "team-a" in cell.workload}
    assert school.rate(WORK) / before == pytest.approx(np.ones(10), rel=MOST_PRIOR - 1)


@pytest.mark.parametrize("name", ["ns{}/img", "ns/img{}"])
def test_kinds_in_turn_keep_their_samples(name: str) -> None:
    """With the least recently used one replaced, 80 kinds in turn left each cell with one sample."""
    school = School()
    for turn in range(400):
        row = turn % 10
        school.end(row, 1.0 if row < 5 else 4.0, name.format(turn % 80), after=2.5)
    samples = [cell.samples for cell in school.learn.learned_cells()]
    assert (max(samples), sum(samples)) == (5, 64 * 5)


def test_a_frequent_workload_replaces_a_rare_one_of_its_namespace() -> None:
    school = School(most_workloads=3)
    for name in ("a", "b", "b", "c", "c"):
        school.end(0, 1.0, f"ns/{name}", after=1.0)
    school.end(0, 1.0, "ns/d", after=1.0)
    assert {cell.workload for cell in school.learn.learned_cells()} == {"ns/a", "ns/b", "ns/c"}
    school.end(0, 1.0, "ns/d", after=1.0)
    assert {cell.workload for cell in school.learn.learned_cells()} == {"ns/b", "ns/c", "ns/d"}


def test_a_namespace_gets_its_fair_share_of_the_places_at_once() -> None:
    school = School(most_workloads=4)
    for _ in range(10):
        for name in ("a", "b", "c", "d"):
            school.end(0, 1.0, f"big/{name}", after=1.0)
    for name in ("a", "b", "c"):
        school.end(0, 1.0, f"small/{name}", after=1.0)
    kept = [cell.workload for cell in school.learn.learned_cells()]
    assert sorted(each.partition("/")[0] for each in kept) == ["big", "big", "small", "small"]


# -- silence and deaths --------------------------------------------------------------------------


def freeze(school: School, namespace: str, row: int, tasks: int = 4) -> list[str]:
    return [school.begin(row, f"{namespace}/worker") for _ in range(tasks)]


def go_on(school: School, namespaces: list[str], rows: range, seconds: float) -> None:
    """Time passes, and tasks end on these rows."""
    for _ in range(20):
        school.now += seconds / 20
        for row in rows:
            for namespace in namespaces:
                school.end(row, 2.5, f"{namespace}/worker")


def test_a_node_is_dead_for_the_namespace_whose_tasks_are_silent_there() -> None:
    school = taught()
    for _ in range(6):
        round_of(school, "team-b/worker")
    freeze(school, "team-b", 9)
    go_on(school, ["team-a", "team-b"], range(5, 9), 5000.0)
    assert school.rate("team-b/worker")[9] == 0.0
    assert school.ratio(9, WORK) > 1.0
    assert school.state(9) == "suspect"


def test_a_node_is_dead_for_all_once_two_namespaces_agree_and_an_end_revives_it() -> None:
    school = taught()
    for name in ("team-b", "team-c"):
        for _ in range(6):
            round_of(school, f"{name}/worker")
    freeze(school, "team-a", 9)
    freeze(school, "team-b", 9)
    go_on(school, ["team-a", "team-b", "team-c"], range(5, 9), 12000.0)
    for name in ("team-a", "team-b", "team-c", "newcomer"):
        assert school.rate(f"{name}/worker")[9] == 0.0, name
    assert school.state(9) == "dead"
    for _ in range(8):  # of any namespace
        school.run(9, 2.5, "team-c/worker")
    school.wait(2.0)
    assert school.state(9) == "live"
    assert school.ratio(9, "team-c/worker") > 1.0


def test_who_has_hardly_run_there_does_not_contradict() -> None:
    school = taught()
    school.end(9, 2.5, "team-b/worker")
    freeze(school, "team-a", 9)
    go_on(school, ["team-a"], range(5, 9), 5000.0)
    assert school.state(9) == "dead"


def test_probes_from_before_the_silence_do_not_contradict() -> None:
    school = taught()
    for _ in range(6):
        school.end(9, 2.5, "probes/worker", is_probe=True)
    freeze(school, "team-a", 9)
    go_on(school, ["team-a"], range(5, 9), 5000.0)
    assert school.state(9) == "dead"
    school.run(9, 2.5, "probes/worker")
    assert school.state(9) == "suspect"


def test_two_sleeping_pods_of_a_tenant_make_no_node_dead_for_others() -> None:
    school = taught(rows=20)
    freeze(school, "evil", 19, tasks=8)
    for _ in range(8):
        for row in range(19):
            school.end(row, 1.0, EVIL, after=0.05)
    school.now += 1000.0
    for row in range(3):
        school.run(row, 10.0, WORK)
    assert school.rate(EVIL)[19] < 0.1 * school.rate(EVIL)[18]
    assert school.ratio(19, WORK) > 1.0
    assert school.state(19) != "dead"


def test_trainings_are_not_judged_by_short_tasks_of_the_same_image() -> None:
    """Eight CPU nodes evaluate for 5 s, two GPU nodes train for two hours: nothing is wrong with them."""
    school = School(rows=10)
    cpu, gpu = (("cpu", 1000),), (("cpu", 1000), ("nvidia.com/gpu", 1))
    trainings = [(school.begin(row, "ml/train", gpu), row) for row in (8, 9) for _ in range(2)]
    began = school.now
    while school.now < began + 7200:
        for row in range(8):
            uid = school.begin(row, "ml/train", cpu)
            school.now += 5.0
            school.finish(uid, row, 5.0, "ml/train", cpu)
        assert (school.rate("ml/train")[8:] > 0).all()
    for uid, row in trainings:
        school.finish(uid, row, 7200.0, "ml/train", gpu)
    school.begin(8, "ml/train", gpu)
    for _ in range(20):
        for row in range(8):
            school.now += 5.0
            school.end(row, 5.0, "ml/train", requests=cpu)
    assert school.state(8) == school.state(9) == "live"
    assert (school.rate("ml/train")[8:] > 0).all()


def test_a_hung_training_is_found_by_trainings_that_have_ended() -> None:
    school = School(rows=10)
    cpu, gpu = (("cpu", 1000),), (("cpu", 1000), ("nvidia.com/gpu", 1))
    for _ in range(20):
        for row in range(10):
            school.end(row, 5.0, "ml/train", after=1.0, requests=cpu)
            school.end(row, 100.0, "ml/train", requests=gpu)
    for _ in range(4):
        school.begin(9, "ml/train", gpu)
    for _ in range(100):
        for row in range(9):
            school.end(row, 100.0, "ml/train", after=10.0, requests=gpu)
    assert school.state(9) in ("suspect", "dead")
