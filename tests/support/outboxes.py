"""An outbox with all that it sends through, for a fake API server."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from eclectus.config.process_settings import ClientConnectionSettings
from eclectus.live.context import Context
from eclectus.live.inbox import Inbox
from eclectus.live.watch.claim_states import ClaimStates
from eclectus.live.watch.dag_jobs import PlanState
from eclectus.live.watch.watched import ConditionState, Ignored
from eclectus.live.write.binder import Binder
from eclectus.live.write.conditions import Conditions
from eclectus.live.write.event_recorder import EventRecorder
from eclectus.live.write.evictor import Evictor
from eclectus.live.write.ignored_preferences import IgnoredPreferences
from eclectus.live.write.nominator import Nominator
from eclectus.live.write.outbox import Outbox
from eclectus.live.write.plans import Plans
from eclectus.live.write.probe_ender import ProbeEnder
from eclectus.live.write.relaxed_conditions import RelaxedConditions
from eclectus.live.write.relaxed_preferences import RelaxedPreferences
from eclectus.live.write.step_binder import StepBinder
from eclectus.live.write.volume_steps import VolumeSteps

CONNECTION = ClientConnectionSettings()
IN_FLIGHT = 4
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
    bind_seconds: float = 0.2,
    claims: ClaimStates | None = None,
    bound_seconds: float = 10.0,
) -> Outbox:
    """Four binds and two evictions in flight; `bind_seconds` limits the request of a bind.

    `bound_seconds` limits the wait for the volume of one of the `claims`.
    """
    recorder, counter = EventRecorder(context, "host", connection), context.metrics.ignored_preferences
    relaxed_conditions = RelaxedConditions(context, holds_lease)
    relaxed = RelaxedPreferences(unmet, context.metrics.relaxed_preferences, relaxed_conditions.add)
    binder = Binder(context, holds_lease, bind_seconds, relaxed.annotations)
    nominator = Nominator(context, states.get, holds_lease)
    claims = ClaimStates() if claims is None else claims
    volume_steps = VolumeSteps(context, claims, states.__contains__, holds_lease, bound_seconds)
    return Outbox(
        binder,
        Conditions(context, states.get, holds_lease, connection),
        recorder,
        IgnoredPreferences(ignored.get, recorder, counter),
        inbox,
        relaxed=relaxed,
        relaxed_conditions=relaxed_conditions,
        evictor=Evictor(context, nominator, holds_lease, recorder, inbox, in_flight=2),
        plans=Plans(context, jobs.get, holds_lease),
        step_binder=StepBinder(binder, nominator, ProbeEnder(context, holds_lease), volume_steps),
        in_flight=IN_FLIGHT,
        metrics=context.metrics,
    )
