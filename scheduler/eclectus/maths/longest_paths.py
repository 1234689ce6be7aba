"""How long a job of several stages takes from each of them to its end."""

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

K = TypeVar("K", bound=Hashable)


def longest_paths(
    stages: Sequence[tuple[K, Sequence[K]]], seconds: Mapping[K, float | None]
) -> dict[K, float | None]:
    """Of each stage, the longest path from the start of one of its tasks to the end of the job, in seconds.

    `stages`: each with its parents, in topological order. None where a stage on the way has no estimate.
    """
    found, behind = dict[K, float | None](), dict[K, float | None]()
    for stage, parents in reversed(stages):
        own, after = seconds.get(stage), behind.get(stage, 0.0)
        path = found[stage] = None if own is None or after is None else own + after
        for parent in parents:
            longest = behind.get(parent, 0.0)
            behind[parent] = None if path is None or longest is None else max(longest, path)
    return found
