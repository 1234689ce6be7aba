"""A lock on a file, so that one run builds at a time; shows progress while it waits."""

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from eclectus_e2e.progress import Progress


@contextmanager
def file_lock(path: Path, title: str) -> Iterator[None]:
    """Hold an exclusive lock on a file; the kernel releases it however the process ends."""
    with path.open("w") as file, Progress(f"another run is building {title}; waiting") as waiting:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                waiting.update("")
                time.sleep(0.5)
        waiting.stop()
        yield
