"""One cluster and one pod: what a difference is found on, as a file that can be run again."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eclectus_e2e.errors import UsageError

Object = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """The objects of a cluster by their paths, and a pod of a namespace; as the API takes them.

    An object with metadata.deletionTimestamp is deleted after its creation, and stays for its finalizers or
    its grace period. Namespaces, PriorityClasses and StorageClasses are those of generator/words.py.
    """

    objects: dict[str, Object]
    namespace: str
    pod: Object

    def write(self, path: Path, found: str) -> None:
        """Write a file that `read` reads; `found` says what was found."""
        path.parent.mkdir(parents=True, exist_ok=True)
        content = {"found": found, "namespace": self.namespace, "pod": self.pod, "objects": self.objects}
        path.write_text(json.dumps(content, indent=1) + "\n")


def read(path: Path) -> Case:
    """The case of a file. Raises UsageError."""
    try:
        content = json.loads(path.read_text())
        return Case(content["objects"], content["namespace"], content["pod"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{path} is no case of a differential run: {error!r}") from error
