"""CPU time and memory of processes and of the machine."""

import os
import subprocess
import sys

import pytest

from eclectus_e2e.usage import (
    STEP_SECONDS,
    Reading,
    cores_of_others,
    cpu_seconds,
    memory_mebibytes,
    peak_mebibytes,
    read,
    spent_seconds,
)


def test_work_uses_cpu_time():
    before = read({"self": os.getpid()})
    while cpu_seconds(os.getpid()) < before.cpu["self"] + 0.05:
        sum(range(10_000))
    after = read({"self": os.getpid()})
    assert after.cpu["self"] > before.cpu["self"]
    assert after.busy > before.busy


def test_a_name_with_brackets_and_spaces_is_parsed(tmp_path):
    program = tmp_path / "a) b (c"
    program.symlink_to(sys.executable)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([program, "-c", "print('up', flush=True); input()"], **pipes) as child:
        assert child.stdout.readline() == b"up\n"
        assert cpu_seconds(child.pid) >= 0
        assert peak_mebibytes(child.pid) >= memory_mebibytes(child.pid) > 1
        child.communicate(b"\n")


def test_other_processes_used_what_the_machine_did_beyond_what_was_read():
    before, after = Reading(10.0, 100.0, {"a": 1.0}), Reading(12.0, 103.0, {"a": 2.0})
    assert cores_of_others(before, after) == 1.0  # 3 s busy, 1 s of it ours, in 2 s


def test_rounding_never_makes_the_use_of_others_negative():
    assert cores_of_others(Reading(0.0, 0.0, {"a": 0.0}), Reading(1.0, 1.0, {"a": 1.01})) == 0.0


def test_a_process_without_memory_is_named():
    child = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # it has ended and is not yet reaped
    with pytest.raises(ProcessLookupError, match=str(child.pid)):
        peak_mebibytes(child.pid)
    child.wait()


def test_a_process_has_spent_a_step_at_least_so_that_ratios_exist():
    before, after = Reading(0.0, 0.0, {"a": 1.0, "b": 1.0}), Reading(1.0, 1.0, {"a": 1.0, "b": 1.5})
    assert spent_seconds(before, after, "a") == STEP_SECONDS
    assert spent_seconds(before, after, "b") == 0.5
