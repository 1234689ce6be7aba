"""One run at a time: a lock on a file, waited for in sight of the person who waits."""

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from eclectus_e2e.progress import Progress


@contextmanager
def held(path: Path, title: str) -> Iterator[None]:
    """Hold an exclusive lock on a file; the kernel lets go of it however the holder ends."""
    with path.open("w") as file, Progress(f"another run is building {title}; waiting") as waiting:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                waiting.say("")
                time.sleep(0.5)
        waiting.quiet()
        yield
