"""Short ways to write jobs with stages, and files of them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from builders import make_spec
from eclectus.sim.base.work import StageDraft, WorkClass

WORK_CLASS = WorkClass("work", make_spec())

Stage = tuple[str, int, float, str]
"""Name, tasks, seconds, and the names of the parents, one letter each."""

DIAMOND: list[Stage] = [("a", 2, 3.0, ""), ("b", 1, 4.0, "a"), ("c", 3, 1.0, "a"), ("d", 1, 2.0, "bc")]


def drafts(*stages: Stage) -> list[StageDraft]:
    """The stages as a reader of files returns them."""
    return [
        StageDraft(name, WORK_CLASS, tasks, seconds, tuple(parents))
        for name, tasks, seconds, parents in stages
    ]


def job(name: str, *stages: Stage, **more: Any) -> dict[str, Any]:
    """A job in Eclectus's JSON format."""
    found = [
        {"name": stage, "tasks": tasks, "seconds": seconds, "parents": list(parents)}
        for stage, tasks, seconds, parents in stages
    ]
    return {"name": name, "stages": found, **more}


def written(folder: Path, *jobs: dict[str, Any], name: str = "jobs.json") -> dict[str, Any]:
    """Write the jobs to a file; returns the settings of the workload."""
    data = json.dumps({"jobs": list(jobs)}).encode()
    path = folder / name
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return {"file": str(path)}
