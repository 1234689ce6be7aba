"""Random clusters of fixed seeds on a real API server, put to kube-scheduler and to Eclectus."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from eclectus_e2e.differential.run import Comparer, Found
from eclectus_e2e.differential.schedulers import opened

pytestmark = pytest.mark.live

SEEDS = range(101, 104)
SABOTAGE_SEEDS = range(201, 210)


def compared(directory: Path, seeds: range, most: int, **changed: Any) -> tuple[Comparer, list[Found]]:
    """The clusters of these seeds, until so many differences are found; these are shrunken."""

    async def run() -> tuple[Comparer, list[Found]]:
        found: list[Found] = []
        async with opened(directory, changed) as (cluster, questions):
            comparer = Comparer(cluster, questions)
            for seed in seeds:
                found += await comparer.compare_cluster(seed)
                if len(found) >= most:
                    break
            return comparer, [await comparer.shrunken(each, 15) for each in found[:most]]

    return asyncio.run(run())


def test_eclectus_answers_as_kube_scheduler(tmp_path: Path) -> None:
    comparer, found = compared(tmp_path / "cluster", SEEDS, 3)
    assert not found, "\n".join(f"seed {each.seed}: {each.difference}\n{each.case}" for each in found)
    totals = comparer.totals
    print(totals.text)  # noqa: T201 - of interest with -s
    assert totals.decisions > len(SEEDS) * 80
    assert totals.refused > totals.decisions / 10
    assert totals.scored > totals.decisions / 20
    assert len(totals.messages) > 20
    assert totals.evicting > len(SEEDS)


@pytest.mark.slow
@pytest.mark.alone
def test_a_scheduler_that_ignores_a_resource_is_found_and_the_case_is_small(tmp_path: Path) -> None:
    _, found = compared(
        tmp_path / "cluster", SABOTAGE_SEEDS, 1, ignoredResources=["example.com/gpu", "example.com/no"]
    )
    (one,) = found
    assert "example.com/" in str(one.case.pod)
    assert len(one.case.objects) <= 10
