"""Trees of pools of three levels, and pods in them: each pool without children has a namespace of its own."""

from collections.abc import Iterator

from msgspec.structs import replace

from eclectus.model.objects import Task
from eclectus.model.pool import Pool


def pools_of(count: int) -> Iterator[Pool]:
    """So many pools without children, and those of the two levels above them, each with about as many."""
    across = max(round(count ** (1 / 3)), 1)
    for top in range(across):
        yield Pool(f"top-{top}")
        for middle in range(across):
            yield Pool(f"middle-{top}-{middle}", parent=f"top-{top}", weight=1.0 + middle % 3)
    for at in range(count):
        parent = f"middle-{at % across}-{at // across % across}"
        yield Pool(f"pool-{at}", parent=parent, namespaces=(f"team-{at}",))


def of_pool(task: Task, number: int) -> Task:
    """The pod in the namespace of a pool, which it asks for."""
    return replace(task, namespace=f"team-{number}", asked_pool=f"pool-{number}")
