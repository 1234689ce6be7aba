"""Write a record of this process, then replace it by another program (exec).

    python -I -S launch.py RECORD PARENT -- PROGRAM ARGUMENT...

The record holds pid and start time, which exec does not change. It is written before the program starts,
so a later run finds every program, also when this run is killed at any moment. PARENT is the pid of the
caller to die with, or 0 to outlive it. Imports the standard library only, and so starts in 20 ms.
"""

import ctypes
import json
import os
import signal
import sys
from pathlib import Path

PR_SET_PDEATHSIG = 1  # linux/prctl.h


def process_identity(pid: int) -> str | None:
    """Boot id and start time, which distinguish a process from a later one with the same pid.

    None when the process has ended. The start time is in clock ticks (proc(5), field 22). A zombie with more
    than one thread still runs: the first thread of a killed program may end before those that hold its
    ports open.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The second field is the program's name in parentheses; it may contain spaces and parentheses.
    fields = stat.rpartition(")")[2].split()
    state, threads = fields[0], int(fields[17])
    if state == "X" or (state == "Z" and threads <= 1):
        return None
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot}:{fields[19]}"


def die_with(parent: int) -> None:
    """Let the kernel send SIGKILL when the parent ends.

    "Parent" is the thread that forked this process, not its process: such a program must be started from
    a thread that lives long enough.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != parent:  # it ended before the call
        raise SystemExit(1)


def write_record(record: Path, program: list[str]) -> None:
    """Write pid, identity and program. A rename makes it atomic: readers see a complete file or none."""
    content = {"pid": os.getpid(), "identity": process_identity(os.getpid()), "program": program}
    unfinished = record.with_name(record.name + f".{os.getpid()}")
    unfinished.write_text(json.dumps(content))
    unfinished.rename(record)


def main(arguments: list[str]) -> None:
    """Write the record, set the parent-death signal, exec the program."""
    record, parent, dashes, *program = arguments
    if dashes != "--" or not program:
        raise SystemExit(__doc__)
    write_record(Path(record), program)
    if int(parent):
        die_with(int(parent))
    os.execv(program[0], program)  # noqa: S606 - the purpose of this program


if __name__ == "__main__":
    main(sys.argv[1:])
