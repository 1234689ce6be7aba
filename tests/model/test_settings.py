"""A setting that implies others: they may be left out, and must not be given other values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pytest

from eclectus.model.errors import SettingsError
from eclectus.model.settings import apply_implied, implied_by, setting


@dataclass
class Oven:
    program: Literal["own", "bread"] = setting(
        "own", "what is baked", implies={"bread": {"heat": 230.0, "steam": True}}
    )
    heat: float = setting(180.0, "how hot")
    steam: bool = setting(False, "whether wet")
    minutes: int = setting(60, "how long")

    def __post_init__(self) -> None:
        apply_implied(self)


def test_a_choice_sets_what_it_implies_and_leaves_the_rest() -> None:
    assert Oven("bread", minutes=45) == Oven("bread", 230.0, True, 45)
    assert Oven() == Oven("own", 180.0, False, 60)


def test_giving_the_implied_value_is_no_contradiction() -> None:
    assert Oven("bread", heat=230.0).heat == 230.0
    assert implied_by(Oven, {"program": "bread", "heat": 230.0}) == {"heat": 230.0, "steam": True}


def test_another_value_is_refused_with_a_way_out() -> None:
    with pytest.raises(SettingsError, match=r"^heat: 99.0 contradicts program: bread, which makes it 230.0"):
        Oven("bread", heat=99.0)


def test_a_given_value_is_refused_even_if_it_is_the_default() -> None:
    with pytest.raises(SettingsError, match=r"^heat: 180.0 contradicts program: bread"):
        implied_by(Oven, {"program": "bread", "heat": 180.0})
