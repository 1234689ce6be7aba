"""The built-in benchmark: a fixed amount of work of one kind, and how fast it was done.

    unit.py cpu --units 1
    {"unit": "cpu", "units": 1, "seconds": 0.100973, "rate": 9.903638, "proof": "ce8eefe99cd3cc41"}

One JSON line on standard output, and the same where Kubernetes looks for a container's last words. The work
is the same on every machine and every time, and `proof` shows that it was done. Standard library alone: it
is copied into a small image by itself and needs no privilege, no network and no account. Told to stop, it
does so at once.

cpu     1,000,000 steps of a 64-bit linear congruential generator (Knuth's MMIX constants), interpreted: whole
        numbers and branches, one core, nothing but the caches
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

LAST_WORDS = Path("/dev/termination-log")
STEPS = 1_000_000
MULTIPLIER, INCREMENT, MASK = 6364136223846793005, 1442695040888963407, 2**64 - 1
COPY_BYTES, COPIES = 128 * 2**20, 8
SAMPLE_BYTES = 2**16
FILE_BYTES, BLOCK_BYTES = 16 * 2**20, 2**20


def cpu(units: int) -> int:
    """The generator's state after that many units, from state 1."""
    state = 1
    for _ in range(units * STEPS):
        state = (state * MULTIPLIER + INCREMENT) & MASK
    return state


def memory(units: int, size: int = COPY_BYTES) -> int:
    """The checksum of a sample of the last copy. `size`: bytes of each of the two buffers."""
    # Written once before: untouched pages of zeros would not be read from memory at all.
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


def measured(kind: str, units: int, work: Callable[[], int]) -> dict[str, str | int | float]:
    """Do the work; what is to be said of it."""
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


def say(line: str, last_words: Path = LAST_WORDS) -> None:
    """Print the line, and leave it for Kubernetes where there is a place for it."""
    sys.stdout.write(line + "\n")
    if last_words.exists():
        last_words.write_text(line + "\n")


def main(arguments: list[str] | None = None) -> int:
    """Measure and say; 1 where the work could not be done."""
    parser = argparse.ArgumentParser(
        "unit.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=["cpu", "memory", "disk"], help="what to measure")
    parser.add_argument("--units", type=_positive, default=50, help="how much of it (default: 50)")
    parser.add_argument("--folder", type=Path, default=Path("."), help="where disk writes (default: here)")
    given = parser.parse_args(arguments)
    works: dict[str, Callable[[], int]] = {
        "cpu": lambda: cpu(given.units),
        "memory": lambda: memory(given.units),
        "disk": lambda: disk(given.units, given.folder),
    }
    try:
        said = measured(given.kind, given.units, works[given.kind])
    except (OSError, MemoryError) as error:
        sys.stderr.write(f"unit.py {given.kind}: {error or 'out of memory'}\n")
        return 1
    say(json.dumps(said))
    return 0


def stop_when_told() -> None:
    """End on SIGTERM: the first process of a container is not ended by it unless it says so."""
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


if __name__ == "__main__":
    stop_when_told()
    sys.exit(main())
