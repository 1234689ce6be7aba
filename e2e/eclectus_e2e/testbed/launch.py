"""Become another program, after leaving a note of who that will be.

    python -I -S launch.py RECORD PARENT -- PROGRAM ARGUMENT...

The note (pid and start time) is written by the process itself *before* it becomes the program, and
both survive exec: so there is no moment in which a component runs that nobody could find again.
PARENT is the pid to die with, or 0 to outlive the caller. Standard library only: it starts in
20 ms because it imports nothing else.
"""

import ctypes
import json
import os
import signal
import sys
from pathlib import Path

PR_SET_PDEATHSIG = 1  # linux/prctl.h


def process_identity(pid: int) -> str | None:
    """What tells a live process from a later one of the same pid; None when it is gone.

    Boot id and start time in clock ticks (proc(5), field 22). A zombie counts as gone once its last
    thread is: a killed program's first thread may end before those that still hold its open ports.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The second field is the program's name in brackets and may itself hold spaces and brackets.
    fields = stat.rpartition(")")[2].split()
    state, threads = fields[0], int(fields[17])
    if state == "X" or (state == "Z" and threads <= 1):
        return None
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot}:{fields[19]}"


def die_with(parent: int) -> None:
    """Ask the kernel for SIGKILL when the parent goes.

    The trap: "parent" is the thread that forked us, so leashed processes are to be started from a
    thread that lives as long as they shall.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != parent:  # it went before we asked
        raise SystemExit(1)


def write_record(record: Path, program: list[str]) -> None:
    """Write pid, identity and program, in one rename: a reader sees all of it or nothing."""
    note = {"pid": os.getpid(), "identity": process_identity(os.getpid()), "program": program}
    unfinished = record.with_name(record.name + f".{os.getpid()}")
    unfinished.write_text(json.dumps(note))
    unfinished.rename(record)


def main(arguments: list[str]) -> None:
    """Leave the note, tie the leash, become the program."""
    record, parent, dashes, *program = arguments
    if dashes != "--" or not program:
        raise SystemExit(__doc__)
    write_record(Path(record), program)
    if int(parent):
        die_with(int(parent))
    os.execv(program[0], program)  # noqa: S606 - that is what this program is for


if __name__ == "__main__":
    main(sys.argv[1:])
