"""Every Place policy of the table starts gangs whole, in every company, without knowing of them."""

from __future__ import annotations

import pytest

from builders import make_node
from eclectus.model.commands import Bind, Command
from eclectus.model.events import Event
from gangs import group, members
from policy_choices import Way, every_way
from worlds import World

WAIT_SECONDS = 1200.0  # the limit of the profile several times: also of policies that defer


class GangWorld(World):
    """Records which pods were bound by which step."""

    def step(self, *events: Event, after: float = 0.0) -> list[Command]:
        commands = super().step(*events, after=after)
        together = {command.name for command in commands if isinstance(command, Bind)}
        self.starts = [*getattr(self, "starts", []), *([together] if together else [])]
        return commands


@pytest.mark.parametrize("way", every_way(), ids=str)
def test_all_pods_of_a_gang_start_together_or_none_does(way: Way) -> None:
    world = GangWorld(way.engine(), make_node("n0", cpu=2), make_node("n1", cpu=2))
    world.step(group("a", 3), group("b", 3))
    world.add(*members("a", 3), *members("b", 3))
    world.sleep(WAIT_SECONDS)
    assert world.faults == []
    one, other = {"a0", "a1", "a2"}, {"b0", "b1", "b2"}
    assert world.starts in ([one], [other]), "one gang, whole, and at once"
    world.put_node(make_node("m", cpu=3))
    world.sleep(WAIT_SECONDS)
    assert sorted(map(sorted, world.starts)) == [sorted(one), sorted(other)]
