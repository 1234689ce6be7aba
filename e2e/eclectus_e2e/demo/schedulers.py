"""The schedulers that are compared, and how each is started and stopped. Only one runs at a time."""

import json
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import yaml

from eclectus_e2e.demo.environment import Environment
from eclectus_e2e.demo.speeds import LearnedRate
from eclectus_e2e.errors import StartError
from eclectus_e2e.testbed.processes import log_tail, start, wait_for

ECLECTUS = "eclectus"
KUBE_SCHEDULER = "kube-scheduler"
READY_SECONDS = 60.0
PROCESS = "eclectus"
# Proxies in the environment variables are not for loopback.
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@dataclass(frozen=True)
class SchedulerSpec:
    """`scheduler_name` is what pods ask for; `profile` replaces fields of the chart's first profile."""

    scheduler_name: str
    profile: Mapping[str, Any] | None = field(default=None)  # None: kube-scheduler


SCHEDULERS = {
    ECLECTUS: SchedulerSpec("eclectus", {}),
    KUBE_SCHEDULER: SchedulerSpec("default-scheduler"),
    "eclectus-uniform": SchedulerSpec("eclectus", {"place": {"policy": "uniform"}}),
    "eclectus-pot": SchedulerSpec("eclectus", {"place": {"policy": "pot"}}),
    "eclectus-least-allocated": SchedulerSpec("eclectus", {"place": {"policy": "least-allocated"}}),
}
DEFAULT_SCHEDULERS = [ECLECTUS, KUBE_SCHEDULER, "eclectus-uniform"]  # of the stream experiment


@contextmanager
def running(environment: Environment, name: str) -> Iterator[None]:
    """Run one of SCHEDULERS for a `with` block; it is ready when the block begins. Raises StartError."""
    profile = SCHEDULERS[name].profile
    if profile is None:
        environment.plane.start_kube_scheduler()
        try:
            yield
        finally:
            environment.plane.stop_kube_scheduler()
        return
    directory = environment.plane.directory
    process = start(PROCESS, _command(environment, name, profile), directory, dies_with_caller=True)
    try:
        wait_for(lambda: _leads(environment.address) or not process.alive, READY_SECONDS)
        if not _leads(environment.address):
            raise StartError(f"{name} was not ready\n{log_tail(directory, PROCESS)}")
        yield
    finally:
        process.stop()


def learned_rates(address: str) -> list[LearnedRate]:
    """What the running Eclectus has learned, from its /speeds; empty when nothing answers."""
    return msgspec.json.decode(_read(f"{address}/speeds") or b"[]", type=list[LearnedRate])


def _command(environment: Environment, name: str, profile: Mapping[str, Any]) -> list[str]:
    """The program with the configuration of the chart's ConfigMap, changed only in `profile`'s fields."""
    configuration = yaml.safe_load(environment.installed.configuration)
    configuration["profiles"][0].update(profile)
    file = environment.plane.directory / f"{name}.json"
    file.write_text(json.dumps(configuration))  # JSON is YAML
    program = Path(sys.executable).with_name("eclectus")
    return [str(program), "scheduler", "--config", str(file), "--kubeconfig", str(environment.account)]


def _leads(address: str) -> bool:
    return _read(f"{address}/readyz") != b"" and b"\neclectus_leader 1.0" in _read(f"{address}/metrics")


def _read(url: str) -> bytes:
    """The body of the response; empty without one, or when the status is an error."""
    try:
        with _DIRECT.open(url, timeout=2.0) as response:
            return bytes(response.read())
    except OSError:  # not listening yet, or not ready (HTTPError): the caller asks again
        return b""
