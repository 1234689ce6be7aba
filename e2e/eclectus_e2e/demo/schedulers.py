"""Who is compared: a table, and how each is started and ended. Only one runs at a time."""

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
from eclectus_e2e.demo.stream.report import ECLECTUS, KUBE_SCHEDULER
from eclectus_e2e.errors import StartError
from eclectus_e2e.testbed.processes import log_tail, start, wait_for

READY_SECONDS = 60.0
PROCESS = "eclectus"
# The environment's proxies are not for loopback.
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@dataclass(frozen=True)
class SchedulerSpec:
    """`scheduler_name` is what pods ask for; `profile` replaces fields of the chart's first profile."""

    scheduler_name: str
    profile: Mapping[str, Any] | None = field(default=None)


SCHEDULERS = {
    ECLECTUS: SchedulerSpec("eclectus", {}),
    KUBE_SCHEDULER: SchedulerSpec("default-scheduler"),
    "eclectus-uniform": SchedulerSpec("eclectus", {"place": {"policy": "uniform"}}),
    "eclectus-pot": SchedulerSpec("eclectus", {"place": {"policy": "pot"}}),
    "eclectus-least-allocated": SchedulerSpec("eclectus", {"place": {"policy": "least-allocated"}}),
}
DEFAULT_SCHEDULERS = [ECLECTUS, KUBE_SCHEDULER, "eclectus-uniform"]  # in the demo's first act


@contextmanager
def running(ground: Environment, name: str) -> Iterator[None]:
    """A contestant for the length of a block, ready when the block begins."""
    profile = SCHEDULERS[name].profile
    if profile is None:
        ground.plane.start_kube_scheduler()
        try:
            yield
        finally:
            ground.plane.stop_kube_scheduler()
        return
    process = start(PROCESS, _program(ground, name, profile), ground.plane.directory, leashed=True)
    try:
        wait_for(lambda: _leads(ground.address) or not process.alive, READY_SECONDS)
        if not _leads(ground.address):
            raise StartError(f"{name} was not ready\n{log_tail(ground.plane.directory, PROCESS)}")
        yield
    finally:
        process.stop()


def learned_rates(address: str) -> list[LearnedRate]:
    """What the running Eclectus has learned; nothing while none answers."""
    return msgspec.json.decode(_read(f"{address}/speeds") or b"[]", type=list[LearnedRate])


def _program(ground: Environment, name: str, profile: Mapping[str, Any]) -> list[str]:
    """The chart's own configuration, as the ConfigMap has it, but for the profile's fields."""
    configuration = yaml.safe_load(ground.installed.configuration)
    configuration["profiles"][0].update(profile)
    file = ground.plane.directory / f"{name}.json"
    file.write_text(json.dumps(configuration))  # JSON is YAML
    program = Path(sys.executable).with_name("eclectus")
    return [str(program), "scheduler", "--config", str(file), "--kubeconfig", str(ground.account)]


def _leads(address: str) -> bool:
    return _read(f"{address}/readyz") != b"" and b"\neclectus_leader 1.0" in _read(f"{address}/metrics")


def _read(url: str) -> bytes:
    """The answer's body; empty when there is none, or it is no success."""
    try:
        with _DIRECT.open(url, timeout=2.0) as response:
            return bytes(response.read())
    except OSError:  # not there yet, or not ready (HTTPError): asked again by whoever waits
        return b""
