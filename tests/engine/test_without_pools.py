"""Without a Pool nothing is another than if there were no pools: `order: pools` is fifo, to the byte."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from builders import make_engine
from eclectus.policies.order.fifo import FifoOrder
from eclectus.policies.order.pools import FairPools
from eclectus.policies.place.fit import BestFit
from eclectus.policies.place.kube import KubeScores
from eclectus.policies.place.power_of_two import Uniform
from eclectus.policies.relieve.preemption import Preemption
from eclectus.policies.rosella import Rosella
from random_stories import Story

ROLES: dict[str, dict[str, Any]] = {
    "rosella": {"place": Rosella},
    "kube, preemption": {"place": KubeScores, "relieve": Preemption},
    "wait limit": {"place": BestFit, "wait_limit": lambda: 2.0},
    "node queues": {"place": lambda: Uniform(queue="lines")},
}


@pytest.mark.parametrize("roles", ROLES.values(), ids=ROLES)
@pytest.mark.parametrize("seed", range(2))
def test_order_pools_gives_the_commands_of_fifo(roles: dict[str, Any], seed: int) -> None:
    def commands(order: Any) -> bytes:
        made = {role: make() for role, make in roles.items()}
        engine = make_engine(made.pop("place"), order=order, **made)
        story = Story(engine, seed, leaves=()).run(40).drain()
        assert len(story.commands) > 50
        return msgspec.json.encode(story.commands)

    assert commands(FairPools()) == commands(FifoOrder())
