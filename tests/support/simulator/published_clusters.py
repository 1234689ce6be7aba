"""The clusters of the published comparisons, as fields of a scenario."""

from __future__ import annotations

from typing import Any

from eclectus.sim.base.results import RunResult

EXAMPLE_1: dict[str, Any] = {"groups": [{"name": "slow", "count": 9}, {"name": "fast", "speed": 6}]}


def example_3(m: int) -> dict[str, Any]:
    """One machine that is as fast as all the others together (Example 3 of the Rosella paper)."""
    return {"groups": [{"name": "one", "speed": m}, {"name": "rest", "count": m}]}


def halves(count: int, fast: float = 4.0) -> dict[str, Any]:
    """Half of the machines have speed 1, the other half speed `fast`."""
    return {
        "groups": [
            {"name": "slow", "count": count // 2},
            {"name": "fast", "count": count // 2, "speed": fast},
        ]
    }


def doubling(slots: int) -> dict[str, Any]:
    """30 machines of speeds 1, 2, 4 and 8."""
    counts = {1: 8, 2: 8, 4: 7, 8: 7}
    return {
        "groups": [
            {"name": f"speed-{speed}", "count": count, "speed": speed, "slots": slots}
            for speed, count in counts.items()
        ]
    }


def means(done: list[RunResult]) -> list[float]:
    """Mean response times."""
    return [run.response.mean for run in done]


def p99s(done: list[RunResult]) -> list[float]:
    """99th percentiles of the response times."""
    return [run.response.p99 for run in done]
