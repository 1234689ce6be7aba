"""The sums of scores in kube-scheduler's log: which nodes a pod fits on, and how much each is worth.

They are written before the pod is bound, at this verbosity of one of its source files.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path

ARGUMENTS = ("--vmodule=schedule_one=10",)
_LINE = re.compile(
    rb"\"Calculated node's final score for pod\" pod=\"([^\"]+)\" node=\"([^\"]+)\" score=(\d+)"
)
_BYTES_MOST = 64 << 20  # then the file is emptied: half an hour writes gigabytes


class ScoreLog:
    """Reads the log as it grows."""

    def __init__(self, path: Path) -> None:
        self._path, self._read_bytes = path, 0
        self._scores: dict[str, dict[str, int]] = {}

    def take(self, pod: str) -> Mapping[str, int]:
        """Node -> score of a pod (`namespace/name`) that has been answered; each pod can be taken once.

        Those of pods before it are dropped.
        """
        self._read()
        found = self._scores.get(pod, {})
        self._scores.clear()
        return found

    def _read(self) -> None:
        with self._path.open("rb") as file:
            file.seek(self._read_bytes)
            new = file.read()
        complete = new[: new.rfind(b"\n") + 1]
        self._read_bytes += len(complete)
        for pod, node, score in _LINE.findall(complete):
            self._scores.setdefault(pod.decode(), {})[node.decode()] = int(score)
        if self._read_bytes > _BYTES_MOST and len(complete) == len(new):
            os.truncate(self._path, 0)  # it is open for appending, so the next line is at the start
            self._read_bytes = 0
