"""`eclectus policies` tells what the table and the settings say."""

import pytest
from click.testing import CliRunner

from eclectus.cli.main import program
from eclectus.config.reading import settings_of
from eclectus.policies.table import ROLES


def say(*words: str) -> str:
    result = CliRunner().invoke(program, ["policies", *words])
    assert result.exit_code == 0, result.output
    return result.output


def test_every_policy_of_every_role_is_listed_with_its_idea() -> None:
    lines = say().splitlines()
    assert [line.split()[:2] for line in lines] == [
        [role, name] for role, known in ROLES.items() for name in known
    ]
    assert all(len(line.split()) > 3 for line in lines)


@pytest.mark.parametrize("name", sorted({name for known in ROLES.values() for name in known}))
def test_every_setting_of_a_policy_is_explained(name: str) -> None:
    told = say(name)
    for known in ROLES.values():
        for key, (_, _, setting) in settings_of(known[name]).items() if name in known else ():
            assert f"  {key}: " in told
            assert setting is not None, f"{name}.{key} explains itself nowhere"


def test_an_unknown_policy_is_named_back_with_the_nearest_spelling() -> None:
    result = CliRunner().invoke(program, ["policies", "rosela"])
    assert result.exit_code == 2
    assert "did you mean 'rosella'?" in result.output
