"""A real Prometheus server for tests."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import requests

from live_cluster import wait


@contextmanager
def scraping(target: str, directory: Path) -> Iterator[str]:
    """The URL of a Prometheus that scrapes `target` (host:port) every second; skips where there is none."""
    if shutil.which("prometheus") is None:
        pytest.skip("no prometheus on the PATH (Debian: apt-get install prometheus)")
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    config = directory / "prometheus.yml"
    targets = f"[{{targets: ['{target}']}}]"
    config.write_text(
        f"scrape_configs: [{{job_name: tested, scrape_interval: 1s, static_configs: {targets}}}]\n"
    )
    command = [
        "prometheus",
        f"--config.file={config}",
        f"--storage.tsdb.path={directory}/data",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with (directory / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    url = f"http://127.0.0.1:{port}"
    try:
        wait("Prometheus is ready", lambda: _is_ready(url))
        yield url
    finally:
        process.kill()
        process.wait()


def _is_ready(url: str) -> bool:
    try:
        return requests.get(f"{url}/-/ready", timeout=10).ok
    except requests.ConnectionError:
        return False
