"""Background processes with record files, so that this run or a later one can stop them.

A record file holds pid and start time. A reused pid has another start time, so no other process is
ever signalled.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from eclectus_e2e.errors import StartError
from eclectus_e2e.testbed import launch
from eclectus_e2e.testbed.launch import process_identity

STOP_SECONDS = 10.0  # from SIGTERM to SIGKILL; kube-apiserver drains for a second or two
_POLL_SECONDS = 0.02
_LOG_TAIL_LINES = 25


@dataclass(frozen=True)
class Process:
    """One started program and its record file."""

    name: str
    pid: int
    identity: str | None
    program: tuple[str, ...]
    record: Path

    @property
    def alive(self) -> bool:
        """Whether this process (not a later one with the same pid) still runs."""
        _reap(self.pid)
        return self.identity is not None and process_identity(self.pid) == self.identity

    def stop(self, first: signal.Signals = signal.SIGTERM) -> None:
        """Stop it with signal `first`, after STOP_SECONDS with SIGKILL, and remove its record."""
        for number in (first, signal.SIGKILL):
            if not self.alive:
                break
            os.kill(self.pid, number)
            # A process stopped by SIGSTOP handles SIGTERM only after SIGCONT.
            os.kill(self.pid, signal.SIGCONT)
            wait_for(lambda: not self.alive, STOP_SECONDS)
        self.record.unlink(missing_ok=True)


def start(name: str, program: list[str], directory: Path, *, dies_with_caller: bool) -> Process:
    """Start a program; its output goes to `logs/<name>.log`, its record to `pids/<name>.json`.

    With `dies_with_caller` it is killed when the calling thread ends, for whatever reason; otherwise it
    outlives the caller. Raises StartError when it leaves no record.
    """
    record = directory / "pids" / f"{name}.json"
    record.parent.mkdir(parents=True, exist_ok=True)
    record.unlink(missing_ok=True)
    log_file = log_path(directory, name)
    log_file.parent.mkdir(parents=True, exist_ok=True)
    parent = os.getpid() if dies_with_caller else 0
    launcher = [sys.executable, "-I", "-S", launch.__file__, str(record), str(parent), "--"]
    with log_file.open("ab") as log:
        child = subprocess.Popen(
            [*launcher, *program],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C in the terminal reaches the caller alone
        )
    child.returncode = 0  # _reap waits by pid; otherwise Popen would warn about a running child
    if not wait_for(lambda: record.exists() or not _running(child.pid), STOP_SECONDS) or not record.exists():
        raise StartError(f"{name} did not start:\n{log_tail(directory, name)}")
    return _read(record)


def recorded(directory: Path) -> list[Process]:
    """Every process with a record in this directory, running or not, in the order of their start."""
    records = list((directory / "pids").glob("*.json"))
    return [_read(path) for path in sorted(records, key=lambda path: path.stat().st_mtime)]


def log_path(directory: Path, name: str) -> Path:
    """The log file of a program."""
    return directory / "logs" / f"{name}.log"


def log_tail(directory: Path, name: str) -> str:
    """The last lines of a program's log, for an error message."""
    path = log_path(directory, name)
    if not path.exists():
        return f"(no log at {path})"
    lines = path.read_text(errors="replace").splitlines()[-_LOG_TAIL_LINES:]
    return "\n".join([f"--- the end of {path}", *lines])


def wait_for(condition: Callable[[], bool], seconds: float, every_seconds: float = _POLL_SECONDS) -> bool:
    """Wait until a condition holds; False when it does not within `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(every_seconds)
    return True


def _read(record: Path) -> Process:
    content = json.loads(record.read_text())
    return Process(record.stem, content["pid"], content["identity"], tuple(content["program"]), record)


def _running(pid: int) -> bool:
    _reap(pid)
    return process_identity(pid) is not None


def _reap(pid: int) -> None:
    """Collect the exit status of an ended child process, so that it does not stay a zombie."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return  # not a child of this process, or collected already
