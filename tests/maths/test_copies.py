"""The table of steps for a pod and its copy: every cell, and crashes between any two requests."""

from __future__ import annotations

from random import Random

import pytest

from eclectus.maths import copies
from eclectus.maths.copies import NO_POD, Attempt, Doing, Step, copy_name, next_step

COLUMNS = ("gone", "waits", "runs", "succeeded", "failed", "being deleted")
HEADINGS = {"no copy": "gone", "is being deleted": "being deleted"}


def attempt(doing: str, name: str = "a", finished_at: float = float("inf")) -> Attempt:
    return Attempt(Doing(doing), name, finished_at)


def documented_cells() -> list[tuple[str, str, str]]:
    """(original, copy, step) as the module's own text has them, so that text and code cannot differ."""
    text = (copies.__doc__ or "").split("\n\n")[1].splitlines()
    split = [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in text]
    heads = [HEADINGS.get(head, head) for head in split[0][1:]]
    assert tuple(heads) == COLUMNS
    return [(row[0], head, step) for row in split[1:] for head, step in zip(heads, row[1:], strict=True)]


CELLS = documented_cells()


def test_the_table_has_a_cell_for_every_pair() -> None:
    assert len(CELLS) == 36
    assert {row for row, _, _ in CELLS} == {"straggles", *Doing} - {Doing.WAITS}


@pytest.mark.parametrize(("original", "copy", "step"), CELLS)
def test_each_cell(original: str, copy: str, step: str) -> None:
    is_straggling = original == "straggles"
    first = attempt("runs" if is_straggling else original, finished_at=5.0)
    second = attempt(copy, "a-copy", finished_at=4.0)
    found = next_step(first, second, is_straggling=is_straggling)
    assert found == ("win" if step == "first" else step)


@pytest.mark.parametrize(
    ("original", "copy", "step"),
    [
        ((3.0, "b"), (2.0, "b-copy"), Step.WIN),
        ((2.0, "b"), (3.0, "b-copy"), Step.LOSE),
        ((2.0, "b"), (2.0, "b-copy"), Step.LOSE),  # by name
        ((2.0, "b"), (2.0, "a-copy"), Step.WIN),
    ],
)
def test_of_two_that_have_succeeded_the_first_counts(
    original: tuple[float, str], copy: tuple[float, str], step: Step
) -> None:
    first = Attempt(Doing.SUCCEEDED, original[1], original[0])
    second = Attempt(Doing.SUCCEEDED, copy[1], copy[0])
    assert next_step(first, second, is_straggling=False) is step


def test_a_pod_without_a_node_is_not_copied() -> None:
    assert next_step(attempt("waits"), NO_POD, is_straggling=True) is Step.WAIT


@pytest.mark.parametrize(
    ("original", "copy", "step"),
    [
        ("runs", "waits", Step.WITHDRAW),
        ("runs", "runs", Step.WITHDRAW),
        ("gone", "waits", Step.WITHDRAW),
        ("gone", "runs", Step.TAKE_OVER),  # it is the attempt, and has the time that its own spec gives it
        ("runs", "being deleted", Step.FORCE),
        ("succeeded", "being deleted", Step.FORCE),
        ("runs", "succeeded", Step.WIN),
        ("runs", "failed", Step.WAIT),
    ],
)
def test_a_stage_that_takes_too_long_ends(original: str, copy: str, step: Step) -> None:
    found = next_step(attempt(original), attempt(copy), is_straggling=True, is_overdue=True)
    assert found is step


@pytest.mark.parametrize(
    ("original", "copy", "step"),
    [
        ("runs", "gone", Step.WAIT),
        ("runs", "waits", Step.DROP),
        ("runs", "runs", Step.DROP),
        ("failed", "failed", Step.DROP),
        ("gone", "runs", Step.DROP),
        ("runs", "being deleted", Step.WAIT),
        ("runs", "succeeded", Step.WIN),  # what has succeeded remains so
        ("succeeded", "runs", Step.LOSE),
    ],
)
def test_what_nobody_wants_is_dropped(original: str, copy: str, step: Step) -> None:
    found = next_step(attempt(original), attempt(copy), is_straggling=True, is_wanted=False)
    assert found is step


def test_names_of_copies_are_labels_of_their_own() -> None:
    assert copy_name("a-3") == "a-3-copy"
    assert copy_name("x" * 58) == "x" * 58 + "-copy"
    long, other = copy_name("x" * 62 + "1"), copy_name("x" * 62 + "2")
    assert len(long) == len(other) == 63
    assert long != other
    assert long.endswith("-copy")


# -- crashes ----------------------------------------------------------------------------------------


class World:
    """An original, its copy, and what nodes, users and the operator do to them, one request at a time."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.pods = {"a": attempt("runs", "a")}
        self.is_straggling = True
        self.time = 0.0
        self.successes: list[str] = []  # in the order in which they happened

    def look(self, name: str) -> Attempt:
        return self.pods.get(name, NO_POD)

    def set(self, name: str, doing: Doing) -> None:
        if doing is Doing.GONE:
            self.pods.pop(name, None)
            return
        ends = doing in (Doing.SUCCEEDED, Doing.FAILED)
        self.pods[name] = Attempt(doing, name, self.time if ends else float("inf"))
        if doing is Doing.SUCCEEDED:
            self.successes.append(name)

    def pass_time(self) -> None:
        """Something happens to a pod by itself. Only the operator deletes one that has succeeded."""
        self.time += self.rng.choice((0.0, 1.0))
        self.is_straggling = self.rng.random() < 0.7
        for name in ("a", "a-copy"):
            doing = self.look(name).doing
            if doing is Doing.WAITS:
                self.set(name, self.rng.choice((Doing.WAITS, Doing.RUNS)))
            elif doing is Doing.RUNS:
                ends = (Doing.RUNS,) * 6 + (Doing.SUCCEEDED, Doing.SUCCEEDED, Doing.FAILED, Doing.LEAVING)
                self.set(name, self.rng.choice(ends))
            elif doing is Doing.LEAVING and self.rng.random() < 0.5:
                self.set(name, Doing.GONE)

    def requests(self, step: Step, seen: dict[str, Attempt]) -> None:
        """Carry out a step for what was seen. The operator may die before any request."""
        deleted = {
            Step.WITHDRAW: ("a-copy",),
            Step.LOSE: ("a-copy",),
            Step.WIN: ("a",),
            Step.DROP: ("a-copy", "a"),
            Step.FORCE: ("a-copy",),
        }.get(step, ())
        if step is Step.CREATE and self.rng.random() < 0.8 and "a-copy" not in self.pods:
            self.set("a-copy", Doing.WAITS)
        for name in deleted:
            if self.rng.random() < 0.2:
                return  # a crash
            if self.look(name) != seen[name]:
                continue  # the precondition, its version, does not hold
            is_ended = self.look(name).doing in (Doing.SUCCEEDED, Doing.FAILED)
            self.set(name, Doing.GONE if is_ended or step is Step.FORCE else Doing.LEAVING)


@pytest.mark.parametrize("seed", range(150))
def test_whatever_crashes_at_most_one_success_is_left_and_no_pod_too_many(seed: int) -> None:
    world = World(seed)
    for turn in range(80):
        seen = {name: world.look(name) for name in ("a", "a-copy")}
        if world.rng.random() < 0.5:
            world.pass_time()  # between the list and the request
        is_overdue = seen["a-copy"].doing is Doing.LEAVING and world.rng.random() < 0.2
        step = next_step(seen["a"], seen["a-copy"], is_straggling=world.is_straggling, is_overdue=is_overdue)
        world.requests(step, seen)
        if turn < 50:
            world.pass_time()
        else:  # nothing happens any more but what is under way
            for name in ("a", "a-copy"):
                if world.look(name).doing is Doing.LEAVING:
                    world.set(name, Doing.GONE)
    left = {name: each.doing for name, each in world.pods.items()}
    if world.successes:
        assert sum(doing is Doing.SUCCEEDED for doing in left.values()) == 1
        assert list(left.values()) == [Doing.SUCCEEDED]
    assert len(left) <= 1 or Doing.RUNS in left.values() or left["a-copy"] is Doing.WAITS
