"""`eclectus version`, and `--version`."""

import json
import platform

from click.testing import CliRunner

from eclectus import __version__
from eclectus.cli.main import program


def run(*arguments, **environment):
    return CliRunner(env={"KUBECONFIG": "/nowhere", **environment}).invoke(program, list(arguments))


def test_the_client_is_printed_without_a_cluster():
    result = run("version", "--client")
    assert result.exit_code == 0
    assert result.output.splitlines() == [
        f"eclectus: {__version__}",
        f"python:   {platform.python_version()}",
    ]


def test_json_has_the_server_too():
    assert json.loads(run("version", "-o", "json").stdout) == {
        "eclectus": __version__,
        "python": platform.python_version(),
        "server": None,
    }


def test_an_unreachable_server_is_an_error_after_the_clients_version(kubeconfig):
    result = run("version", KUBECONFIG=str(kubeconfig))
    assert result.exit_code == 1
    assert result.stdout.startswith(f"eclectus: {__version__}")
    assert "--client leaves out the server" in result.stderr


def test_the_option_prints_the_version():
    assert run("--version").output == f"eclectus, version {__version__}\n"
