"""A real cluster under test: an administrator's client, and scheduler processes to start, kill and freeze."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Self

import msgspec
import requests
import yaml

from eclectus.api.common import read_json
from eclectus.api.names import API_VERSION, CLAIMS_NAMESPACE, SCHEDULER_NAME_CLAIM, WORK_SECONDS
from eclectus.kubeclient.api_errors import ApiError, ConflictError, NotDoneError, UnsureError
from eclectus.kubeclient.client import STRATEGIC_MERGE, ApiClient, connected
from eclectus.kubeclient.credentials import load

WAIT_SECONDS = 180.0  # long, because the machine may be busy with other things
# Its renewals may take 3.5 s each, as on a busy machine.
QUICK_LEASE = {"leaseDuration": "10s", "renewDeadline": "8s", "retryPeriod": "1s"}


def wait(
    what: str, condition: Callable[[], object], seconds: float = WAIT_SECONDS, every: float = 0.1
) -> None:
    """Wait until the condition holds, checked every so many seconds; fail with `what` at the deadline."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {what}"
        time.sleep(every)


def pod(name: str, *, cpu: str = "100m", work: float = 0.3, scheduler: str = "eclectus", **spec: Any) -> Any:
    """A pod that works for `work` seconds at speed 1 and then succeeds."""
    container = {"name": "c", "image": "none", "resources": {"requests": {"cpu": cpu}}}
    return {
        "metadata": {"name": name, "annotations": {WORK_SECONDS: str(work)}},
        "spec": {"schedulerName": scheduler, "restartPolicy": "Never", "containers": [container], **spec},
    }


class Admin:
    """Requests of an administrator, and a namespace for the pods of one test. Use as a context manager."""

    def __init__(self, kubeconfig: Path, namespace: str) -> None:
        self._kubeconfig, self.namespace = kubeconfig, namespace
        self._runner = asyncio.Runner()
        self._open: Any = None

    def __enter__(self) -> Self:
        self._open = connected(load(self._kubeconfig), 30.0)
        self._client: ApiClient = self._runner.run(self._open.__aenter__())
        self.send("POST", "/api/v1/namespaces", {"metadata": {"name": self.namespace}})
        # The API server refuses every pod of the namespace until a controller has created the account.
        account = f"/api/v1/namespaces/{self.namespace}/serviceaccounts/default"
        wait("the namespace's ServiceAccount", lambda: self.get(account))
        return self

    def __exit__(self, *_: object) -> None:
        self.send("DELETE", f"{self._pods}", query={"gracePeriodSeconds": "0"})
        self._runner.run(self._open.__aexit__(None, None, None))
        self._runner.close()

    @property
    def _pods(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods"

    def send(self, method: str, path: str, body: Any = None, **options: Any) -> Any:
        """One request, repeated while the server is unreachable."""
        return self._runner.run(self._send(method, path, body, **options))

    def get(self, path: str, **query: str) -> Any:
        """An object or a list; None if it does not exist."""
        try:
            return self.send("GET", path, query=query)
        except ApiError:
            return None

    def text(self, path: str, **query: str) -> str:
        """A page that is no JSON, or the lines of a watch that ends."""
        return self._runner.run(self._client.get(path, query)).decode()

    def patch(self, path: str, body: Any) -> None:
        """A strategic merge patch."""
        self.send("PATCH", path, body, content_type=STRATEGIC_MERGE)

    def create(self, pods: Iterable[Any]) -> None:
        """Create pods, sixteen at a time."""
        self._runner.run(self._create(list(pods)))

    def pods(self) -> dict[str, Any]:
        """The namespace's pods by name."""
        return {item["metadata"]["name"]: item for item in self.send("GET", self._pods)["items"]}

    def bound(self) -> dict[str, str]:
        """Pod -> node, of the pods that are bound."""
        return {
            name: item["spec"]["nodeName"]
            for name, item in self.pods().items()
            if item["spec"].get("nodeName")
        }

    def phases(self) -> dict[str, int]:
        """Phase -> number of pods."""
        phases = [item["status"]["phase"] for item in self.pods().values()]
        return {phase: phases.count(phase) for phase in set(phases)}

    def wait_succeeded(self, count: int) -> None:
        """Wait until `count` pods have succeeded."""
        wait(f"{count} pods succeeded", lambda: self.phases().get("Succeeded", 0) >= count)

    def events(self, reason: str) -> list[Any]:
        """The namespace's events with this reason."""
        path = f"/apis/events.k8s.io/v1/namespaces/{self.namespace}/events"
        return [item for item in self.send("GET", path)["items"] if item["reason"] == reason]

    def condition(self, name: str) -> Any:
        """The condition PodScheduled of a pod; empty if it has none."""
        conditions = self.pods()[name]["status"].get("conditions", [])
        return next((one for one in conditions if one["type"] == "PodScheduled"), {})

    def remove_claims(self) -> None:
        """Remove the Leases by which installations claim schedulerNames; their holders must have ended."""
        path = f"/apis/coordination.k8s.io/v1/namespaces/{CLAIMS_NAMESPACE}/leases"
        for each in self.send("GET", path)["items"]:
            if each["metadata"]["name"].startswith(SCHEDULER_NAME_CLAIM):
                self.send("DELETE", f"{path}/{each['metadata']['name']}")

    async def _create(self, pods: list[Any]) -> None:
        in_flight = asyncio.Semaphore(16)

        async def one(body: Any) -> None:
            async with in_flight:
                await self._send("POST", self._pods, body)

        await asyncio.gather(*(one(body) for body in pods))

    async def _send(self, method: str, path: str, body: Any = None, **options: Any) -> Any:
        deadline, is_retry = time.monotonic() + WAIT_SECONDS, False
        while True:
            try:
                return read_json(msgspec.json.decode, await self._client.send(method, path, body, **options))
            except (NotDoneError, UnsureError):
                assert time.monotonic() < deadline, f"{method} {path}: no server responded"
                is_retry = True
                await asyncio.sleep(0.2)
            except ConflictError:
                if method == "POST" and is_retry:
                    return None  # the first attempt succeeded on the server
                raise


class Scheduler:
    """One scheduler process; its log and its tape are files in `directory`."""

    def __init__(
        self,
        directory: Path,
        kubeconfig: Path,
        *,
        name: str = "a",
        lease: dict[str, Any] | None = None,
        arguments: Iterable[str] = (),
        **parts: Any,
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.tape, self.log_file = directory / f"{name}.tape.gz", directory / f"{name}.log"
        election = {"resourceName": directory.name.lower().replace("_", "-"), **(lease or {})}
        timeout = {"requestTimeout": "2s"} if lease is QUICK_LEASE else {}
        document = {
            "apiVersion": API_VERSION,
            "kind": "SchedulerConfiguration",
            "profiles": [{"schedulerName": "eclectus", "place": {"policy": "least-allocated"}}],
            "clientConnection": timeout,
            "leaderElection": election,
            "server": {"port": 0},
            **parts,
        }
        self._config = directory / f"{name}.yaml"
        self._config.write_text(yaml.safe_dump(document))
        self._kubeconfig, self._arguments = kubeconfig, list(arguments)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> Self:
        """Start it with --record; appends to the log of an earlier run, but overwrites its tape."""
        program = [sys.executable, "-c", "from eclectus.cli.main import main; main()", "scheduler"]
        program += [
            "--config",
            str(self._config),
            "--kubeconfig",
            str(self._kubeconfig),
            "--log-format",
            "json",
            "--record",
            str(self.tape),
            *self._arguments,
        ]
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(program, stderr=log, stdin=subprocess.DEVNULL)
        return self

    @property
    def pid(self) -> int:
        """The process id."""
        assert self._process is not None
        return self._process.pid

    @property
    def code(self) -> int | None:
        """The exit code; None while it runs."""
        assert self._process is not None
        return self._process.poll()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        os.kill(self.pid, number)

    def kill(self) -> None:
        """SIGKILL, and wait."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(10)

    def stop(self) -> int:
        """SIGTERM, and wait; returns the exit code."""
        assert self._process is not None
        self._process.terminate()
        return self._process.wait(60)

    def lines(self, message: str = "") -> list[Any]:
        """The log records whose message starts with `message`."""
        lines = map(_record, self.log_file.read_text().splitlines())
        return [line for line in lines if line is not None and line["msg"].startswith(message)]

    def wait_deciding(self, runs: int = 1) -> Self:
        """Wait until it leads and has listed the cluster, for the `runs`-th time."""
        wait(
            f"{self.log_file.name} decides",
            lambda: self._is_running() and len(self.lines("deciding")) >= runs,
        )
        return self

    def _is_running(self) -> bool:
        assert self.code is None, f"it ended with code {self.code}: {self.log_file.read_text()[-2000:]}"
        return True

    @property
    def address(self) -> str:
        """Host and port of its health checks and metrics."""
        return str(self.lines("serving")[-1]["address"])

    def solver_pids(self) -> list[int]:
        """The process of the flow solver that it has started; empty while there is none."""
        return [pid for pid in children(self.pid) if b"eclectus.solver" in _command(pid)]

    def learned(self) -> dict[str, float]:
        """Node -> learned rate, in tasks per second and slot; of a cluster whose rates are one page."""
        cells = requests.get(f"http://{self.address}/speeds", timeout=60).json()["items"]
        return {cell["node"]: cell["rate"] for cell in cells}


def children(parent: int) -> list[int]:
    """The ids of a process's children."""
    return [int(each) for each in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]


def _command(pid: int) -> bytes:
    """The command line of a process; empty once it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _record(line: str) -> Any:
    """The record of a line of a log; None if it is none, or was cut by a SIGKILL or while it was written."""
    try:
        return json.loads(line) if line.startswith("{") else None
    except ValueError:
        return None
