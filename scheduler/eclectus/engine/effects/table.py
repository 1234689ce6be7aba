"""The table of effects: which roles may answer with an action, how it is validated, and how it is applied.

Every action is in force before the next one is asked for. A validation changes nothing, so a refused action
has no effect at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from eclectus.engine.effects.placing import Placing
from eclectus.engine.effects.relieving import Relieving
from eclectus.engine.node_dispatch import NodeDispatch
from eclectus.engine.nominations import Nominations
from eclectus.engine.scheduling_cycle import SchedulingCycle
from eclectus.engine.state import State
from eclectus.framework import (
    Bind,
    Defer,
    Enqueue,
    Evict,
    Nominate,
    Order,
    Place,
    Refused,
    Relieve,
    ReserveMany,
    Unschedulable,
)
from eclectus.model.errors import PolicyError

Asked = SchedulingCycle | Refused
"""What a policy was asked about."""


class Effect(NamedTuple):
    """Of one type of action. Both functions are given what the policy was asked about, and the action."""

    roles: tuple[type, ...]
    validate: Callable[[Any, Any], None]  # raises PolicyError
    apply: Callable[[Any, Any], None]


class Effects:
    """Puts actions in force."""

    def __init__(self, state: State, node_dispatch: NodeDispatch, nominations: Nominations) -> None:
        placing, relieving = Placing(state, node_dispatch), Relieving(state, nominations)
        self._table: Mapping[type, Effect] = {
            Bind: Effect((Place,), placing.validate_place, placing.place),
            Defer: Effect((Place,), placing.validate_defer, placing.defer),
            Enqueue: Effect((Place,), placing.validate_enqueue, placing.enqueue),
            ReserveMany: Effect((Place,), placing.validate_reserve_many, placing.reserve_many),
            Unschedulable: Effect((Place,), placing.validate_unschedulable, placing.unschedulable),
            Nominate: Effect((Relieve, Order), relieving.validate_reserve, relieving.reserve),
            Evict: Effect((Relieve,), relieving.validate_evict, relieving.evict),
        }

    def put_in_force(self, role: type, asked: Asked, action: object) -> None:
        """Validate an answer of a policy of this role, then apply it.

        Raises PolicyError if the action must not be put in force; nothing has changed then.
        """
        effect = self._table.get(type(action))
        if effect is None or role not in effect.roles:
            raise PolicyError(f"{action!r} is not an action with which a {role.__name__} policy may answer")
        effect.validate(asked, action)
        effect.apply(asked, action)
