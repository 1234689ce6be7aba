"""The program as a user meets it."""

import subprocess
import sys

import pytest
from click.testing import CliRunner

from eclectus.cli.main import COMMANDS, program

GOOD = (
    "apiVersion: eclectus.dev/v1alpha1\nkind: SchedulerConfiguration\nprofiles: [{schedulerName: eclectus}]\n"
)


def eclectus(*arguments):
    run = [sys.executable, "-c", "from eclectus.cli.main import main; main()", *arguments]
    return subprocess.run(run, capture_output=True, text=True, check=False)


def test_asking_for_help_loads_nothing_heavy():
    heavy = "'kubernetes', 'aiohttp', 'prometheus_client'"
    code = f"import sys, eclectus.cli.main; print([m for m in ({heavy}) if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("command", [command.name for command in COMMANDS])
def test_every_command_explains_itself(command):
    result = CliRunner().invoke(program, [command, "--help"])
    assert result.exit_code == 0
    assert len(result.output.splitlines()) > 5


def test_a_good_configuration_is_called_good(tmp_path):
    (tmp_path / "c.yaml").write_text(GOOD)
    done = eclectus("check-config", str(tmp_path / "c.yaml"))
    assert (done.returncode, "eclectus" in done.stdout) == (0, True)


@pytest.mark.parametrize("command", [["check-config"], ["scheduler", "--config"]])
def test_a_wrong_configuration_is_named_and_nothing_starts(tmp_path, command):
    (tmp_path / "c.yaml").write_text(GOOD.replace("schedulerName", "schedularName"))
    done = eclectus(*command, str(tmp_path / "c.yaml"))
    assert done.returncode == 2
    assert "schedularName" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_kubeconfig_that_is_none_is_named(tmp_path):
    (tmp_path / "c.yaml").write_text(GOOD)
    (tmp_path / "k").write_text("kind: Config\n")
    done = eclectus("scheduler", "--config", str(tmp_path / "c.yaml"), "--kubeconfig", str(tmp_path / "k"))
    assert done.returncode == 1
    assert str(tmp_path / "k") in done.stderr
    assert "Traceback" not in done.stderr
