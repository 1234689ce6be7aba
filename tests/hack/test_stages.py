"""Which tests `make test` and its relatives run, and what their exit codes say."""

import pytest

from command_table import SLOW
from eclectus_e2e.paths import CHECKOUT
from eclectus_hack import stages
from eclectus_hack.stages import (
    ALONE,
    COMMANDS,
    CONTROL_PLANE,
    COURSES,
    FAST,
    NO_TESTS,
    PURE,
    command,
    environment_of,
    exit_code,
    live_files,
)


@pytest.mark.parametrize(
    ("codes", "code"),
    [
        ([0, 0, 0], 0),
        ([0, NO_TESTS, NO_TESTS], 0),  # `make test PYTEST="tests/engine"`
        ([NO_TESTS, NO_TESTS], NO_TESTS),  # a selection without tests is a mistake
        ([0, 1, 0], 1),
        ([NO_TESTS, 2, 1], 2),
    ],
)
def test_the_exit_code_is_that_of_the_first_stage_that_failed(codes, code):
    assert exit_code(codes) == code


def test_every_test_is_in_exactly_one_stage_of_all_and_slow():
    chosen = [stage.selection for stage in (*COURSES["all"], *COURSES["slow"])]
    marks = [
        (live, slow, alone)
        for live in (0, 1)
        for slow in (0, 1)
        for alone in (0, 1)
        if live or slow or not alone
    ]
    for live, slow, alone in marks:
        values = {"live": bool(live), "slow": bool(slow), "alone": bool(alone)}
        assert [eval(each, {}, values) for each in chosen].count(True) == 1  # noqa: S307


def test_the_stage_of_commands_says_the_sum_of_their_minutes():
    assert sum(SLOW.values()) == pytest.approx(COMMANDS.minutes, rel=0.05)


def test_the_fast_course_is_a_part_of_all():
    assert FAST.selection == f"{PURE.selection} and not long"


def test_nothing_runs_beside_tests_that_measure():
    assert not [option for option in command(ALONE, []) if "numprocesses" in option]


def test_a_cluster_that_is_not_built_here_is_used_by_one_test_at_a_time(monkeypatch):
    assert "--numprocesses=2" in command(CONTROL_PLANE, [])
    monkeypatch.setattr(stages.clusters, "choice", lambda: "existing")
    assert "--numprocesses=2" not in command(CONTROL_PLANE, [])
    assert "--numprocesses=auto" in command(PURE, [])


def test_live_stages_read_no_file_without_live_tests():
    files = live_files()
    assert "tests/system/test_stream.py" in files
    assert set(files) <= set(command(CONTROL_PLANE, ["-k", "bind"]))
    assert not set(files) & set(command(PURE, []))
    assert command(CONTROL_PLANE, ["tests/system/test_stream.py"]).count("tests/system/test_stream.py") == 1


def test_no_other_file_marks_tests_as_live():
    others = [each for each in (CHECKOUT / "tests").rglob("*.py") if not each.name.startswith("test_")]
    assert others
    assert not [each for each in others if stages.LIVE_MARK in each.read_text("utf-8")]


def test_tests_and_their_processes_keep_what_they_compile():
    found = environment_of({"PYTHONDONTWRITEBYTECODE": "1", "PATH": "/bin"})
    assert found == {"PATH": "/bin", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def test_a_selection_is_passed_to_every_stage_and_a_failure_does_not_stop_the_next(monkeypatch, capsys):
    called = []

    def run(stage, passed_on):
        called.append((stage.name, passed_on))
        return (1 if stage is PURE else 0), 60.0

    monkeypatch.setattr(stages, "_run", run)
    monkeypatch.setattr(stages, "binaries", lambda: None)
    assert stages.test(["all", "tests/engine", "-k", "bind"]) == 1
    assert called == [(each.name, ["tests/engine", "-k", "bind"]) for each in COURSES["all"]]
    assert "pure: FAILED (exit code 1) after 1.0 min" in capsys.readouterr().err
