"""The built-in benchmark: a fixed amount of work of one kind, and how fast it was done.

    unit.py cpu --units 1 --idle
    {"unit": "cpu", "units": 1, "seconds": 0.100973, "rate": 9.903638, "proof": "ce8eefe99cd3cc41"}

It prints one JSON line, and writes the same as the container's termination message. The work is the same on
every machine and every time, and `proof` shows that it was done. It needs only the standard
library, since its image holds this one file, and no privilege, network or account. It ends on SIGTERM.
With --idle it takes only processor time that nothing else wants (yield_processor).

cpu     1,000,000 steps of a 64-bit linear congruential generator (Knuth's MMIX constants), interpreted:
        integers and branches on one core, within its caches
memory  1 GiB copied, 128 MiB at a time, from one buffer to another
disk    16 MiB written to a new file, synced to the device, dropped from the page cache, and read back
"""

import argparse
import json
import os
import signal
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path

TERMINATION_LOG = Path("/dev/termination-log")
STEPS = 1_000_000
MULTIPLIER, INCREMENT, MASK = 6364136223846793005, 1442695040888963407, 2**64 - 1
COPY_BYTES, COPIES = 128 * 2**20, 8
SAMPLE_BYTES = 2**16
FILE_BYTES, BLOCK_BYTES = 16 * 2**20, 2**20


def cpu(units: int) -> int:
    """The generator's state after that many units, starting from state 1."""
    state = 1
    for _ in range(units * STEPS):
        state = (state * MULTIPLIER + INCREMENT) & MASK
    return state


def memory(units: int, size: int = COPY_BYTES) -> int:
    """The checksum of a sample of the last copy. `size`: bytes of each of the two buffers."""
    # Both buffers are written first: untouched pages of zeros would not be read from memory at all.
    source, target = bytearray(range(256)) * (size // 256), bytearray(range(256)) * (size // 256)
    one, other = memoryview(source), memoryview(target)
    for turn in range(units * COPIES):
        one[0], one[-1] = turn % 251, turn % 241
        other[:] = one
        one, other = other, one
    return zlib.crc32(bytes(one[::SAMPLE_BYTES]) + bytes(one[-1:]))


def disk(units: int, folder: Path, size: int = FILE_BYTES) -> int:
    """The checksum of all that was read back. Raises OSError where the folder cannot be written."""
    block = bytes(range(256)) * (BLOCK_BYTES // 256)
    path, proof = folder / f"eclectus-unit-{os.getpid()}", 0
    try:
        for _ in range(units):
            with path.open("wb", buffering=0) as file:
                for _ in range(size // BLOCK_BYTES):
                    file.write(block)
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            with path.open("rb", buffering=0) as file:
                while read := file.read(BLOCK_BYTES):
                    proof = zlib.crc32(read, proof)
    finally:
        path.unlink(missing_ok=True)
    return proof


def yield_processor() -> None:
    """Leave the processor to every other process that wants it; needs no privilege.

    A thread of the class SCHED_IDLE is preempted when any other wakes up, which the weight of its cgroup
    alone does not ensure. Where a sandbox allows no other class, it gets the least weight that it can have.
    """
    try:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    except OSError:
        os.nice(19)


def measure(kind: str, units: int, work: Callable[[], int]) -> dict[str, str | int | float]:
    """Do the work; the report on it."""
    began = time.perf_counter()
    proof = work()
    seconds = time.perf_counter() - began
    rate = units / max(seconds, 1e-9)
    return {
        "unit": kind,
        "units": units,
        "seconds": round(seconds, 6),
        "rate": round(rate, 6),
        "proof": f"{proof:x}",
    }


def report(line: str, termination_log: Path = TERMINATION_LOG) -> None:
    """Print the line, and write it to the termination log if there is one."""
    sys.stdout.write(line + "\n")
    if termination_log.exists():
        termination_log.write_text(line + "\n")


def main(arguments: list[str] | None = None) -> int:
    """Measure and report. The exit code: 1 if the work could not be done."""
    parser = argparse.ArgumentParser(
        "unit.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=["cpu", "memory", "disk"], help="what to measure")
    parser.add_argument("--units", type=_positive, default=50, help="amount of work (default: 50)")
    parser.add_argument("--folder", type=Path, default=Path("."), help="where `disk` writes (default: here)")
    parser.add_argument("--idle", action="store_true", help="only when nothing else wants the processor")
    given = parser.parse_args(arguments)
    if given.idle:
        yield_processor()
    works: dict[str, Callable[[], int]] = {
        "cpu": lambda: cpu(given.units),
        "memory": lambda: memory(given.units),
        "disk": lambda: disk(given.units, given.folder),
    }
    try:
        result = measure(given.kind, given.units, works[given.kind])
    except (OSError, MemoryError) as error:
        sys.stderr.write(f"unit.py {given.kind}: {error or 'out of memory'}\n")
        return 1
    report(json.dumps(result))
    return 0


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


if __name__ == "__main__":
    # Process 1 of a container ignores signals for which it has no handler.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    sys.exit(main())
