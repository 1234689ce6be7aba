"""docs/configuration.md: its configurations are valid, and its commands do what it says."""

import re
import textwrap
from pathlib import Path

import pytest
from click.testing import CliRunner

from eclectus.api.names import SCHEDULER_CONFIGURATION
from eclectus.cli.main import program
from eclectus_e2e.paths import CHECKOUT

PAGE = (CHECKOUT / "docs" / "configuration.md").read_text()
BLOCKS = [
    textwrap.dedent(each) for each in re.findall(r"(?:^ {4}.*\n|^\n(?= {4}))+", PAGE, flags=re.MULTILINE)
]
FILES = [each.lstrip("\n") for each in BLOCKS if SCHEDULER_CONFIGURATION in each]
UPSTREAM = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
COMMANDS = [line for each in BLOCKS for line in each.splitlines() if line.startswith("eclectus ")]


def test_the_page_has_configurations_and_commands():
    assert len(FILES) >= 8
    assert len(COMMANDS) >= 4
    assert len(FILES) == PAGE.count(f"kind: {SCHEDULER_CONFIGURATION}")


def run(*arguments: str) -> str:
    result = CliRunner().invoke(program, arguments)
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    return result.stdout


@pytest.mark.parametrize("text", FILES)
def test_each_configuration_passes_check_config_without_a_warning(text: str, tmp_path: Path) -> None:
    (tmp_path / "scheduler.yaml").write_text(text)
    run("check-config", str(tmp_path / "scheduler.yaml"))


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_runs_as_it_is_written(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "scheduler.yaml").write_text(FILES[0])
    (tmp_path / "kube-scheduler.yaml").write_text(UPSTREAM)
    monkeypatch.chdir(tmp_path)
    assert run(*command.split()[1:])
