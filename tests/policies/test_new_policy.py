"""A new policy is one module and one entry in the table: this file is the module, the fixture the entry."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import pytest

from builders import make_node, make_task
from eclectus.config import parse
from eclectus.framework import Action, Place, PlacePolicy, Unschedulable, View
from eclectus.model.errors import SettingsError
from eclectus.model.objects import Task
from eclectus.model.settings import Setting
from eclectus.policies import table
from ways import every_way
from worlds import World


@dataclass(eq=False)
class Alphabetical(PlacePolicy):
    """The node with room whose name comes first, or last."""

    from_the_end: Annotated[bool, Setting("take the last name, not the first", why="alphabetical order")] = (
        False
    )

    def place(self, view: View, pending: Iterator[Task]) -> Iterator[Action]:
        """Place each task, or answer Unschedulable."""
        for task in pending:
            names = sorted(view.cluster.names[row] for row in view.task_class(task).fits_now_rows)
            yield Place(task, view.cluster.rows[names[-self.from_the_end]]) if names else Unschedulable(task)


FILE = """
apiVersion: eclectus.dev/v1alpha1
kind: SchedulerConfiguration
profiles:
- schedulerName: eclectus
  place: {policy: alphabetical, %s}
"""


@pytest.fixture(autouse=True)
def _one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(table.PLACE, "alphabetical", Alphabetical)


@pytest.mark.parametrize(("setting", "node"), [("fromTheEnd: false", "a"), ("fromTheEnd: true", "b")])
def test_a_configuration_names_it_and_pods_are_placed_by_it(setting: str, node: str) -> None:
    world = World(parse(FILE % setting).engine(), make_node("b"), make_node("a"))
    world.add(make_task("pod"))
    assert world.placed() == {"pod": node}


def test_its_settings_are_checked() -> None:
    with pytest.raises(SettingsError, match=r"profiles\[0\]\.place\.fromEnd: unknown field; .*'fromTheEnd'"):
        parse(FILE % "fromEnd: true")


def test_the_contract_suite_covers_it_and_its_settings() -> None:
    names = {way.name for way in every_way()}
    assert {"alphabetical", "alphabetical from_the_end=False", "alphabetical from_the_end=True"} <= names
