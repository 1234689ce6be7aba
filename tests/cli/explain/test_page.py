"""docs/explain.md shows an answer as it is, and explains every state."""

from pathlib import Path
from typing import get_args

import pytest

from eclectus.model.explanation import NodeCondition, PodState, PreemptionState, WaitingState
from eclectus_e2e.paths import CHECKOUT

PAGE = (CHECKOUT / "docs" / "explain.md").read_text()
STORY = Path(__file__).parent.parent / "explained" / "pod-unschedulable.txt"


def test_the_example_is_what_the_command_prints():
    lines = [f"    {line}".rstrip() for line in STORY.read_text().splitlines()]
    assert "\n".join(lines) in PAGE


def literals(type_):
    """The words of a Literal, or of a union of some."""
    return [word for each in get_args(type_) for word in (get_args(each) or [each])]


@pytest.mark.parametrize("type_", [PodState, WaitingState, PreemptionState, NodeCondition])
def test_every_state_has_a_row(type_):
    words = set(literals(type_)) - ({"unknown"} if type_ is NodeCondition else set())
    assert len(words) > 3
    assert {word for word in words if f"\n| `{word}` |" not in PAGE} == set()
