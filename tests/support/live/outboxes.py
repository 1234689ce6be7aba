"""An outbox with all that it sends through, for a fake API server."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from eclectus.config.process_settings import ClientConnectionSettings
from eclectus.live.inbox import Inbox
from eclectus.live.process_metrics import Context
from eclectus.live.watch.watched_kinds import (
    ClaimStates,
    ConditionState,
    Ignored,
    PlanState,
    PoolState,
    StragglerState,
)
from eclectus.live.write.outbox import BoundObserver, Known, Outbox

IN_FLIGHT = 4
CONNECTION = ClientConnectionSettings(requests_in_flight=IN_FLIGHT, evictions_in_flight=2)
NOTHING: Mapping[str, Any] = {}


def outbox_of(
    context: Context,
    inbox: Inbox,
    *,
    holds_lease: Callable[[], bool] = lambda: True,
    states: Mapping[str, ConditionState] = NOTHING,
    ignored: Mapping[str, Ignored] = NOTHING,
    unmet: Callable[[str], Sequence[str]] = lambda uid: (),
    connection: ClientConnectionSettings = CONNECTION,
    jobs: Mapping[str, PlanState] = NOTHING,
    pools: Mapping[str, PoolState] = NOTHING,
    stragglers: Mapping[str, StragglerState] = NOTHING,
    bind_seconds: float = 0.2,
    claims: ClaimStates | None = None,
    observe_bound: BoundObserver | None = None,
) -> Outbox:
    """Four binds and two evictions in flight; `bind_seconds` limits the request of a bind."""
    known = Known(
        condition_state=states.get,
        take_ignored=ignored.get,
        unmet_preferences=unmet,
        plan_state=jobs.get,
        pool_state=pools.get,
        straggler_state=stragglers.get,
        claims=ClaimStates() if claims is None else claims,
    )
    settings = replace(connection, request_timeout=bind_seconds)
    return Outbox(
        context,
        inbox,
        known,
        holds_lease,
        settings,
        instance="host",
        solve=None,
        observe_bound=observe_bound,
    )
