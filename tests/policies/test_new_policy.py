"""A new policy is one module and one entry in the table; the module is that of docs/policies.md."""

from __future__ import annotations

import re
import sys
from types import ModuleType

import pytest

from builders import make_node, make_task
from eclectus.config.configuration import parse
from eclectus.model.errors import SettingsError
from eclectus.policies import table
from eclectus_e2e.paths import CHECKOUT
from policy_choices import every_way
from worlds import World

PAGE = (CHECKOUT / "docs" / "policies.md").read_text()
BLOCKS = dict(reversed(re.findall(r"^```(python|yaml)\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)))


@pytest.fixture(autouse=True)
def _one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("lowest_name")
    monkeypatch.setitem(sys.modules, module.__name__, module)  # where dataclasses look annotations up
    exec(compile(BLOCKS["python"], "docs/policies.md", "exec"), module.__dict__)  # noqa: S102
    monkeypatch.setitem(table.PLACE, "lowest-name", module.LowestName)


@pytest.mark.parametrize(("setting", "node"), [("fromTheEnd: false", "a"), ("fromTheEnd: true", "b")])
def test_a_configuration_names_it_and_pods_are_placed_by_it(setting: str, node: str) -> None:
    text = BLOCKS["yaml"].replace("fromTheEnd: true", setting)
    world = World(parse(text).engine(), make_node("b"), make_node("a"))
    world.add(make_task("pod"))
    assert world.placed() == {"pod": node}


def test_its_settings_are_checked() -> None:
    wrong = BLOCKS["yaml"].replace("fromTheEnd", "fromEnd")
    with pytest.raises(SettingsError, match=r"profiles\[0\]\.place\.fromEnd: unknown field; .*'fromTheEnd'"):
        parse(wrong)


def test_the_contract_suite_covers_it_and_its_settings() -> None:
    names = {str(way.choices["place"]) for way in every_way()}
    assert {"lowest-name", "lowest-name fromTheEnd=True"} <= names
