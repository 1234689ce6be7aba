"""The variants of a policy, and statements in terms of single settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pytest

from eclectus.config.described import Statement, statement, variants
from eclectus.model.errors import SettingsError
from eclectus.model.settings import setting
from eclectus.policies.rosella import Rosella


@dataclass
class Two:
    """Settings of which some contradict each other."""

    kind: Literal["plain", "round", "long"] = setting("plain", "a")
    is_new: bool | None = setting(None, "b")
    size: float = setting(1.0, "c")

    def __post_init__(self) -> None:
        if self.kind == "long" and self.is_new:
            raise SettingsError("isNew", "contradicts kind")


def test_every_valid_combination_occurs_once_and_the_defaults_come_first() -> None:
    assert [each.settings for each in variants(Two)] == [
        {},
        {"isNew": False},
        {"isNew": True},
        {"kind": "round"},
        {"kind": "round", "isNew": False},
        {"kind": "round", "isNew": True},
        {"kind": "long"},
        {"kind": "long", "isNew": False},
    ]


def test_a_statement_names_the_settings_with_which_it_is_otherwise() -> None:
    assert statement(Two, lambda each: each.size == 1.0) == Statement(True, {})
    assert statement(Two, lambda each: each.kind == "plain") == Statement(True, {"kind": ["round", "long"]})
    either = statement(Two, lambda each: each.kind == "round" or each.is_new is True)
    assert either == Statement(False, {"kind": ["round"], "isNew": [True]})


def test_a_setting_that_another_covers_is_left_out() -> None:
    joins = statement(Rosella, lambda each: each.traits.joins_node_queues)
    assert joins == Statement(False, {"view": ["sample"], "replan": [False], "mode": ["paper"]})


def test_a_statement_about_two_settings_together_cannot_be_written() -> None:
    with pytest.raises(ValueError, match=r"Two: .*'kind': 'round', 'isNew': True.* more than one setting"):
        statement(Two, lambda each: each.kind == "round" and each.is_new is True)
