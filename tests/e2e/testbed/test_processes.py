"""Processes are identified by pid and start time, because a pid may be reused."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from eclectus_e2e.errors import StartError
from eclectus_e2e.testbed import processes
from eclectus_e2e.testbed.launch import process_identity

SLEEP = ["/bin/sleep", "600"]


@pytest.fixture
def sleeper(tmp_path: Path) -> Iterator[processes.Process]:
    process = processes.start("sleeper", SLEEP, tmp_path, dies_with_caller=False)
    yield process
    process.stop()


def test_a_started_process_is_recorded_and_found_by_another_run(
    sleeper: processes.Process, tmp_path: Path
) -> None:
    assert processes.recorded(tmp_path) == [sleeper]
    assert sleeper.alive


def test_stopping_ends_it_and_drops_its_record(sleeper: processes.Process, tmp_path: Path) -> None:
    sleeper.stop()
    assert process_identity(sleeper.pid) is None
    assert processes.recorded(tmp_path) == []


def test_a_stopped_process_is_ended_too(sleeper: processes.Process) -> None:
    os.kill(sleeper.pid, signal.SIGSTOP)
    sleeper.stop()
    assert process_identity(sleeper.pid) is None


def test_a_program_whose_first_thread_has_ended_still_runs(tmp_path: Path) -> None:
    """It may still hold its port, and a server started in its place would find the address in use."""
    code = (
        "import ctypes, threading, time\n"
        "threading.Thread(target=time.sleep, args=(600,)).start()\n"
        "ctypes.CDLL(None).pthread_exit(None)"
    )
    process = processes.start("headless", [sys.executable, "-c", code], tmp_path, dies_with_caller=False)
    try:
        assert processes.wait_for(lambda: _state(process.pid) == "Z", 10)
        assert process.alive
    finally:
        process.stop()
    assert not process.alive


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_a_pid_that_was_reused_is_left_alone(sleeper: processes.Process, tmp_path: Path) -> None:
    record = json.loads(sleeper.record.read_text())
    stale = tmp_path / "pids" / "stale.json"
    stale.write_text(json.dumps({**record, "identity": "another boot:1"}))
    (old,) = [process for process in processes.recorded(tmp_path) if process.name == "stale"]
    assert not old.alive
    old.stop()
    assert sleeper.alive
    assert not stale.exists()


def test_a_program_that_does_not_exist_is_reported_in_its_log(tmp_path: Path) -> None:
    process = processes.start("nothing", ["/does/not/exist"], tmp_path, dies_with_caller=False)
    assert processes.wait_for(lambda: not process.alive, 10)
    assert "FileNotFoundError" in processes.log_tail(tmp_path, "nothing")


def test_a_start_that_leaves_no_record_is_an_error_with_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes.launch, "__file__", "/does/not/exist.py")
    with pytest.raises(StartError, match=r"(?s)sleeper did not start.*/does/not/exist.py"):
        processes.start("sleeper", SLEEP, tmp_path, dies_with_caller=False)


@pytest.mark.parametrize(("dies_with_caller", "survives"), [(True, False), (False, True)])
def test_a_process_dies_with_a_killed_caller_only_when_asked_to(
    tmp_path: Path, dies_with_caller: bool, survives: bool
) -> None:
    code = (
        "import sys, time; from pathlib import Path; from eclectus_e2e.testbed import processes\n"
        f"processes.start('child', {SLEEP!r}, Path(sys.argv[1]), dies_with_caller={dies_with_caller})\n"
        "print('started', flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"started\n"
        (child,) = processes.recorded(tmp_path)
        assert child.alive
        parent.kill()
    try:
        if not survives:
            assert processes.wait_for(lambda: not child.alive, 10)
        assert child.alive is survives
    finally:
        child.stop()
