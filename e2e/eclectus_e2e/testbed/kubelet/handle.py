"""Starts a fake kubelet as a process and controls it, for tests, demo and benchmarks."""

import http.client
import json
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from eclectus_e2e.errors import StartError, UsageError
from eclectus_e2e.paths import check_socket_path
from eclectus_e2e.testbed import processes
from eclectus_e2e.testbed.kubelet.nodes import NodesFile, NodeSpec, nodes_text
from eclectus_e2e.testbed.kubelet.pod_times import Counters, PodRecord

NAME = "kubelet"
READY_SECONDS = 60.0


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("kubelet", timeout=30.0)
        self._path = path

    def connect(self) -> None:
        """Connect to the socket file."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


class KubeletControl:
    """Controls a running fake kubelet through its socket. Raises UsageError for a rejected request."""

    def __init__(self, control: Path) -> None:
        self._control = control

    def state(self) -> dict[str, Any]:
        """`{"counters": ..., "nodes": {name: {"group", "speed", "class_factors", "state", "running"}}}`."""
        content: dict[str, Any] = json.loads(self._request("GET", "/state"))
        return content

    def counters(self) -> Counters:
        """Totals since the start or the last reset."""
        return msgspec.convert(self.state()["counters"], Counters)

    def pod_times(self, since: int = 0) -> list[PodRecord]:
        """Records of the pods that ended or were rejected, in that order, from index `since` on."""
        return msgspec.json.decode(self._request("GET", f"/pod-times?since={since}"), type=list[PodRecord])

    def set_speed(
        self,
        speed: float,
        *,
        nodes: Sequence[str] | None = None,
        group: str | None = None,
        class_factors: Mapping[str, float] | None = None,
    ) -> None:
        """Set the true speed of nodes by name or of a group; at 0 their pods make no progress."""
        change = {"nodes": nodes, "group": group, "speed": speed, "class_factors": class_factors}
        self._request("POST", "/speed", change)

    def freeze(self, *nodes: str) -> None:
        """Freeze nodes: their pods make no progress, and nothing is written to the API server for them."""
        self._request("POST", "/freeze", {"nodes": nodes})

    def thaw(self, *nodes: str) -> None:
        """Resume frozen nodes."""
        self._request("POST", "/thaw", {"nodes": nodes})

    def kill(self, *nodes: str) -> None:
        """Kill nodes: like frozen, but running pods are lost."""
        self._request("POST", "/kill", {"nodes": nodes})

    def recover(self, *nodes: str) -> None:
        """Restart dead nodes; register nodes whose object was deleted."""
        self._request("POST", "/recover", {"nodes": nodes})

    def add_nodes(self, nodes: Sequence[NodeSpec]) -> None:
        """Add and register nodes."""
        self._request("POST", "/nodes", msgspec.to_builtins(NodesFile(list(nodes))))

    def reset(self) -> None:
        """Drop pod times and counters."""
        self._request("POST", "/reset")

    def is_ready(self) -> bool:
        """Whether it runs and every node is registered."""
        try:
            self._request("GET", "/state")
        except OSError:  # no socket yet
            return False
        return True

    def _request(self, method: str, path: str, body: Any = None) -> bytes:
        connection = _UnixConnection(self._control)
        try:
            connection.request(method, path, None if body is None else json.dumps(body))
            response = connection.getresponse()
            content = response.read()
        finally:
            connection.close()
        if response.status != 200:
            raise UsageError(f"the fake kubelet rejected {path}: {content.decode()}")
        return content


def start(
    directory: Path,
    kubeconfig: Path,
    nodes: Sequence[NodeSpec],
    *,
    dies_with_caller: bool = True,
    deregister: bool = False,
) -> tuple[KubeletControl, processes.Process]:
    """Start a fake kubelet process with its files in `directory`; returns when all nodes are registered.

    Raises StartError with the end of its log, UsageError when the path of `directory` is too long.
    """
    control, nodes_file = directory / "kubelet.sock", directory / "nodes.json"
    check_socket_path(control)
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    control.unlink(missing_ok=True)
    nodes_file.write_text(nodes_text(nodes))
    program = [sys.executable, "-m", "eclectus_e2e", "kubelet", "--kubeconfig", str(kubeconfig)]
    program += ["--nodes", str(nodes_file), "--control", str(control)]
    program += ["--pod-times", str(directory / "pod-times.jsonl")] + ["--deregister"] * deregister
    process = processes.start(NAME, program, directory, dies_with_caller=dies_with_caller)
    kubelet = KubeletControl(control)
    processes.wait_for(lambda: kubelet.is_ready() or not process.alive, READY_SECONDS)
    if not kubelet.is_ready():
        tail = processes.log_tail(directory, NAME)
        process.stop()
        raise StartError(f"the fake kubelet did not start\n{tail}")
    return kubelet, process


@contextmanager
def started(directory: Path, kubeconfig: Path, nodes: Sequence[NodeSpec]) -> Iterator[KubeletControl]:
    """Run a fake kubelet process within a `with` block; its nodes stay registered after it."""
    kubelet, process = start(directory, kubeconfig, nodes)
    try:
        yield kubelet
    finally:
        process.stop()
