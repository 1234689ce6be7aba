"""`eclectus policies` prints the policies of the table and their settings."""

import pytest
from click.testing import CliRunner

from eclectus.cli.main import program
from eclectus.config.settings_reading import settings_of
from eclectus.policies.table import ROLES


def output(*arguments: str) -> str:
    result = CliRunner().invoke(program, ["policies", *arguments])
    assert result.exit_code == 0, result.output
    return result.output


def test_every_policy_of_every_role_is_listed_with_its_description() -> None:
    lines = output().splitlines()
    assert [line.split()[:2] for line in lines] == [
        [role, name] for role, known in ROLES.items() for name in known
    ]
    assert all(len(line.split()) > 3 for line in lines)


@pytest.mark.parametrize("name", sorted({name for known in ROLES.values() for name in known}))
def test_every_setting_of_a_policy_is_explained(name: str) -> None:
    text = output(name)
    for known in ROLES.values():
        for key, (_, _, setting) in settings_of(known[name]).items() if name in known else ():
            assert f"  {key}: " in text
            assert setting is not None, f"{name}.{key} has no description"


def test_traits_are_listed_with_the_settings_on_which_they_depend() -> None:
    assert "  - joins node queues with queue: lines\n" in output("uniform")
    assert "  - defers unless view: sample, replan: false or mode: paper\n" in output("rosella")
    assert "  - first come\n  - steals\n" in output("stealing")
    assert "  - needs one at a time\n" in output("drf")


def test_defaults_are_written_as_in_a_configuration() -> None:
    lines = output("drf").splitlines()
    assert any(line.startswith("  weights: {} ") for line in lines)
    assert any(line.startswith('  label: "" ') for line in lines)


def test_the_error_of_an_unknown_policy_has_the_nearest_spelling() -> None:
    result = CliRunner().invoke(program, ["policies", "rosela"])
    assert result.exit_code == 2
    assert "did you mean 'rosella'?" in result.output
