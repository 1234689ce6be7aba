"""The program with upstream's specs, here a script: results, exit codes, and its log in errors."""

from pathlib import Path

import pytest

from eclectus_e2e.errors import StartError
from eclectus_e2e.upstream.results import Outcome
from eclectus_e2e.upstream.run import run_specs

PASSED = '{"name": "a", "state": "passed", "seconds": 1, "message": ""}'
FAILED = '{"name": "b", "state": "failed", "seconds": 1, "message": "no node"}'


def run_script(tmp_path: Path, exit_code: int, *results: str) -> list[Outcome]:
    program = tmp_path / "e2e.test"
    write = "".join(f"echo '{line}' >> $file\n" for line in results)
    program.write_text(f'#!/bin/sh\nfile="${{2#*=}}"\necho "$@"\n{write}exit {exit_code}\n')
    program.chmod(0o755)
    return [one.outcome for one in run_specs(program, Path("/kubeconfig"), tmp_path, "some focus", {})]


def test_the_results_are_those_of_this_run_alone(tmp_path: Path) -> None:
    assert run_script(tmp_path, 1, PASSED, FAILED) == [Outcome.PASSED, Outcome.FAILED]
    assert run_script(tmp_path, 0, PASSED) == [Outcome.PASSED]
    arguments = (tmp_path / "e2e.test.log").read_text()
    assert "--kubeconfig=/kubeconfig" in arguments
    assert "--ginkgo.focus=some focus" in arguments


@pytest.mark.parametrize(
    ("exit_code", "results"),
    [(0, []), (1, []), (2, [PASSED]), (0, [PASSED, FAILED])],
    ids=["nothing in focus", "failed before the first spec", "failed after the last", "contradiction"],
)
def test_a_program_whose_exit_code_the_results_do_not_explain_is_an_error(
    tmp_path: Path, exit_code: int, results: list[str]
) -> None:
    with pytest.raises(StartError, match=rf"(?s)exit code {exit_code} after {len(results)}.*--kubeconfig"):
        run_script(tmp_path, exit_code, *results)
