"""Heaps of class queues follow changes of groups, whether more groups or more queues have changed."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from eclectus.accounts.group_shares import prefixes
from eclectus.cluster.changelog import ChangeLog
from eclectus.engine.queues.head_heap import RankedHeads
from operation_counts import operations

GROUPS = [f"n{at}/j{job}" for at in range(12) for job in range(3)]


@dataclass(eq=False)
class Queue:
    """What a heap needs of a class queue."""

    group: str
    head: object = field(default_factory=object)


def heads_of(groups: list[str], log: ChangeLog[str], ranks: dict[str, float], *, ranks_prefixes: bool) -> Any:
    queues: Any = {group: Queue(group) for group in groups}
    found = RankedHeads[Any](
        lambda queue: (
            (0.0, ((ranks[queue.group],),), queue.group) if ranks_prefixes else (ranks[queue.group],)
        ),
        queues,
        [log],
        by_path=True,
        rank_prefix=(lambda prefix: (ranks[prefix],)) if ranks_prefixes else None,
    )
    found.refresh()
    return found


@pytest.mark.parametrize("ranks_prefixes", [False, True])
@pytest.mark.parametrize("seed", range(10))
def test_the_first_is_that_of_the_least_rank_however_many_others_have_changed(
    seed: int, ranks_prefixes: bool
) -> None:
    random, log = Random(seed), ChangeLog[str](10_000)
    names = sorted({*GROUPS, *(prefix for group in GROUPS for prefix in prefixes(group))})
    ranks = {name: random.random() for name in names}
    own = random.sample(GROUPS, 5)
    heap = heads_of(own, log, ranks, ranks_prefixes=ranks_prefixes)
    for _ in range(60):
        for group in random.sample(GROUPS, random.choice((1, 3, 30))):
            for name in (group, *prefixes(group)):
                ranks[name] = random.random()
            log.record(group)
        heap.refresh_changed()
        _, first = heap.first()

        def rank(group: str) -> Any:
            return [*(ranks[it] for it in prefixes(group) if ranks_prefixes), ranks[group]]

        assert first.group == min(own, key=rank)


@pytest.mark.parametrize("ranks_prefixes", [False, True])
def test_groups_of_others_that_change_and_heaps_do_not_multiply(ranks_prefixes: bool) -> None:
    def work(scale: int) -> int:
        log, ranks = ChangeLog[str](10_000), dict.fromkeys([*GROUPS, *(f"n{at}" for at in range(12))], 0.0)
        heaps = [heads_of(["n0/j0"], log, ranks, ranks_prefixes=ranks_prefixes) for _ in range(scale)]
        for at in range(scale):
            log.record(f"other-{at}/job")
        return operations(lambda: [each.refresh_changed() for each in heaps])

    assert work(400) < 3 * work(200), "a product would be four times as much"
