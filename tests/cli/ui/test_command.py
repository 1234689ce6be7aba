"""The program `eclectus ui`: it prints where its page is, and ends when it is asked to."""

import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import closing
from http.client import HTTPConnection

# A process that a script has started in the background ignores SIGINT, and so do those that it starts.
HEARS = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
PROGRAM = [sys.executable, "-c", f"{HEARS}; from eclectus.cli.main import main; main()", "ui"]


def test_the_url_that_is_printed_leads_to_the_page_until_ctrl_c(kubeconfig):
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [*PROGRAM, "--kubeconfig", kubeconfig], stdout=pipe, stderr=pipe, text=True
    ) as served:
        try:
            url = served.stdout.readline()
            port, token = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/#token=([\w-]{43})\n", url).groups()
            with closing(HTTPConnection("127.0.0.1", int(port), timeout=60)) as connection:
                connection.request("GET", "/api/start", headers={"Authorization": f"Bearer {token}"})
                assert b'"namespace": "mine"' in connection.getresponse().read()
            served.send_signal(signal.SIGINT)
            assert (served.wait(60), "Ctrl-C ends" in served.stderr.read()) == (0, True)
        finally:
            served.kill()


def test_a_port_that_is_taken_is_said(kubeconfig):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        command = [*PROGRAM, "--kubeconfig", kubeconfig, "--port", str(taken.getsockname()[1])]
        ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert ended.returncode == 1
    assert "set --port to another port" in ended.stderr


def run(*arguments, **variables):
    environment = {**os.environ, "HOME": "/nowhere", "KUBECONFIG": "", **variables}
    command = [*PROGRAM, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, env=environment)


def test_without_a_cluster_a_saved_comparison_is_shown_alone(comparison_file):
    environment = {**os.environ, "HOME": "/nowhere", "KUBECONFIG": ""}
    command = [*PROGRAM, "--comparison", str(comparison_file)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    ) as served:
        try:
            port, token = re.search(r":(\d+)/#token=(\S+)", served.stdout.readline()).groups()
            with closing(HTTPConnection("127.0.0.1", int(port), timeout=60)) as connection:
                connection.request("GET", "/api/start", headers={"Authorization": f"Bearer {token}"})
                assert b'"panels": ["comparison"]' in connection.getresponse().read()
        finally:
            served.kill()


def test_a_file_that_cannot_be_shown_is_refused_before_anything_is_served(tmp_path):
    (tmp_path / "nodes.json").write_text('{"kind": "List"}')
    ended = run("--comparison", tmp_path / "nodes.json")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith(f"error: {tmp_path}/nodes.json: ")
    assert run("--comparison", tmp_path / "none.json").returncode == 2


def test_without_a_cluster_and_a_comparison_there_is_nothing_to_show():
    assert run().returncode == 1
