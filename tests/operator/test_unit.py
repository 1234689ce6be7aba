"""The built-in benchmark: the same work everywhere, reported in one line."""

import json
import signal
import subprocess
import sys
import zlib

import pytest

from eclectus_e2e.testbed.processes import wait_for
from eclectus_operator import unit
from eclectus_operator.convert import read
from eclectus_operator.node_probes.run_steps import _rate
from eclectus_operator.observed import Ended

PROGRAM = unit.__file__


def ran(*arguments, folder):
    command = [sys.executable, "-I", PROGRAM, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_it_reports_one_line_that_the_operator_understands(tmp_path):
    done = ran("disk", "--units", "1", "--folder", str(tmp_path), folder=tmp_path)
    (line,) = done.stdout.splitlines()
    report = json.loads(line)
    assert (done.returncode, report["unit"], report["units"]) == (0, "disk", 1)
    assert report["rate"] == pytest.approx(report["units"] / report["seconds"], rel=0.01)
    assert _rate([read({"message": done.stdout}, Ended)]) == report["rate"]
    assert list(tmp_path.iterdir()) == [], "it leaves no file"


def test_the_work_is_the_same_every_time():
    assert f"{unit.cpu(1):x}" == "ce8eefe99cd3cc41"
    assert unit.memory(1, size=2**18) == unit.memory(1, size=2**18)
    assert unit.memory(1, size=2**18) != unit.memory(2, size=2**18)


def test_the_generator_is_the_documented_one(monkeypatch):
    monkeypatch.setattr(unit, "STEPS", 3)
    state = 1
    for _ in range(6):
        state = (6364136223846793005 * state + 1442695040888963407) % 2**64
    assert unit.cpu(2) == state


def test_what_was_written_is_what_is_read(tmp_path):
    whole = bytes(range(256)) * (2 * unit.BLOCK_BYTES // 256)
    assert unit.disk(3, tmp_path, size=2 * unit.BLOCK_BYTES) == zlib.crc32(whole * 3)


def test_the_report_is_written_to_the_termination_log_if_there_is_one(tmp_path, capsys):
    log = tmp_path / "termination-log"
    unit.report("first", log)
    assert not log.exists()
    log.touch()
    unit.report("second", log)
    assert log.read_text() == "second\n"
    assert capsys.readouterr().out == "first\nsecond\n"


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    done = ran("disk", "--units", "1", "--folder", str(tmp_path / "none"), folder=tmp_path)
    assert done.returncode == 1
    assert str(tmp_path / "none") in done.stderr
    assert done.stdout == ""


def test_on_sigterm_it_ends_and_leaves_no_file(tmp_path):
    """With an exit of its own, not killed by the signal: process 1 of a container would ignore it."""
    command = [sys.executable, "-I", PROGRAM, "disk", "--units", "1000000"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE) as process:
        assert wait_for(lambda: list(tmp_path.iterdir()), 30), "it did not start"
        process.terminate()
        output, _ = process.communicate(timeout=30)
    assert (process.returncode, output) == (128 + signal.SIGTERM, b"")
    assert list(tmp_path.iterdir()) == []


CLASS_OF_CHILD = """
import os, runpy, sys
{before}
sys.argv = [{program!r}, "cpu", "--units", "1", {option}]
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
except SystemExit as ended:
    print(ended.code, os.sched_getscheduler(0) == os.SCHED_IDLE, os.nice(0))
"""
REFUSED = """
def refuse(*_):
    raise PermissionError
os.sched_setscheduler = refuse
"""


@pytest.mark.parametrize(
    ("option", "before", "is_idle", "is_nice"),
    [
        ("", "", False, False),
        ("'--idle'", "", True, False),
        ("'--idle'", REFUSED, False, True),
    ],
    ids=["not asked for", "idle", "refused"],
)
def test_it_takes_only_processor_time_that_nobody_wants(option, before, is_idle, is_nice, tmp_path):
    """The class that the process has in the end, read back by itself."""
    program = CLASS_OF_CHILD.format(before=before, program=PROGRAM, option=option)
    normal = "os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))"  # whatever the tests run with
    normal += "; os.setpriority(os.PRIO_PROCESS, 0, 0)"
    command = [sys.executable, "-I", "-c", f"import os; {normal}\n{program}"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout.splitlines()[0])["proof"] == "ce8eefe99cd3cc41"
    assert done.stdout.splitlines()[-1] == f"0 {is_idle} {19 if is_nice else 0}"


@pytest.mark.parametrize("arguments", [["gpu"], ["cpu", "--units", "0"], ["cpu", "--units", "many"], []])
def test_a_wrong_command_line_is_refused(arguments, tmp_path):
    done = ran(*arguments, folder=tmp_path)
    assert done.returncode == 2
    assert "usage: unit.py" in done.stderr
