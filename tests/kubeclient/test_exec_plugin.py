"""Exec plugins: what they get to know, what is read of what they print, and when they are run again."""

import json
import time

import pytest

from eclectus.kubeclient.api_errors import CredentialsError
from eclectus.kubeclient.exec_plugin import ExecPlugin

VERSION = "client.authentication.k8s.io/v1"
TOKEN = {"token": "t"}


@pytest.fixture
def plugin(tmp_path):
    """Makes a plugin of a script; each run of it is a line of `runs`."""

    def made(script, cluster=None, **config):
        path = tmp_path / "bin" / "login"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\necho run >> {tmp_path / 'runs'}\n{script}\n")
        path.chmod(0o755)
        given = {"apiVersion": VERSION, "command": "bin/login", "interactiveMode": "Never", **config}
        return ExecPlugin(given, tmp_path / "config", cluster)

    return made


def runs(tmp_path):
    return (tmp_path / "runs").read_text().count("run")


def printing(version=VERSION, **status):
    return f"echo '{json.dumps({'apiVersion': version, 'kind': 'ExecCredential', 'status': status})}'"


def test_a_token_is_read_once_while_it_is_valid(plugin, tmp_path):
    found = plugin(printing(**TOKEN, expirationTimestamp="2999-01-01T00:00:00Z"))
    assert [found.current().token for _ in range(3)] == ["t"] * 3
    assert runs(tmp_path) == 1


def test_it_is_run_again_before_its_token_expires(plugin, tmp_path):
    soon = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 60))
    found = plugin(printing(**TOKEN, expirationTimestamp=soon))
    found.current(), found.current()
    assert runs(tmp_path) == 2


def test_one_that_says_no_end_is_not_run_again(plugin, tmp_path):
    found = plugin(printing(**TOKEN))
    found.current(), found.current()
    assert runs(tmp_path) == 1


def test_a_certificate_with_its_key(plugin):
    found = plugin(printing(clientCertificateData="c", clientKeyData="k")).current()
    assert (found.token, found.pem) == ("", b"c\nk")


def test_it_gets_the_cluster_and_its_variables_and_arguments(plugin, tmp_path):
    said = tmp_path / "said"
    script = f'echo "$1 $NAME $KUBERNETES_EXEC_INFO" > {said}\n{printing(**TOKEN)}'
    env = [{"name": "NAME", "value": "v"}]
    plugin(script, {"server": "https://a"}, args=["login"], env=env).current()
    first, name, info = said.read_text().split(" ", 2)
    assert (first, name) == ("login", "v")
    spec = {"interactive": False, "cluster": {"server": "https://a"}}
    assert json.loads(info) == {"apiVersion": VERSION, "kind": "ExecCredential", "spec": spec}


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo sorry >&2; exit 3", "has failed with exit code 3: sorry"),
        ("echo hello", "has printed no ExecCredential that can be read"),
        (printing("client.authentication.k8s.io/v1beta1", **TOKEN), "has not printed an"),
        (printing(clientCertificateData="c"), "neither a token nor a certificate with its key"),
        (printing(), "neither a token nor a certificate"),
        (printing(**TOKEN, expirationTimestamp="soon"), "no ExecCredential that can be read"),
    ],
)
def test_what_goes_wrong_names_the_file_and_the_plugin(plugin, tmp_path, script, words):
    with pytest.raises(CredentialsError, match=words) as caught:
        plugin(script).current()
    assert str(caught.value).startswith(f"{tmp_path / 'config'}: the plugin bin/login ")


def test_one_that_is_not_installed_says_how_to_get_it(tmp_path):
    config = {"apiVersion": VERSION, "command": "no-such-login", "installHint": "get it from example.com"}
    with pytest.raises(CredentialsError, match=r"cannot be run.* get it from example\.com"):
        ExecPlugin(config, tmp_path / "config", None).current()


@pytest.mark.parametrize("config", [{}, {"apiVersion": VERSION}, {"apiVersion": "v1", "command": "x"}])
def test_one_without_a_command_or_a_version_is_refused(tmp_path, config):
    with pytest.raises(CredentialsError, match="needs a command and an apiVersion"):
        ExecPlugin(config, tmp_path / "config", None)
