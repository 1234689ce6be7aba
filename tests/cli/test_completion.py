"""Completion in shells, and what kubectl asks of its plugins."""

import subprocess
import sys

import pytest
from click.testing import CliRunner

from eclectus.cli.main import VARIABLE, for_kubectl, program


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_each_shell_calls_the_program(shell):
    result = CliRunner().invoke(program, ["completion", shell])
    assert result.exit_code == 0
    assert VARIABLE in result.output
    assert "eclectus" in result.output


def test_the_program_answers_a_shell():
    run = [sys.executable, "-c", "from eclectus.cli.main import main; main()"]
    words = {"COMP_WORDS": "eclectus pen", "COMP_CWORD": "1", VARIABLE: "bash_complete"}
    done = subprocess.run(run, env=words, capture_output=True, text=True, check=True)
    assert done.stdout == "plain,pending\n"


@pytest.mark.parametrize(
    ("words", "values", "directive"),
    [
        (["pen"], ["pending"], ":4"),
        (["pending", "-o", ""], ["table", "wide", "json"], ":4"),
        (["pending", "--all"], ["--all-namespaces"], ":4"),
        (["check-config", ""], [], ":0"),
    ],
)
def test_kubectl_gets_candidates_and_a_directive(words, values, directive):
    *lines, last = for_kubectl(program, words)
    assert [line.split("\t")[0] for line in lines] == values
    assert last == directive


def test_without_words_every_command_is_a_candidate():
    *lines, last = for_kubectl(program, [])
    assert {line.split("\t")[0] for line in lines} >= {"pending", "speeds", "check-config"}
    assert last == ":4"
