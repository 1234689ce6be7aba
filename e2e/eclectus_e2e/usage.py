"""CPU time and peak memory of processes, from /proc (proc(5))."""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
STEP_SECONDS = 1 / _TICKS  # in which CPU time is counted
QUIET_CORES = 0.2  # used by other processes: more is reported as a disturbance


def cpu_seconds(pid: int) -> float:
    """User and system time of a process and all its threads, in steps of STEP_SECONDS: mostly 10 ms."""
    stat = Path(f"/proc/{pid}/stat").read_text()
    # The second field is the program's name in brackets and may itself hold spaces and brackets.
    fields = stat.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def peak_mebibytes(pid: int | str = "self") -> float:
    """Peak resident memory of a process (VmHWM)."""
    return _mebibytes(pid, "VmHWM:")


def memory_mebibytes(pid: int) -> float:
    """Resident memory of a process (VmRSS)."""
    return _mebibytes(pid, "VmRSS:")


def busy_seconds() -> float:
    """CPU time of the whole machine since it started: user, nice, system, interrupts, stolen; not idle."""
    _, user, nice, system, _, _, irq, softirq, steal, *_ = Path("/proc/stat").read_text().split(maxsplit=10)
    return sum(map(int, (user, nice, system, irq, softirq, steal))) / _TICKS


@dataclass(frozen=True)
class Reading:
    """Clock and CPU times at one moment."""

    at: float
    busy: float
    cpu: Mapping[str, float]


def read(pids: Mapping[str, int]) -> Reading:
    """Read the CPU times of these processes, by name."""
    return Reading(time.monotonic(), busy_seconds(), {name: cpu_seconds(pid) for name, pid in pids.items()})


def spent_seconds(before: Reading, after: Reading, name: str) -> float:
    """CPU time of a process between two readings, at least one step: what was less is not known."""
    return max(after.cpu[name] - before.cpu[name], STEP_SECONDS)


def cores_of_others(before: Reading, after: Reading) -> float:
    """Cores that all other processes used between two readings: 0 on an idle machine."""
    own = sum(after.cpu.values()) - sum(before.cpu.values())
    return max(0.0, after.busy - before.busy - own) / (after.at - before.at)


def _mebibytes(pid: int | str, entry: str) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(entry):
            return int(line.split()[1]) / 1024
    raise ProcessLookupError(f"process {pid} has no memory: it has ended")
