"""Tapes of live schedulers in the repository: the simulator's engine makes the same decisions.

They were recorded by tests/system/test_live_tape.py, which explains how to record new ones after an intended
change of decisions.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from eclectus.tape import TapeWriter, read
from eclectus_e2e.paths import CHECKOUT
from tape_comparison import first_difference, scenario_of

HERE = Path(__file__).parent
TWO_SPEEDS = CHECKOUT / "scenarios" / "tapes" / "two-speeds.tape.gz"
LINES = HERE / "tapes" / "lines.tape.gz"
both = pytest.mark.parametrize("tape", [TWO_SPEEDS, LINES], ids=lambda path: path.name.split(".")[0])


@both
def test_the_simulator_s_engine_decides_as_the_live_one_did(tape: Path) -> None:
    assert first_difference(tape) == ""


@pytest.mark.parametrize(
    ("tape", "was", "now", "seed"),
    [(TWO_SPEEDS, "least-allocated", "most-allocated", 0), (LINES, "seed: 7", "seed: 8", 8)],
    ids=["another policy", "another seed"],
)
def test_a_difference_is_found(tape: Path, was: str, now: str, seed: int, tmp_path: Path) -> None:
    header, steps = read(tape)
    assert was in header.configuration
    other = replace(header, configuration=header.configuration.replace(was, now), seed=seed)
    with TapeWriter(tmp_path / "t.tape", other) as recorder:
        for step in steps:
            recorder.step(step.now, step.events, step.commands)
    assert "differs" in first_difference(tmp_path / "t.tape")


@both
def test_the_true_sizes_are_recovered(tape: Path) -> None:
    """Pods of sizes 4 and 16 s on nodes of speeds 1 and 4; measured times on a busy machine are not exact."""
    plan = scenario_of(tape, speeds={"n0[6-9]": 4, "n1?": 4}).plan
    means = {kind.name: mean for kind, mean in plan.mean_sizes.items()}
    assert means["short"] == pytest.approx(4, rel=0.1)
    assert means["long"] == pytest.approx(16, rel=0.1)
    assert plan.tasks == 181
