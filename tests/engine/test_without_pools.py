"""Without a Pool, data or opt-in nothing is another than if there were no such features, to the byte."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from builders import make_engine
from eclectus.model.objects import Input
from eclectus.policies.hold.delay import Delay
from eclectus.policies.order.fifo import FifoOrder
from eclectus.policies.order.pools import FairPools
from eclectus.policies.place.fit import BestFit
from eclectus.policies.place.kube import KubeScores
from eclectus.policies.place.power_of_two import Uniform
from eclectus.policies.relieve.preemption import Preemption
from eclectus.policies.relieve.reclaim import Reclaim
from eclectus.policies.rosella import Rosella, RosellaLearn
from eclectus.policies.shared import Chain
from eclectus.policies.speculate.late import Late
from eclectus.policies.speculate.mantri import MantriLite
from random_stories import Story

ROLES: dict[str, dict[str, Any]] = {
    "rosella": {"place": Rosella},
    "kube, preemption": {"place": KubeScores, "relieve": Preemption},
    "wait limit": {"place": BestFit, "wait_limit": lambda: 2.0},
    "node queues": {"place": lambda: Uniform(queue="lines")},
}


class PlainStory(Story):
    """A story in which nothing asks for a Pool, a copy or data."""

    def _inputs(self) -> tuple[Input, ...]:
        return ()


def commands(seed: int, **roles: Any) -> bytes:
    engine = make_engine(roles.pop("place"), learn=RosellaLearn(), **roles)
    story = PlainStory(engine, seed, leaves=()).run(40).drain()
    assert len(story.commands) > 50
    return msgspec.json.encode(story.commands)


def made(roles: dict[str, Any]) -> dict[str, Any]:
    return {role: make() for role, make in roles.items()}


@pytest.mark.parametrize("roles", ROLES.values(), ids=ROLES)
@pytest.mark.parametrize("seed", range(2))
def test_order_pools_gives_the_commands_of_fifo(roles: dict[str, Any], seed: int) -> None:
    of_pools, of_fifo = (commands(seed, order=order(), **made(roles)) for order in (FairPools, FifoOrder))
    assert of_pools == of_fifo


FEATURES: dict[str, Callable[[], dict[str, Any]]] = {
    "full": lambda: {
        "order": FairPools(),
        "place": Rosella(),
        "relieve": Chain((Reclaim(), Preemption())),
        "speculate": Late(),
    },
    "all": lambda: {
        "order": FairPools(),
        "place": KubeScores(),
        "relieve": Chain((Reclaim(), Preemption())),
        "speculate": Late(),
        "hold": Delay(),
    },
    "restarts": lambda: {"place": Rosella(), "relieve": Preemption(), "speculate": MantriLite()},
}


@pytest.mark.parametrize("features", FEATURES.values(), ids=FEATURES)
@pytest.mark.parametrize("seed", range(2))
def test_without_a_pool_data_or_opt_in_every_feature_at_once_gives_the_default_s_commands(
    features: Callable[[], dict[str, Any]], seed: int
) -> None:
    place = features()["place"]
    assert commands(seed, **features()) == commands(seed, place=place, relieve=Preemption())
