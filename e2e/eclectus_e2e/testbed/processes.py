"""Processes that can be found and ended again, by this run or a later one, and by nobody's mistake.

A record file holds pid and start time. A pid that was reused has another start time, so a stranger
is never signalled.
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

STOP_SECONDS = 10.0  # from SIGTERM to SIGKILL: an apiserver drains for a second or two
_POLL_SECONDS = 0.02
_LOG_TAIL_LINES = 25


@dataclass(frozen=True)
class Process:
    """One started program: who it is, and where its record and log lie."""

    name: str
    pid: int
    identity: str | None
    program: tuple[str, ...]
    record: Path

    @property
    def alive(self) -> bool:
        """Whether this very process (not a later one of the same pid) still runs."""
        _reap(self.pid)
        return self.identity is not None and process_identity(self.pid) == self.identity

    def stop(self, first: signal.Signals = signal.SIGTERM) -> None:
        """End it, with SIGKILL when it has not gone after STOP_SECONDS, and drop its record."""
        for order in (first, signal.SIGKILL):
            if not self.alive:
                break
            os.kill(self.pid, order)
            # A stopped process (SIGSTOP) acts on SIGTERM only after it is continued.
            os.kill(self.pid, signal.SIGCONT)
            wait_for(lambda: not self.alive, STOP_SECONDS)
        self.record.unlink(missing_ok=True)


def start(name: str, program: list[str], directory: Path, *, leashed: bool) -> Process:
    """Start a program; its output goes to `logs/<name>.log`, its record to `pids/<name>.json`.

    A leashed one dies with the calling thread, also when that is killed; an unleashed one gets a
    session of its own and outlives the caller.
    """
    record = directory / "pids" / f"{name}.json"
    record.parent.mkdir(parents=True, exist_ok=True)
    record.unlink(missing_ok=True)
    log_file = log_path(directory, name)
    log_file.parent.mkdir(parents=True, exist_ok=True)
    parent = os.getpid() if leashed else 0
    launcher = [sys.executable, "-I", "-S", launch.__file__, str(record), str(parent), "--"]
    with log_file.open("ab") as log:
        child = subprocess.Popen(
            [*launcher, *program],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C in the caller's terminal is the caller's to handle
        )
    child.returncode = 0  # we reap by pid (see _reap); Popen need not warn about a running child
    if not wait_for(lambda: record.exists() or not _running(child.pid), STOP_SECONDS) or not record.exists():
        raise StartError(f"{name} did not start:\n{log_tail(directory, name)}")
    return _read(record)


def recorded(directory: Path) -> list[Process]:
    """Every process that has a record in this directory, alive or not, in order of start."""
    records = list((directory / "pids").glob("*.json"))
    return [_read(path) for path in sorted(records, key=lambda path: path.stat().st_mtime)]


def log_path(directory: Path, name: str) -> Path:
    """The log of a program of this directory."""
    return directory / "logs" / f"{name}.log"


def log_tail(directory: Path, name: str) -> str:
    """The last lines of a log, for a message to a person."""
    path = log_path(directory, name)
    if not path.exists():
        return f"(no log at {path})"
    lines = path.read_text(errors="replace").splitlines()[-_LOG_TAIL_LINES:]
    return "\n".join([f"--- the end of {path}", *lines])


def wait_for(condition: Callable[[], bool], seconds: float, every_seconds: float = _POLL_SECONDS) -> bool:
    """Wait until a condition holds; False when the deadline came first."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(every_seconds)
    return True


def _read(record: Path) -> Process:
    note = json.loads(record.read_text())
    return Process(record.stem, note["pid"], note["identity"], tuple(note["program"]), record)


def _running(pid: int) -> bool:
    _reap(pid)
    return process_identity(pid) is not None


def _reap(pid: int) -> None:
    """Collect the exit status if it is a child of ours that has ended."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return  # another run's, or collected already: nothing to collect
