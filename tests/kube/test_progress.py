"""How far a pod says that it is, in one number or by phases: what is read, what is bounded, what is named."""

from __future__ import annotations

import pytest

from eclectus.api.names import PHASE_WEIGHTS, PROGRESS
from eclectus.kube.progress import MAX_CHARACTERS, MAX_PHASES, SHOWN, progress, progress_problems


def read(text: str, weights: str | None = None) -> tuple[float | None, tuple[str, ...]]:
    annotations = {PROGRESS: text} | ({} if weights is None else {PHASE_WEIGHTS: weights})
    return progress(annotations), progress_problems(annotations)


def test_a_pod_that_says_nothing_has_no_progress_and_no_problem() -> None:
    assert (progress({}), progress_problems({})) == (None, ())
    assert (progress({PHASE_WEIGHTS: "1,1,8"}), progress_problems({PHASE_WEIGHTS: "1,1,8"})) == (None, ())


@pytest.mark.parametrize(
    ("text", "weights", "expected"),
    [
        ("0.25", None, 0.25),
        ("1.5", None, 1.0),
        ("-1", None, 0.0),
        ("0.5,0,0", None, 1 / 6),
        ("1, 1, 0.5", None, 5 / 6),
        ("1,1,0.5", "1,1,8", 0.6),
        ("1,1,0.5", "0.1, 0.1, 0.8", 0.6),
        ("2,-3", "1,3", 0.25),
        ("0.5", "7", 0.5),
    ],
)
def test_a_list_is_weighted_by_phase(text: str, weights: str | None, expected: float) -> None:
    assert read(text, weights) == (pytest.approx(expected), ())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "half",
        "nan",
        "1,inf",
        "1,,0",
        "2/3:0.4",
        ",".join(["1"] * (MAX_PHASES + 1)),
        "1" * (MAX_CHARACTERS + 1),
    ],
)
def test_a_progress_that_cannot_be_read_is_left_out_as_a_whole_and_named(text: str) -> None:
    found, (problem,) = read(text)
    assert found is None
    assert problem == f"{PROGRESS}: {text[:SHOWN]!r} is not a list of 1 to {MAX_PHASES} numbers with commas"


@pytest.mark.parametrize("weights", ["", "much", "1,0", "1,-1", "1,nan", "1e308,1e308"])
def test_weights_that_cannot_be_read_are_left_out_and_named(weights: str) -> None:
    found, (problem,) = read("1,0.5", weights)
    of = f"not a list of 1 to {MAX_PHASES} numbers above 0"
    assert found == 0.75
    assert problem.startswith(f"{PHASE_WEIGHTS}: {weights!r} is {of}")


def test_weights_of_other_phases_are_left_out_and_named() -> None:
    found, problems = read("1,0.5", "1,1,8")
    assert found == 0.75
    assert problems == (
        f"{PHASE_WEIGHTS}: 3 weights, but {PROGRESS} is of 2 phases; all phases count the same",
    )


def test_as_many_phases_as_there_may_be_are_read() -> None:
    assert read(",".join(["0.5"] * MAX_PHASES)) == (0.5, ())
