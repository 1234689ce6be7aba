"""Checks that validations share. A policy is a plug-in: not even that an action names a task is certain."""

from __future__ import annotations

import numpy as np

from eclectus.engine.state import State
from eclectus.model.errors import PolicyError
from eclectus.model.objects import Task

_INTEGERS = (int, np.integer)


def validate_task(task: object) -> Task:
    """The task. Raises PolicyError if it is something else."""
    if not isinstance(task, Task):
        raise PolicyError(f"{task!r} is no task")
    return task


def validate_row(state: State, task: Task, row: object) -> int:
    """The row as a plain number. Raises PolicyError if there is no node in it."""
    if isinstance(row, bool) or not isinstance(row, _INTEGERS):
        raise PolicyError(f"{row!r} is no row for {task}")
    row = int(row)
    names = state.cluster.names
    if not 0 <= row < len(names) or not names[row]:
        raise PolicyError(f"there is no node in row {row} for {task}")
    return row
