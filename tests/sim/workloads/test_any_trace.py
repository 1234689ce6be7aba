"""A random trace runs under every pair of a Place and a Line policy that is not refused, without an error.

Each test session generates a new one. To repeat one, set ECLECTUS_TRACE_SEED to the seed that is printed.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from pathlib import Path
from random import Random, SystemRandom
from typing import Any

import pytest
import yaml

from checked_worlds import run_checked
from eclectus.sim.scenario import parse
from policy_choices import Choice, Ways
from short_scenarios import document

JOBS = 16
CLUSTER = {
    "groups": [
        {"name": "single", "count": 3, "slots": 1},
        {"name": "fast", "count": 2, "slots": 4, "speed": 3},
        {"name": "odd", "count": 1, "resources": {"cpu": 3, "memory": "2Gi"}, "speed": 0.5},
        {"name": "shut", "count": 1, "slots": 8, "taints": [{"key": "nobody"}]},
    ]
}
HYBRIDS = ("sparrow", "hawk", "eagle", "clwl", "dlwl")


def pairs() -> Iterator[Any]:
    """Every variant of every Place policy with every Line policy; unusual pairs are slow tests."""
    ways = Ways()
    for place in ways.choices["place"]:
        ways_of_place = ways.accepted([place, *plain(ways, "learn", "order")])
        lines = list(dict.fromkeys(way.choices["line"].name for way in ways_of_place))  # other roles vary too
        for line in lines:
            is_short = line == lines[0] or place.name in HYBRIDS
            name = f"{place} and {line}"
            yield pytest.param(place.written, line, id=name, marks=() if is_short else pytest.mark.slow)


def plain(ways: Ways, *roles: str) -> Iterator[Choice]:
    """The default policies of these roles."""
    return (choice for role in roles for choice in ways.choices[role] if choice.is_default)


def text_of(chance: Random) -> tuple[str, int]:
    """The text of a trace, and its number of tasks."""
    lines, at, count, digits = [], 0.0, 0, chance.randrange(7)
    for _ in range(JOBS):
        at += chance.choice([0.0, chance.expovariate(0.3), chance.expovariate(0.02)])
        sizes = [10 ** chance.uniform(-3, 3.3) for _ in range(chance.choice([1, 1, 2, 5, 12]))]
        mean = chance.choice([sum(sizes) / len(sizes), max(sizes), round(sum(sizes)), 0])
        fields = [
            f"{at:.{digits}f}",
            str(len(sizes)),
            repr(mean),
            *map(repr, sizes),
        ]
        lines.append(chance.choice([" ", "\t", "  "]).join(fields) + chance.choice(["", " ", "\n"]))
        count += len(sizes)
    return "\n".join(lines) + chance.choice(["", "\n"]), count


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int, int]:
    """The file, its number of tasks and the seed."""
    seed = int(os.environ.get("ECLECTUS_TRACE_SEED") or SystemRandom().randrange(2**32))
    print(f"ECLECTUS_TRACE_SEED={seed}")  # noqa: T201 — pytest shows it where a test fails
    chance = Random(seed)
    text, count = text_of(chance)
    file = tmp_path_factory.mktemp("trace") / chance.choice(["jobs.trace", "jobs.trace.gz"])
    with gzip.open(file, "wt") if file.suffix == ".gz" else file.open("w") as out:
        out.write(text)
    return file, count, seed


@pytest.mark.long
@pytest.mark.parametrize(("place", "line"), list(pairs()))
def test_every_policy_runs_it(trace: tuple[Path, int, int], place: dict[str, Any], line: str) -> None:
    file, count, seed = trace
    asked = parse(
        yaml.safe_dump(
            document(
                cluster=CLUSTER,
                workload={"jobtrace": {"file": file.name, "cutOff": "90s"}},
                profiles=[{"schedulerName": "it", "place": place, "line": {"policy": line}}],
                measure={"warmUp": 0},
                allowUnstable=True,
            )
        ),
        file.parent,
    )
    done = run_checked(asked, asked.profiles[0], seed)
    assert (done.complete, done.faults, done.first_fault) == (True, 0, "")
    assert (done.tasks, done.response.count) == (count, count)
