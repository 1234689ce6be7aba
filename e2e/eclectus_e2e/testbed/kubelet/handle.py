"""Starting a fake kubelet as a process, and steering it from tests, demo and benchmark."""

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
from eclectus_e2e.testbed.kubelet.pod_times import Counters, Entry

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
    """Steers a running fake kubelet through its control socket."""

    def __init__(self, control: Path) -> None:
        self._control = control

    def state(self) -> dict[str, Any]:
        """`{"counters": ..., "nodes": {name: {"group", "speed", "class_factors", "state", "running"}}}`."""
        content: dict[str, Any] = json.loads(self._ask("GET", "/state"))
        return content

    def counters(self) -> Counters:
        """Totals since the start or the last reset."""
        return msgspec.convert(self.state()["counters"], Counters)

    def journal(self, since: int = 0) -> list[Entry]:
        """Pods that ended or were refused, in order, from an index on."""
        return msgspec.json.decode(self._ask("GET", f"/journal?since={since}"), type=list[Entry])

    def set_speed(
        self,
        speed: float,
        *,
        nodes: Sequence[str] | None = None,
        group: str | None = None,
        class_factors: Mapping[str, float] | None = None,
    ) -> None:
        """A new true speed, for nodes by name or for a group; 0: what runs there stands still."""
        change = {"nodes": nodes, "group": group, "speed": speed, "class_factors": class_factors}
        self._ask("POST", "/speed", change)

    def freeze(self, *nodes: str) -> None:
        """Nothing on these nodes moves any more, and nothing is written for them."""
        self._ask("POST", "/freeze", {"nodes": nodes})

    def thaw(self, *nodes: str) -> None:
        """Frozen nodes go on where they were."""
        self._ask("POST", "/thaw", {"nodes": nodes})

    def kill(self, *nodes: str) -> None:
        """These nodes are dead: as frozen, but what ran is lost."""
        self._ask("POST", "/kill", {"nodes": nodes})

    def recover(self, *nodes: str) -> None:
        """Dead nodes start again; nodes whose object was deleted are registered again."""
        self._ask("POST", "/recover", {"nodes": nodes})

    def add_nodes(self, nodes: Sequence[NodeSpec]) -> None:
        """More nodes."""
        self._ask("POST", "/nodes", msgspec.to_builtins(NodesFile(list(nodes))))

    def reset(self) -> None:
        """Forget journal and counters."""
        self._ask("POST", "/reset")

    def answers(self) -> bool:
        """Whether it is up, with every node registered."""
        try:
            self._ask("GET", "/state")
        except OSError:  # no socket yet
            return False
        return True

    def _ask(self, method: str, path: str, body: Any = None) -> bytes:
        connection = _UnixConnection(self._control)
        try:
            connection.request(method, path, None if body is None else json.dumps(body))
            response = connection.getresponse()
            content = response.read()
        finally:
            connection.close()
        if response.status != 200:
            raise UsageError(f"the fake kubelet refused {path}: {content.decode()}")
        return content


def start(
    directory: Path,
    kubeconfig: Path,
    nodes: Sequence[NodeSpec],
    *,
    leashed: bool = True,
    deregister: bool = False,
) -> tuple[KubeletControl, processes.Process]:
    """Start a fake kubelet process; its files go to `directory`. Returns when all nodes are registered.

    Raises StartError with the end of its log, UsageError for a directory with too long a name.
    """
    control, nodes_file = directory / "kubelet.sock", directory / "nodes.json"
    check_socket_path(control)
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    control.unlink(missing_ok=True)
    nodes_file.write_text(nodes_text(nodes))
    program = [sys.executable, "-m", "eclectus_e2e", "kubelet", "--kubeconfig", str(kubeconfig)]
    program += ["--nodes", str(nodes_file), "--control", str(control)]
    program += ["--journal", str(directory / "journal.jsonl")] + ["--deregister"] * deregister
    process = processes.start(NAME, program, directory, leashed=leashed)
    kubelet = KubeletControl(control)
    processes.wait_for(lambda: kubelet.answers() or not process.alive, READY_SECONDS)
    if not kubelet.answers():
        tail = processes.log_tail(directory, NAME)
        process.stop()
        raise StartError(f"the fake kubelet did not start\n{tail}")
    return kubelet, process


@contextmanager
def started(directory: Path, kubeconfig: Path, nodes: Sequence[NodeSpec]) -> Iterator[KubeletControl]:
    """A fake kubelet process for the length of a `with` block; its nodes stay registered after it."""
    kubelet, process = start(directory, kubeconfig, nodes)
    try:
        yield kubelet
    finally:
        process.stop()
